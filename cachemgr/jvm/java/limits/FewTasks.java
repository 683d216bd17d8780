package relationalcache.limits;

import java.util.List;

import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Offset;
import org.apache.spark.sql.catalyst.plans.logical.ReturnAnswer;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CollectLimitExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;

import relationalcache.Hook;
import relationalcache.Scala;

/** Has a query's LIMIT run few tasks, however its rows are asked for: see `TakenRowsExec`. */
public final class FewTasks extends SparkStrategy {
    private static final Logger LOG = LoggerFactory.getLogger("relationalcache.FewTasks");
    /** So many rows the driver may hold of a query whose rows are iterated over. */
    private static final int MOST_ROWS = 10_000;

    private final SparkSession spark;

    private FewTasks(SparkSession spark) {
        this.spark = spark;
    }

    /** For a session's extensions. */
    public static final class Builder extends AbstractFunction1<org.apache.spark.sql.SparkSession, SparkStrategy> {
        @Override
        public SparkStrategy apply(org.apache.spark.sql.SparkSession session) {
            return new FewTasks((SparkSession) session);
        }
    }

    @Override
    public Seq<SparkPlan> apply(LogicalPlan plan) {
        if (!(plan instanceof ReturnAnswer answer) || !(answer.child() instanceof GlobalLimit || answer.child() instanceof Offset)
            || plan.isStreaming() || !Hook.allows(spark, FewFiles.SETTING)) {
            return Scala.seq(List.of());
        }
        try {
            return planned(plan);
        } catch (RuntimeException | LinkageError error) {
            LOG.warn("a LIMIT runs as Spark plans it: {}", error.toString());
            return Scala.seq(List.of());
        }
    }

    private Seq<SparkPlan> planned(LogicalPlan plan) {
        Seq<SparkPlan> planned = spark.sessionState().planner().SpecialLimits().apply(plan);
        if (planned.size() == 1 && planned.head().getClass() == CollectLimitExec.class) {
            CollectLimitExec limit = (CollectLimitExec) planned.head();
            int rows = limit.limit(); // those of an OFFSET among them
            if (rows >= 0 && rows <= MOST_ROWS) {
                return Scala.seq(List.of(limit.copy(rows, new TakenRowsExec(limit.child(), rows), limit.offset())));
            }
        }
        return Scala.seq(List.of());
    }
}
