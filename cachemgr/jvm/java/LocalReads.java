package relationalcache;

import java.util.List;

import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * Relations over files of this machine, read without Parquet's vectored reads.
 *
 * They let a storage far away fetch several ranges of a file at once. Hadoop's own file system for this machine has a new
 * thread for each range, and to start it takes longer than to read: a table of many small files takes twice as long.
 */
public final class LocalReads {
    private static final String VECTORED = "parquet.hadoop.vectored.io.enabled";

    private LocalReads() {
    }

    /** The plan with each of its relations over files here read so; what somebody has set for all reads stands. */
    static LogicalPlan over(LogicalPlan plan) {
        if (plan instanceof LogicalRelation) {
            LogicalRelation relation = (LogicalRelation) plan;
            if (!(relation.relation() instanceof HadoopFsRelation)) {
                return plan;
            }
            HadoopFsRelation files = (HadoopFsRelation) relation.relation();
            if (!isHere((Path) files.location().rootPaths().head()) || isSet(files.sparkSession())) {
                return plan;
            }
            return relation.copy(plain(files), relation.output(), relation.catalogTable(), relation.isStreaming(),
                relation.stream());
        }
        List children = Scala.list(plan.children());
        for (int i = 0; i < children.size(); i++) {
            children.set(i, over((LogicalPlan) children.get(i)));
        }
        return Scala.over(plan, children);
    }

    /** The same of a table of which Delta makes the relation itself, in a session of ours. */
    static void set(SparkSession spark, String location) {
        if (isHere(Tables.path(location)) && !isSet(spark)) {
            spark.conf().set(VECTORED, "false");
        }
    }

    private static boolean isHere(Path place) {
        String scheme = place.toUri().getScheme();
        return scheme == null || scheme.equals("file");
    }

    private static boolean isSet(org.apache.spark.sql.SparkSession spark) {
        return spark.sparkContext().hadoopConfiguration().get(VECTORED) != null
            || spark.conf().getOption(VECTORED).isDefined();
    }

    private static HadoopFsRelation plain(HadoopFsRelation files) {
        scala.collection.immutable.Map options = (scala.collection.immutable.Map) files.options().updated(VECTORED, "false");
        return files.copy(files.location(), files.partitionSchema(), files.dataSchema(), files.bucketSpec(),
            files.fileFormat(), options, files.sparkSession());
    }
}
