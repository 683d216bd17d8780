package relationalcache;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.columnar.CachedRDDBuilder;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.storage.StorageLevel;

import relationalcache.local.Held;

/**
 * Rows held in the executors' memory as one partition, under a plan of our own: Spark's cache manager does not know it, so
 * clearCache() and UNCACHE leave it, and no query of the user is matched with it by accident.
 */
public final class Pins {
    public Pins() {
    }

    /**
     * Runs `frame` as one partition and keeps its rows; the plan reads them, and computes them again should they get lost.
     * In plans and in the UI they are called `name`.
     */
    public static LogicalPlan pin(SparkSession spark, Dataset frame, String name) {
        Dataset one = frame.coalesce(1);
        InMemoryRelation relation = org.apache.spark.sql.execution.columnar.InMemoryRelation$.MODULE$.apply(
            StorageLevel.MEMORY_AND_DISK(), one.queryExecution(), Scala.some(name));
        boolean held = false;
        try {
            relation.cacheBuilder().cachedColumnBuffers().count();
            held = true;
        } finally {
            if (!held) {
                drop(relation);
            }
        }
        return relation;
    }

    /** Has the driver hold the rows of a pin as well; see `Held.hold`. */
    public static long hold(SparkSession spark, LogicalPlan plan, long most) {
        return Held.hold(spark, plan, rows(plan), most);
    }

    private static CachedRDDBuilder builder(LogicalPlan plan) {
        return ((InMemoryRelation) plan).cacheBuilder();
    }

    public static long bytes(LogicalPlan plan) {
        return HeldRows.bytes(builder(plan));
    }

    public static long rows(LogicalPlan plan) {
        return HeldRows.rows(builder(plan));
    }

    /** True while every block is in memory or on disk. */
    public static boolean present(SparkSession spark, LogicalPlan plan) {
        CachedRDDBuilder builder = builder(plan);
        if (!builder.isCachedColumnBuffersLoaded()) {
            return false;
        }
        RDD rdd = builder.cachedColumnBuffers();
        return rdd.getStorageLevel().isValid();
    }

    /**
     * Lets go of the rows. A query that was planned over them computes them again, for itself: after the builder's own
     * clearCache() it would hold them again, for nobody to let go of.
     */
    public static void drop(LogicalPlan plan) {
        Held.drop(plan);
        builder(plan).cachedColumnBuffers().unpersist(false);
    }
}
