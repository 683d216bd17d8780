package relationalcache.results;

import java.util.Set;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;

import scala.Option;

/** Results that are not worth files: few rows, as a plan proves without running the query. */
final class FewRows {
    static final long MOST = 10_000;
    private static final long MOST_BYTES = 16 << 20;
    /** What makes no more rows than it is given, or one of none. */
    private static final Set<String> NEVER_MORE = Set.of(
        "ProjectExec", "FilterExec", "SortExec", "HashAggregateExec", "ObjectHashAggregateExec", "SortAggregateExec",
        "WindowExec", "WindowGroupLimitExec", "WholeStageCodegenExec", "InputAdapter", "AQEShuffleReadExec",
        "ColumnarToRowExec", "GlobalLimitExec", "LocalLimitExec", "CollectLimitExec", "TakeOrderedAndProjectExec");

    private FewRows() {
    }

    static boolean proves(LogicalPlan query) {
        Option<Object> most = query.maxRows();
        return most.isDefined() && ((Number) most.get()).longValue() <= MOST;
    }

    /** Runs the shuffles of a plan that Spark adapts: how many rows the last of them has is known then. */
    static boolean proves(SparkPlan plan) {
        SparkPlan below = plan instanceof AdaptiveSparkPlanExec ? ((AdaptiveSparkPlanExec) plan).finalPhysicalPlan() : plan;
        while (!(below instanceof QueryStageExec)) {
            if (!NEVER_MORE.contains(below.getClass().getSimpleName()) || below.children().size() != 1) {
                return false;
            }
            below = below.children().head();
        }
        Option<Statistics> told = ((QueryStageExec) below).computeStats();
        return told.isDefined() && told.get().rowCount().isDefined()
            && told.get().rowCount().get().$less$eq(scala.math.BigInt.apply(MOST))
            && told.get().sizeInBytes().$less$eq(scala.math.BigInt.apply(MOST_BYTES));
    }
}
