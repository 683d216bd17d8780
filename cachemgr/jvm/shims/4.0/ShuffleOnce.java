package relationalcache;

import org.apache.spark.sql.classic.SparkSession;

/** This Spark cannot be told which partition a row goes to (`DirectShufflePartitionID` is of 4.1), and shuffles twice. */
public final class ShuffleOnce {
    /** For Python, which calls what is static by an instance. */
    public ShuffleOnce() {
    }

    public static void set(SparkSession own) {
    }
}
