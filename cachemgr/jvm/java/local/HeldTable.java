package relationalcache.local;

import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.Map;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.CollationFactory;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;

/** Rows held in the driver by columns, copies of their own that nothing else refers to. */
final class HeldTable {
    final HeldColumn[] columns;
    final int rows;
    final long bytes;

    private HeldTable(HeldColumn[] columns, int rows) {
        this.columns = columns;
        this.rows = rows;
        long sum = 0;
        for (HeldColumn column : columns) {
            sum += column.bytesOfAll();
        }
        this.bytes = sum;
    }

    int blocks() {
        return (rows + HeldColumn.BLOCK - 1) / HeldColumn.BLOCK;
    }

    /** Whether columns of a type are held: those whose values Spark orders and compares as Java does, and floats. */
    static boolean holds(DataType type) {
        return isKey(type) || type instanceof DoubleType || type instanceof FloatType;
    }

    /** Whether rows are grouped and sorted by values of a type here: by the same bytes, and only by these, they are equal. */
    static boolean isKey(DataType type) {
        return type instanceof BooleanType || type instanceof ByteType || type instanceof ShortType
            || type instanceof IntegerType || type instanceof LongType || type instanceof DateType
            || type instanceof TimestampType || type instanceof TimestampNTZType || type instanceof DecimalType
            || isBinaryString(type);
    }

    static boolean isBinaryString(DataType type) {
        // CHAR and VARCHAR, which are StringTypes too, never get beyond analysis
        return type.getClass() == org.apache.spark.sql.types.StringType$.class
            || type.getClass() == StringType.class && ((StringType) type).collationId() == CollationFactory.UTF8_BINARY_COLLATION_ID;
    }

    /**
     * The columns of rows, which may be shared with others.
     *
     * @throws IllegalArgumentException a type that is not held
     */
    static HeldTable of(InternalRow[] rows, DataType[] types) {
        HeldColumn[] columns = new HeldColumn[types.length];
        for (int i = 0; i < types.length; i++) {
            columns[i] = column(rows, i, types[i]).summed(rows.length);
        }
        return new HeldTable(columns, rows.length);
    }

    private static HeldColumn column(InternalRow[] rows, int number, DataType type) {
        BitSet nulls = new BitSet();
        for (int row = 0; row < rows.length; row++) {
            if (rows[row].isNullAt(number)) {
                nulls.set(row);
            }
        }
        if (isBinaryString(type) || type instanceof DecimalType && !compact(type)) {
            return coded(rows, number, type, nulls);
        }
        if (type instanceof DoubleType || type instanceof FloatType) {
            double[] values = new double[rows.length];
            for (int row = 0; row < rows.length; row++) {
                if (!nulls.get(row)) {
                    values[row] = type instanceof FloatType ? rows[row].getFloat(number) : rows[row].getDouble(number);
                }
            }
            return new HeldColumn.Doubles(type, nulls, values);
        }
        if (type instanceof LongType || type instanceof TimestampType || type instanceof TimestampNTZType
            || type instanceof DecimalType) {
            long[] values = new long[rows.length];
            for (int row = 0; row < rows.length; row++) {
                if (!nulls.get(row)) {
                    values[row] = type instanceof DecimalType
                        ? decimal(rows[row], number, (DecimalType) type).toUnscaledLong() : rows[row].getLong(number);
                }
            }
            return new HeldColumn.Longs(type, nulls, values);
        }
        int[] values = new int[rows.length];
        for (int row = 0; row < rows.length; row++) {
            if (!nulls.get(row)) {
                values[row] = small(rows[row], number, type);
            }
        }
        return new HeldColumn.Ints(type, nulls, values);
    }

    private static int small(InternalRow row, int number, DataType type) {
        if (type instanceof BooleanType) {
            return row.getBoolean(number) ? 1 : 0;
        }
        if (type instanceof ByteType) {
            return row.getByte(number);
        }
        if (type instanceof ShortType) {
            return row.getShort(number);
        }
        if (type instanceof IntegerType || type instanceof DateType) {
            return row.getInt(number);
        }
        throw new IllegalArgumentException("columns of " + type.sql() + " are not held");
    }

    private static boolean compact(DataType type) {
        return ((DecimalType) type).precision() <= Decimal.MAX_LONG_DIGITS();
    }

    private static Decimal decimal(InternalRow row, int number, DecimalType type) {
        return row.getDecimal(number, type.precision(), type.scale());
    }

    private static HeldColumn coded(InternalRow[] rows, int number, DataType type, BitSet nulls) {
        Map<Comparable<?>, Integer> first = new HashMap<>();
        int[] codes = new int[rows.length];
        long bytes = 0;
        for (int row = 0; row < rows.length; row++) {
            if (nulls.get(row)) {
                continue;
            }
            Comparable<?> value = isBinaryString(type)
                ? rows[row].getUTF8String(number) : decimal(rows[row], number, (DecimalType) type);
            Integer code = first.get(value);
            if (code == null) {
                code = Integer.valueOf(first.size());
                Comparable<?> own = value instanceof UTF8String string
                    ? UTF8String.fromBytes(string.getBytes().clone()) : value;
                first.put(own, code);
                bytes += 64 + (own instanceof UTF8String string ? string.numBytes() : 16);
            }
            codes[row] = code.intValue();
        }
        Comparable<?>[] dictionary = first.keySet().toArray(new Comparable<?>[0]);
        Arrays.sort(dictionary);
        int[] ranks = new int[dictionary.length];
        for (int rank = 0; rank < dictionary.length; rank++) {
            ranks[first.get(dictionary[rank]).intValue()] = rank;
        }
        for (int row = 0; row < rows.length; row++) {
            codes[row] = ranks.length == 0 ? 0 : ranks[codes[row]];
        }
        return new HeldColumn.Coded(type, nulls, codes, dictionary, bytes);
    }
}
