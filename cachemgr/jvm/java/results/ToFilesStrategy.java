package relationalcache.results;

import java.util.List;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ReturnAnswer;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.PlanLater;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;

import scala.runtime.AbstractFunction1;

import relationalcache.Scala;

/**
 * Has the rows of a Thrift client's query come from files, where `spark.cachemgr.results.toFiles` says so.
 *
 * The server plans what it will fetch by `QueryExecution.toString`, after `session.sql` has returned it and before it
 * decides how to fetch: at that moment the query is decided, optimised and about to be planned as the client's own. So
 * nothing that `session.sql` does meanwhile (commands, views, EXPLAIN) is touched, and names and types are the query's.
 */
public final class ToFilesStrategy extends SparkStrategy {
    private final SparkSession spark;

    private ToFilesStrategy(SparkSession spark) {
        this.spark = spark;
    }

    /** For a session's extensions. */
    public static final class Builder extends AbstractFunction1<org.apache.spark.sql.SparkSession, SparkStrategy> {
        @Override
        public SparkStrategy apply(org.apache.spark.sql.SparkSession session) {
            return new ToFilesStrategy((SparkSession) session);
        }
    }

    @Override
    public scala.collection.immutable.Seq<SparkPlan> apply(LogicalPlan plan) {
        if (plan instanceof ReturnAnswer && Answers.areOn(spark)) {
            LogicalPlan query = ((ReturnAnswer) plan).child();
            Answer answer = Answers.begin(spark, query);
            if (answer != null) {
                return Scala.seq(List.of(new ToFilesExec(new PlanLater(query), answer)));
            }
        }
        return Scala.seq(List.of());
    }
}
