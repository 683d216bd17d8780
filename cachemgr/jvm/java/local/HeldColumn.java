package relationalcache.local;

import java.util.Arrays;
import java.util.BitSet;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * One column of held rows. It never changes once it is made, so that any number of threads read it at once.
 *
 * The rows lie in blocks of `BLOCK`; of each the least and the greatest value are known where the values have an order
 * (`ranks`), so that a filter passes over the blocks that hold none of its rows.
 */
abstract class HeldColumn extends ColumnVector {
    static final int BLOCK = 512;

    private final BitSet nulls;
    /** The least and the greatest rank of each block that has a value; of one that has none the least is the greater. */
    private long[] least = null;
    private long[] greatest = null;

    HeldColumn(DataType type, BitSet nulls) {
        super(type);
        this.nulls = nulls.isEmpty() ? null : nulls;
    }

    /** A number by which the value of a row that is not NULL is ordered among those of this column. */
    abstract long rank(int row);

    /** Bytes that it takes, about. */
    abstract long bytes();

    /**
     * Where a value stands among the ranks: [below, above], equal if it is a rank itself, else it lies between the two,
     * which are neighbours. Null if nothing is known of it.
     */
    abstract long[] place(Object value);

    /** Notes the least and the greatest of each block; called once, before anything is read. */
    final HeldColumn summed(int rows) {
        int blocks = (rows + BLOCK - 1) / BLOCK;
        least = new long[blocks];
        greatest = new long[blocks];
        Arrays.fill(least, Long.MAX_VALUE);
        Arrays.fill(greatest, Long.MIN_VALUE);
        for (int row = 0; row < rows; row++) {
            if (!isNullAt(row)) {
                int block = row / BLOCK;
                long rank = rank(row);
                least[block] = Math.min(least[block], rank);
                greatest[block] = Math.max(greatest[block], rank);
            }
        }
        return this;
    }

    final boolean hasValue(int block) {
        return least[block] <= greatest[block];
    }

    final long least(int block) {
        return least[block];
    }

    final long greatest(int block) {
        return greatest[block];
    }

    final long bytesOfAll() {
        return bytes() + (nulls == null ? 0 : nulls.size() / 8) + 16L * (least == null ? 0 : least.length);
    }

    @Override
    public boolean isNullAt(int row) {
        return nulls != null && nulls.get(row);
    }

    @Override
    public boolean hasNull() {
        return nulls != null;
    }

    @Override
    public int numNulls() {
        return nulls == null ? 0 : nulls.cardinality();
    }

    @Override
    public void close() {
        // memory of the heap alone
    }

    @Override
    public boolean getBoolean(int row) {
        throw other("boolean");
    }

    @Override
    public byte getByte(int row) {
        throw other("byte");
    }

    @Override
    public short getShort(int row) {
        throw other("short");
    }

    @Override
    public int getInt(int row) {
        throw other("int");
    }

    @Override
    public long getLong(int row) {
        throw other("long");
    }

    @Override
    public float getFloat(int row) {
        throw other("float");
    }

    @Override
    public double getDouble(int row) {
        throw other("double");
    }

    @Override
    public Decimal getDecimal(int row, int precision, int scale) {
        throw other("decimal");
    }

    @Override
    public UTF8String getUTF8String(int row) {
        throw other("string");
    }

    @Override
    public byte[] getBinary(int row) {
        throw other("binary");
    }

    @Override
    public ColumnarArray getArray(int row) {
        throw other("array");
    }

    @Override
    public ColumnarMap getMap(int row) {
        throw other("map");
    }

    @Override
    public ColumnVector getChild(int number) {
        throw other("struct");
    }

    private UnsupportedOperationException other(String asked) {
        return new UnsupportedOperationException("a held column of " + type.sql() + " was read as " + asked);
    }

    /** Booleans (0 and 1), whole numbers of at most 32 bits, and dates. */
    static final class Ints extends HeldColumn {
        private final int[] values;

        Ints(DataType type, BitSet nulls, int[] values) {
            super(type, nulls);
            this.values = values;
        }

        @Override
        long rank(int row) {
            return values[row];
        }

        @Override
        long bytes() {
            return 4L * values.length;
        }

        @Override
        long[] place(Object value) {
            if (value instanceof Boolean) {
                long rank = ((Boolean) value).booleanValue() ? 1 : 0;
                return new long[] {rank, rank};
            }
            return value instanceof Number ? same(((Number) value).longValue()) : null;
        }

        @Override
        public boolean getBoolean(int row) {
            return values[row] != 0;
        }

        @Override
        public byte getByte(int row) {
            return (byte) values[row];
        }

        @Override
        public short getShort(int row) {
            return (short) values[row];
        }

        @Override
        public int getInt(int row) {
            return values[row];
        }
    }

    /** Whole numbers and times of 64 bits, and decimals of at most 18 digits by their unscaled value. */
    static final class Longs extends HeldColumn {
        private final long[] values;

        Longs(DataType type, BitSet nulls, long[] values) {
            super(type, nulls);
            this.values = values;
        }

        @Override
        long rank(int row) {
            return values[row];
        }

        @Override
        long bytes() {
            return 8L * values.length;
        }

        @Override
        long[] place(Object value) {
            if (value instanceof Decimal) {
                return same(((Decimal) value).toUnscaledLong()); // of the column's own precision and scale
            }
            return value instanceof Long ? same(((Long) value).longValue()) : null;
        }

        @Override
        public long getLong(int row) {
            return values[row];
        }

        @Override
        public Decimal getDecimal(int row, int precision, int scale) {
            return Decimal.createUnsafe(values[row], precision, scale);
        }
    }

    /** Floating-point numbers. They have no ranks: NaN and -0.0 are ordered by Spark alone. */
    static final class Doubles extends HeldColumn {
        private final double[] values;

        Doubles(DataType type, BitSet nulls, double[] values) {
            super(type, nulls);
            this.values = values;
        }

        @Override
        long rank(int row) {
            return 0;
        }

        @Override
        long bytes() {
            return 8L * values.length;
        }

        @Override
        long[] place(Object value) {
            return null;
        }

        @Override
        public float getFloat(int row) {
            return (float) values[row];
        }

        @Override
        public double getDouble(int row) {
            return values[row];
        }
    }

    /** Strings and long decimals, each distinct value once; the rank of a value is its number among them, in order. */
    static final class Coded extends HeldColumn {
        private final int[] codes;
        private final Comparable[] dictionary;
        private final long bytesOfValues;

        Coded(DataType type, BitSet nulls, int[] codes, Comparable[] dictionary, long bytesOfValues) {
            super(type, nulls);
            this.codes = codes;
            this.dictionary = dictionary;
            this.bytesOfValues = bytesOfValues;
        }

        @Override
        long rank(int row) {
            return codes[row];
        }

        @Override
        long bytes() {
            return 4L * codes.length + bytesOfValues;
        }

        @Override
        @SuppressWarnings("unchecked")
        long[] place(Object value) {
            if (dictionary.length > 0 && value.getClass() != dictionary[0].getClass()) {
                return null;
            }
            int found = Arrays.binarySearch(dictionary, value);
            return found >= 0 ? same(found) : new long[] {-found - 2, -found - 1};
        }

        @Override
        public UTF8String getUTF8String(int row) {
            return (UTF8String) dictionary[codes[row]];
        }

        @Override
        public Decimal getDecimal(int row, int precision, int scale) {
            return (Decimal) dictionary[codes[row]];
        }
    }

    private static long[] same(long rank) {
        return new long[] {rank, rank};
    }
}
