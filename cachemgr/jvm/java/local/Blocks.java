package relationalcache.local;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;

import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GreaterThan;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.LessThan;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Or;

import relationalcache.Scala;

/** Which blocks of held rows may have rows that a filter keeps, by the least and the greatest value of each. */
final class Blocks {
    /** Of NULL, which equals nothing. */
    private static final long[] NOWHERE = {0, 1};

    private final HeldTable table;

    Blocks(HeldTable table) {
        this.table = table;
    }

    /** The blocks that some row of may be kept. What is not understood of `condition` keeps all of them. */
    BitSet kept(Expression condition) {
        if (condition instanceof And and) {
            BitSet found = kept(and.left());
            found.and(kept(and.right()));
            return found;
        }
        if (condition instanceof Or or) {
            BitSet found = kept(or.left());
            found.or(kept(or.right()));
            return found;
        }
        if (condition instanceof IsNotNull test && test.child() instanceof BoundReference column) {
            return withValues(column);
        }
        if (condition instanceof In in && in.value() instanceof BoundReference column) {
            return among(column, literals(column, Scala.list(in.list())));
        }
        if (condition instanceof InSet in && in.child() instanceof BoundReference column) {
            return among(column, Scala.list(in.hset()));
        }
        if (condition instanceof BinaryComparison comparison) {
            boolean isTurned = comparison.left() instanceof Literal;
            Expression column = isTurned ? comparison.right() : comparison.left();
            Expression value = isTurned ? comparison.left() : comparison.right();
            if (column instanceof BoundReference held && value instanceof Literal literal) {
                return compared(comparison, held, literal, isTurned);
            }
        }
        return all();
    }

    private BitSet all() {
        BitSet found = new BitSet();
        found.set(0, table.blocks());
        return found;
    }

    private BitSet withValues(BoundReference reference) {
        HeldColumn column = table.columns[reference.ordinal()];
        BitSet found = new BitSet();
        for (int block = 0; block < table.blocks(); block++) {
            found.set(block, column.hasValue(block));
        }
        return found;
    }

    /** The values of a list; null if one is no literal of the column's type. */
    private static List<Object> literals(BoundReference column, List<?> list) {
        List<Object> found = new ArrayList<>();
        for (Object each : list) {
            if (!(each instanceof Literal literal) || !literal.dataType().equals(column.dataType())) {
                return null;
            }
            found.add(literal.value());
        }
        return found;
    }

    private BitSet among(BoundReference column, List<?> values) {
        if (values == null) {
            return all();
        }
        HeldColumn held = table.columns[column.ordinal()];
        List<long[]> places = new ArrayList<>();
        for (Object value : values) {
            long[] place = value == null ? NOWHERE : held.place(value);
            if (place == null) {
                return all();
            }
            places.add(place);
        }
        BitSet found = new BitSet();
        for (int block = 0; block < table.blocks(); block++) {
            for (int i = 0; i < places.size() && !found.get(block); i++) {
                found.set(block, holds(held, block, places.get(i)));
            }
        }
        return found;
    }

    private static boolean holds(HeldColumn held, int block, long[] place) {
        return place[0] == place[1] && held.least(block) <= place[0] && place[0] <= held.greatest(block);
    }

    private BitSet compared(BinaryComparison comparison, BoundReference column, Literal literal, boolean isTurned) {
        long[] place = place(column, literal);
        if (place == null) {
            return all();
        }
        boolean less = comparison instanceof LessThan || comparison instanceof LessThanOrEqual;
        boolean greater = comparison instanceof GreaterThan || comparison instanceof GreaterThanOrEqual;
        boolean equal = comparison instanceof EqualTo || comparison instanceof EqualNullSafe;
        if (!less && !greater && !equal) {
            return all();
        }
        boolean isStrict = comparison instanceof LessThan || comparison instanceof GreaterThan;
        boolean isBelow = less != isTurned; // the column's values are to be below the literal
        HeldColumn held = table.columns[column.ordinal()];
        BitSet found = new BitSet();
        for (int block = 0; block < table.blocks(); block++) {
            boolean keeps;
            if (equal) {
                keeps = holds(held, block, place);
            } else if (isBelow) {
                // place[0] is the value itself, or the greatest one below it
                keeps = isStrict && place[0] == place[1] ? held.least(block) < place[0] : held.least(block) <= place[0];
            } else {
                keeps = isStrict && place[0] == place[1] ? held.greatest(block) > place[1] : held.greatest(block) >= place[1];
            }
            found.set(block, keeps && held.hasValue(block));
        }
        return found;
    }

    /** Null where nothing is known: another type, a column without ranks, NULL. */
    private long[] place(BoundReference column, Literal literal) {
        if (literal.value() == null || !literal.dataType().equals(column.dataType())) {
            return null;
        }
        return table.columns[column.ordinal()].place(literal.value());
    }
}
