package relationalcache.local;

import java.util.HashMap;
import java.util.List;
import java.util.Map;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.columnar.CachedRDDBuilder;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.types.DataType;

import relationalcache.Scala;

/**
 * The pinned sets whose rows the driver holds as well, one table for all queries of the application. Bounded by bytes: what
 * does not fit any more is not held, until the pin of another set is let go of.
 */
public final class Held {
    /** By the object that computes a set's rows, which all plans over them share. */
    private static final Map<Key, HeldTable> TABLES = new HashMap<>();
    private static long bytes = 0;

    private Held() {
    }

    /** What is the same object alone; comparing builders would compare their plans. */
    private record Key(CachedRDDBuilder builder) {
        @Override
        public boolean equals(Object other) {
            return other instanceof Key key && key.builder == builder;
        }

        @Override
        public int hashCode() {
            return System.identityHashCode(builder);
        }
    }

    private static Key key(LogicalPlan pin) {
        return new Key(((InMemoryRelation) pin).cacheBuilder());
    }

    /**
     * Holds the rows of a pin, if they take no more than a fourth of `most`, fit, and their types are held.
     *
     * @param rows so many they are
     * @param most bytes that all held rows together may take
     * @return the bytes that they take; 0 if they are not held
     */
    public static long hold(SparkSession spark, LogicalPlan pin, long rows, long most) {
        List<?> output = Scala.list(pin.output());
        DataType[] types = new DataType[output.size()];
        long least = 0;
        for (int i = 0; i < types.length; i++) {
            types[i] = ((Attribute) output.get(i)).dataType();
            if (!HeldTable.holds(types[i])) {
                return 0;
            }
            least += types[i].defaultSize() > 4 && !HeldTable.isBinaryString(types[i]) ? 8 : 4;
        }
        if (least * rows > room(most)) {
            return 0; // which is known without collecting them
        }
        Dataset<?> all = Dataset.ofRows(spark, ((InMemoryRelation) pin).newInstance());
        HeldTable table = HeldTable.of((InternalRow[]) all.queryExecution().executedPlan().executeCollect(), types);
        synchronized (TABLES) {
            if (table.bytes > room(most)) {
                return 0;
            }
            forget(TABLES.put(key(pin), table));
            bytes += table.bytes;
        }
        return table.bytes;
    }

    /** What one more may take. */
    private static long room(long most) {
        synchronized (TABLES) {
            return Math.min(most / 4, most - bytes);
        }
    }

    private static void forget(HeldTable table) {
        bytes -= table == null ? 0 : table.bytes;
    }

    /** Lets go of the rows of a pin, if they are held. */
    public static void drop(LogicalPlan pin) {
        synchronized (TABLES) {
            forget(TABLES.remove(key(pin)));
        }
    }

    /** Whether the rows that a relation reads are held. */
    public static boolean holds(InMemoryRelation relation) {
        return of(relation) != null;
    }

    /** The held rows that a relation reads; null if there are none. */
    static HeldTable of(InMemoryRelation relation) {
        synchronized (TABLES) {
            return TABLES.get(key(relation));
        }
    }
}
