package relationalcache.local;

import java.util.ArrayList;
import java.util.List;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataType;

/** The rows of a plan, one after the other. */
abstract class Rows {
    /** The next row, which may be the same object as the last one; null at the end. */
    abstract InternalRow next();

    /** Whether each row is an object of its own. */
    boolean areKept() {
        return true;
    }

    /** All of them, as rows of their own. */
    final List<InternalRow> all(List<?> output, Spent spent) {
        DataType[] types = new DataType[output.size()];
        for (int i = 0; i < types.length; i++) {
            types[i] = ((Attribute) output.get(i)).dataType();
        }
        List<InternalRow> found = new ArrayList<>();
        for (InternalRow row = next(); row != null; row = next()) {
            GenericInternalRow own = areKept() && row instanceof GenericInternalRow kept ? kept : copy(row, types);
            found.add(own);
            spent.keeps(found.size(), Spent.size(own.values()));
        }
        return found;
    }

    private static GenericInternalRow copy(InternalRow row, DataType[] types) {
        Object[] values = new Object[types.length];
        for (int i = 0; i < types.length; i++) {
            values[i] = row.isNullAt(i) ? null : row.get(i, types[i]);
        }
        return new GenericInternalRow(values);
    }

    /** Of rows that are there. */
    static Rows over(List<InternalRow> rows) {
        return new Rows() {
            private int number = 0;

            @Override
            InternalRow next() {
                return number < rows.size() ? rows.get(number++) : null;
            }
        };
    }
}
