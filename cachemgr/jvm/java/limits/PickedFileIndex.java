package relationalcache.limits;

import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionSet$;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.files.TahoeBatchFileIndex;
import org.apache.spark.sql.delta.stats.DataSize;
import org.apache.spark.sql.delta.stats.DeltaScan;
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex;

import scala.collection.immutable.Seq;

import relationalcache.Scala;

/** The files that a LIMIT reads, whatever filters Spark asks for: those of its query are of partitions, and tried here. */
final class PickedFileIndex extends PreparedDeltaFileIndex {
    private static final long serialVersionUID = 1L;

    /**
     * @param index the table as Delta has prepared it
     * @param scan the files to read of it, of the same version
     */
    PickedFileIndex(PreparedDeltaFileIndex index, DeltaScan scan) {
        super(index.spark(), index.deltaLog(), index.path(), index.catalogTableOpt(), scan, index.versionScanned());
    }

    /**
     * Files of a table as the result of a scan. It tells no rows, and so is never equal to one of Delta's, which Spark would
     * leave in its place.
     */
    static DeltaScan scan(DeltaScan scan, Seq<AddFile> files, Object bytes) {
        DataSize size = new DataSize(Scala.some(bytes), Scala.none(), Scala.some((long) files.size()), Scala.none());
        return new DeltaScan(
            scan.version(), files, scan.total(), scan.partition(), size, scan.scannedSnapshot(), scan.partitionFilters(),
            scan.dataFilters(), scan.partitionLikeDataFilters(), scan.rewrittenPartitionLikeDataFilters(),
            scan.unusedFilters(), scan.scanDurationMs(), scan.dataSkippingType());
    }

    @Override
    public Seq<AddFile> matchingFiles(Seq<Expression> partitionFilters, Seq<Expression> dataFilters) {
        Seq<AddFile> files = preparedScan().files();
        boolean areTried = ExpressionSet$.MODULE$.apply(partitionFilters).equals(preparedScan().partitionFilters());
        if (areTried || isTrue(partitionFilters)) {
            return files;
        }
        return new TahoeBatchFileIndex(spark(), "batch", files, deltaLog(), path(), preparedScan().scannedSnapshot(), false)
            .matchingFiles(partitionFilters, dataFilters);
    }

    private static boolean isTrue(Seq<Expression> filters) {
        for (Object each : Scala.list(filters)) {
            if (!(each instanceof Literal literal && Boolean.TRUE.equals(literal.value()))) {
                return false;
            }
        }
        return true;
    }
}
