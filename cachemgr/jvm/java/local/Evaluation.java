package relationalcache.local;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.function.Supplier;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.InterpretedOrdering;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatchRow;

import relationalcache.Scala;

/** Computes the rows of a plan over held rows, in the calling thread. */
final class Evaluation {
    private final Spent spent;

    Evaluation(Bounds bounds) {
        this.spent = new Spent(bounds);
    }

    /**
     * All rows of a plan, of their own.
     *
     * @throws Bound.Refused something of it is not evaluated here
     * @throws Bounds.Exceeded it takes more than it may
     * @throws RuntimeException what its expressions throw
     */
    List<InternalRow> rows(LogicalPlan plan) {
        Supplier<Rows> rows = of(plan);
        spent.start();
        return rows.get().all(output(plan), spent);
    }

    /** Binds all of a plan, which looks at no row yet; what it gives looks at them. */
    private Supplier<Rows> of(LogicalPlan plan) {
        if (plan instanceof Project project) {
            Supplier<Rows> rows = of(project.child());
            List<Expression> outputs = Bound.all(project.projectList(), output(project.child()));
            outputs.forEach(spent::evaluates);
            return () -> projected(outputs, rows.get());
        }
        if (plan instanceof Filter filter) {
            return filtered(filter);
        }
        if (plan instanceof Aggregate aggregate && aggregate.hint().isEmpty()) {
            Supplier<Rows> rows = of(aggregate.child());
            Grouping grouping = new Grouping(aggregate, output(aggregate.child()), spent);
            return () -> grouping.of(rows.get(), spent);
        }
        if (plan instanceof Sort sort && sort.global() && sort.hint().isEmpty()) {
            return sorted(sort);
        }
        if (plan instanceof GlobalLimit limit) {
            return limited(limit.limitExpr(), of(limit.child()));
        }
        if (plan instanceof LocalLimit limit) {
            return limited(limit.limitExpr(), of(limit.child()));
        }
        if (plan instanceof InMemoryRelation relation) {
            return scanned(relation, null);
        }
        throw new Bound.Refused(plan.nodeName());
    }

    private static List<?> output(LogicalPlan plan) {
        return Scala.list(plan.output());
    }

    private Rows projected(List<Expression> outputs, Rows rows) {
        boolean[] isMade = new boolean[outputs.size()];
        for (int i = 0; i < isMade.length; i++) {
            Expression output = outputs.get(i) instanceof Alias alias ? alias.child() : outputs.get(i);
            isMade[i] = HeldTable.isBinaryString(output.dataType()) && !(output instanceof BoundReference);
        }
        return new Rows() {
            @Override
            InternalRow next() {
                InternalRow row = rows.next();
                if (row == null) {
                    return null;
                }
                Object[] values = new Object[outputs.size()];
                for (int i = 0; i < values.length; i++) {
                    values[i] = outputs.get(i).eval(row);
                    if (isMade[i]) {
                        spent.takes(Spent.size(values[i]));
                    }
                }
                return new GenericInternalRow(values);
            }
        };
    }

    private Supplier<Rows> filtered(Filter filter) {
        Expression condition = Bound.to(filter.condition(), output(filter.child()));
        spent.evaluates(condition);
        Supplier<Rows> rows =
            filter.child() instanceof InMemoryRelation held ? scanned(held, condition) : of(filter.child());
        List<Expression> conjuncts = new ArrayList<>();
        split(condition, conjuncts);
        return () -> filtered(conjuncts, rows.get());
    }

    private static Rows filtered(List<Expression> conjuncts, Rows rows) {
        return new Rows() {
            @Override
            InternalRow next() {
                InternalRow row = rows.next();
                while (row != null && !keeps(row)) {
                    row = rows.next();
                }
                return row;
            }

            private boolean keeps(InternalRow row) {
                for (int i = 0; i < conjuncts.size(); i++) {
                    if (!Boolean.TRUE.equals(conjuncts.get(i).eval(row))) {
                        return false;
                    }
                }
                return true;
            }

            @Override
            boolean areKept() {
                return rows.areKept();
            }
        };
    }

    private static void split(Expression condition, List<Expression> into) {
        if (condition instanceof And and) {
            split(and.left(), into);
            split(and.right(), into);
        } else {
            into.add(condition);
        }
    }

    private Supplier<Rows> scanned(InMemoryRelation relation, Expression condition) {
        HeldTable table = Held.of(relation);
        if (table == null) {
            throw new Bound.Refused("rows that are not held");
        }
        BitSet blocks = new BitSet();
        if (condition == null) {
            blocks.set(0, table.blocks());
        } else {
            blocks = new Blocks(table).kept(condition);
        }
        spent.looksAt((long) blocks.cardinality() * HeldColumn.BLOCK);
        BitSet kept = blocks;
        return () -> new Scan(table, kept, spent);
    }

    /** The rows of some blocks; one object for all of them. */
    private static final class Scan extends Rows {
        private final int rows;
        private final BitSet blocks;
        private final Spent spent;
        private final ColumnarBatchRow row;
        private int block = -1;
        private int number = -1;
        private int end = 0;

        Scan(HeldTable table, BitSet blocks, Spent spent) {
            this.spent = spent;
            this.rows = table.rows;
            this.blocks = blocks;
            this.row = new ColumnarBatchRow((ColumnVector[]) table.columns);
        }

        @Override
        InternalRow next() {
            spent.tick();
            number++;
            if (number >= end) {
                block = blocks.nextSetBit(block + 1);
                if (block < 0) {
                    blocks.clear(); // and none the next time
                    return null;
                }
                number = block * HeldColumn.BLOCK;
                end = Math.min(number + HeldColumn.BLOCK, rows);
            }
            row.rowId = number;
            return row;
        }

        @Override
        boolean areKept() {
            return false;
        }
    }

    private Supplier<Rows> sorted(Sort sort) {
        List<?> input = output(sort.child());
        List<Object> order = new ArrayList<>();
        for (Object each : Scala.list(sort.order())) {
            SortOrder by = (SortOrder) each;
            Expression key = Bound.to(by.child(), input);
            if (!HeldTable.isKey(key.dataType())) {
                throw new Bound.Refused("ORDER BY " + key.dataType().sql());
            }
            order.add(new SortOrder(key, by.direction(), by.nullOrdering(), none()));
        }
        Supplier<Rows> child = of(sort.child());
        return () -> {
            List<InternalRow> rows = child.get().all(input, spent);
            rows.sort(new InterpretedOrdering(cast(Scala.seq(order)))); // which is stable
            return Rows.over(rows);
        };
    }

    private static Supplier<Rows> limited(Expression limit, Supplier<Rows> child) {
        int most = ((Integer) Bound.to(limit, List.of()).eval(null)).intValue();
        return () -> limited(most, child.get());
    }

    private static Rows limited(int most, Rows rows) {
        return new Rows() {
            private int given = 0;

            @Override
            InternalRow next() {
                return given++ < most ? rows.next() : null;
            }

            @Override
            boolean areKept() {
                return rows.areKept();
            }
        };
    }

    private static scala.collection.immutable.Seq<Expression> none() {
        return cast(Scala.seq(List.of()));
    }

    @SuppressWarnings("unchecked")
    private static <T> scala.collection.immutable.Seq<T> cast(scala.collection.immutable.Seq<?> items) {
        return (scala.collection.immutable.Seq<T>) items;
    }
}
