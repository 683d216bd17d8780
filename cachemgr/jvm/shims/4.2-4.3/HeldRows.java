package relationalcache;

import org.apache.spark.sql.execution.columnar.CachedRDDBuilder;

/** What is told of rows that were held when they were computed. */
final class HeldRows {
    private HeldRows() {
    }

    static long bytes(CachedRDDBuilder builder) {
        return builder.materializedSizeInBytes();
    }

    static long rows(CachedRDDBuilder builder) {
        return builder.materializedRowCount();
    }
}
