package relationalcache.pruning;

import java.util.ArrayList;
import java.util.List;

import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningExpression;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.files.TahoeLogFileIndex;
import org.apache.spark.sql.delta.stats.DataSize;
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.InSubqueryExec;
import org.apache.spark.sql.execution.QueryExecution$;
import org.apache.spark.sql.execution.ScanFileListing;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SubqueryBroadcastExec;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.internal.SQLConf;

import relationalcache.Scala;

/**
 * Which files a plan opens of how many: before it runs, what planning has chosen, of which dynamic pruning may leave out
 * more; after it has run, what its scans say of themselves. Nothing is looked up for that: Delta's rule has chosen the files
 * when a plan is optimised, and the numbers are those that Spark's own scans show as metrics.
 */
public final class FilesOpened {
    public FilesOpened() {
    }

    /**
     * The scans of an optimised plan as it would be planned, and what becomes of dynamic pruning, as JSON: {"scans": [{"name",
     * "held", "files", "ofFiles", "bytes", "ofBytes", "partitions", "dynamic"}, …], "dynamic": [{"key", "outcome"}, …]}.
     */
    public static String planned(SparkSession spark, LogicalPlan optimised) {
        SparkPlan plan = (SparkPlan) spark.sessionState().planner().plan(optimised).next();
        // without AQE, which plans the same scans a stage at a time
        SparkPlan prepared = QueryExecution$.MODULE$.prepareExecutedPlan(spark, plan);
        List<DynamicPruning> dynamic = DynamicPruning.missing(optimised, spark.sessionState().conf());
        return told(prepared, spark.sessionState().conf(), dynamic);
    }

    /** The same of a plan that has run. */
    public static String ran(SparkPlan executed) {
        return told(executed, null, new ArrayList<>());
    }

    /** `conf` is null where the plan has run: whether its dynamic pruning was worth it is over then. */
    private static String told(SparkPlan plan, SQLConf conf, List<DynamicPruning> missing) {
        List<SparkPlan> leaves = new ArrayList<>();
        collect(plan, leaves);
        List<DynamicPruning> found = new ArrayList<>();
        StringBuilder out = new StringBuilder("{\"scans\":[");
        for (int i = 0; i < leaves.size(); i++) {
            out.append(i > 0 ? "," : "");
            if (leaves.get(i) instanceof FileSourceScanExec) {
                FileSourceScanExec scan = (FileSourceScanExec) leaves.get(i);
                List<DynamicPruning> own = outcomes(scan, conf);
                found.addAll(own);
                scan(out, scan, conf == null, own.stream().anyMatch(DynamicPruning::prunes));
            } else {
                out.append("{\"name\":");
                Scala.quote(out, DynamicPruning.nameOf(((InMemoryTableScanExec) leaves.get(i)).relation()));
                out.append(",\"held\":true}");
            }
        }
        found.addAll(missing);
        out.append("],\"dynamic\":[");
        for (int i = 0; i < found.size(); i++) {
            found.get(i).write(i > 0 ? out.append(',') : out);
        }
        return out.append("]}").toString();
    }

    private static void collect(SparkPlan plan, List<SparkPlan> into) {
        if (plan instanceof AdaptiveSparkPlanExec) {
            collect(((AdaptiveSparkPlanExec) plan).executedPlan(), into);
            return;
        }
        if (plan instanceof QueryStageExec) {
            collect(((QueryStageExec) plan).plan(), into);
            return;
        }
        if (plan instanceof ReusedExchangeExec) {
            return; // which is read where it is made
        }
        if (plan instanceof FileSourceScanExec || plan instanceof InMemoryTableScanExec) {
            into.add(plan);
        }
        for (Object child : Scala.list(plan.children())) {
            collect((SparkPlan) child, into);
        }
        for (Object subquery : Scala.list(plan.subqueries())) {
            // those of dynamic pruning read what the join reads, mostly by the same broadcast
            if (!(plan instanceof FileSourceScanExec)) {
                collect((SparkPlan) subquery, into);
            }
        }
    }

    private static void scan(StringBuilder out, FileSourceScanExec scan, boolean ran, boolean dynamic) {
        long files;
        long bytes;
        long partitions;
        if (ran) {
            files = metric(scan, "numFiles");
            bytes = metric(scan, "filesSize");
            partitions = metric(scan, "numPartitions");
        } else {
            ScanFileListing listing = scan.selectedPartitions();
            files = listing.totalNumberOfFiles();
            bytes = listing.totalFileSize();
            partitions = scan.relation().partitionSchema().isEmpty() ? -1 : listing.partitionCount();
        }
        out.append("{\"name\":");
        Scala.quote(out, nameOf(scan));
        out.append(",\"held\":false,\"files\":").append(files).append(",\"bytes\":").append(bytes);
        number(out.append(",\"partitions\":"), partitions);
        long[] all = all(scan.relation().location());
        number(out.append(",\"ofFiles\":"), all[0]);
        number(out.append(",\"ofBytes\":"), all[1]);
        out.append(",\"dynamic\":").append(dynamic).append('}');
    }

    /** Files and bytes of the table; -1 where nobody has counted them. */
    private static long[] all(FileIndex index) {
        if (index instanceof PreparedDeltaFileIndex) {
            DataSize total = ((PreparedDeltaFileIndex) index).preparedScan().total();
            return new long[] {number(total.files()), number(total.bytesCompressed())};
        }
        if (index instanceof InMemoryFileIndex) {
            return new long[] {((InMemoryFileIndex) index).allFiles().size(), index.sizeInBytes()};
        }
        return new long[] {-1, index instanceof TahoeLogFileIndex ? index.sizeInBytes() : -1};
    }

    private static long number(scala.Option option) {
        return option.isDefined() ? ((Number) option.get()).longValue() : -1;
    }

    private static long metric(FileSourceScanExec scan, String name) {
        scala.Option found = scan.metrics().get(name);
        return found.isDefined() ? ((SQLMetric) found.get()).value() : -1;
    }

    private static void number(StringBuilder out, long value) {
        if (value < 0) {
            out.append("null");
        } else {
            out.append(value);
        }
    }

    private static String nameOf(FileSourceScanExec scan) {
        if (scan.tableIdentifier().isDefined()) {
            return ((TableIdentifier) scan.tableIdentifier().get()).unquotedString();
        }
        return DynamicPruning.nameOf(scan.relation());
    }

    private static List<DynamicPruning> outcomes(FileSourceScanExec scan, SQLConf conf) {
        List<DynamicPruning> found = new ArrayList<>();
        for (Object filter : Scala.list(scan.partitionFilters())) {
            if (filter instanceof DynamicPruningExpression) {
                found.add(outcome(nameOf(scan), ((DynamicPruningExpression) filter).child(), conf));
            }
        }
        return found;
    }

    private static DynamicPruning outcome(String table, Expression made, SQLConf conf) {
        if (made instanceof Literal) { // Spark had hoped for a broadcast
            boolean never = conf != null && !conf.dynamicPartitionPruningReuseBroadcastOnly();
            return new DynamicPruning(table, null, never ? DynamicPruning.NO_BENEFIT : DynamicPruning.REUSE_ONLY);
        }
        if (!(made instanceof InSubqueryExec)) {
            return new DynamicPruning(table, null, DynamicPruning.FILTER_QUERY);
        }
        InSubqueryExec in = (InSubqueryExec) made;
        QueryPlan<?> plan = in.plan();
        String key = in.child().sql();
        return new DynamicPruning(
            table, key, plan instanceof SubqueryBroadcastExec ? DynamicPruning.BROADCAST : DynamicPruning.FILTER_QUERY);
    }
}
