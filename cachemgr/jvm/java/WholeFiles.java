package relationalcache;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * A cache's table, each of whose files has to be there and whole. A session may have Spark pass over files that are not:
 * of its own tables, and not of a cache, which it knows nothing of and whose rows stand for others that are there.
 */
final class WholeFiles {
    private WholeFiles() {
    }

    /** The relation, read so whatever the session's settings say. */
    static LogicalPlan over(LogicalPlan plan) {
        LogicalRelation relation = (LogicalRelation) plan;
        HadoopFsRelation files = (HadoopFsRelation) relation.relation();
        scala.collection.immutable.Map options = (scala.collection.immutable.Map) files.options()
            .updated("ignoreMissingFiles", "false").updated("ignoreCorruptFiles", "false");
        HadoopFsRelation whole = files.copy(files.location(), files.partitionSchema(), files.dataSchema(),
            files.bucketSpec(), files.fileFormat(), options, files.sparkSession());
        return relation.copy(whole, relation.output(), relation.catalogTable(), relation.isStreaming(), relation.stream());
    }
}
