package relationalcache.results;

import java.util.List;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CollectLimitExec;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike;

import relationalcache.Scala;
import relationalcache.limits.TakenRowsExec;

/** The first rows of a query with a LIMIT, as a grid asks for them, without a look at more partitions than they need. */
public final class Preview {
    /**
     * The rows of a query with a LIMIT, as a query over what was computed; null where the query is to run as ever, since it
     * has to look at all of its rows, or has few partitions.
     *
     * @param jobs how many run at once, at least one
     * @param growth of the partitions of a job after so many jobs, at least 1
     */
    public static Dataset taken(Dataset rows, int jobs, double growth) {
        QueryExecution execution = rows.queryExecution();
        SparkPlan plan = execution.executedPlan();
        if (!(plan instanceof CollectLimitExec || plan instanceof AdaptiveSparkPlanExec)) {
            return null;
        }
        // in the execution that Spark's listeners see
        scala.Function0<Dataset> run = () -> computed(rows.sparkSession(), execution, jobs, growth);
        return SQLExecution.withNewExecutionId(execution, Scala.some("preview"), run);
    }

    private static Dataset computed(SparkSession spark, QueryExecution execution, int jobs, double growth) {
        SparkPlan plan = execution.executedPlan();
        if (plan instanceof AdaptiveSparkPlanExec adaptive) {
            plan = adaptive.finalPhysicalPlan(); // what lies below runs whole in any case
        }
        if (!(plan instanceof CollectLimitExec taking)) {
            return null;
        }
        SparkPlan below = taking.child() instanceof TakenRowsExec ? taking.child().children().head() : taking.child();
        // which counts the rows of an OFFSET, and all of them are held here
        if (taking.limit() <= 0 || taking.limit() > FewRows.MOST + 1 || shuffles(below)) {
            return null;
        }
        RDD<InternalRow> partitions = below.execute();
        if (partitions.getNumPartitions() <= 1) {
            return null;
        }
        List<InternalRow> found = new ConcurrentTake(spark, below, partitions, taking.limit(), jobs, growth).rows();
        List<InternalRow> kept = found.subList(Math.min(taking.offset(), found.size()), found.size());
        return Dataset.ofRows(
            spark, new LocalRelation(execution.analyzed().output(), Scala.seq(kept), false, Scala.none()));
    }

    /** Whether the first job would have to compute all rows. What Spark has adapted is computed, and has none left. */
    private static boolean shuffles(SparkPlan plan) {
        for (Object child : Scala.list(plan.children())) {
            if (shuffles((SparkPlan) child)) {
                return true;
            }
        }
        return plan instanceof ShuffleExchangeLike;
    }
}
