package relationalcache;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.DirectShufflePartitionID;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.RepartitionByExpression;
import org.apache.spark.sql.catalyst.plans.physical.ShufflePartitionIdPassThrough;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.PlanLater;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.aggregate.HashAggregateExec;

/**
 * Groups that are to lie in certain partitions are sent there before they are put together, not after: one shuffle
 * where Spark plans two. That holds where the partition depends on nothing but what is grouped by, so that all parts
 * of a group are sent to the same one. Anything else is left to Spark's own strategies.
 *
 * Spark: org.apache.spark.sql.execution.SparkStrategies.Aggregation, whose plan this changes.
 */
public final class ShuffleOnce extends SparkStrategy {
    private final SparkSession own;

    /** For Python, which calls what is static by an instance. */
    public ShuffleOnce() {
        this(null);
    }

    private ShuffleOnce(SparkSession own) {
        this.own = own;
    }

    /** Has a session of ours plan so. */
    public static void set(SparkSession own) {
        List all = Scala.list(own.experimental().extraStrategies());
        all.add(0, new ShuffleOnce(own));
        own.experimental().extraStrategies_$eq((scala.collection.immutable.Seq) Scala.seq(all));
    }

    public scala.collection.immutable.Seq apply(LogicalPlan plan) {
        List found = new ArrayList();
        if (plan instanceof RepartitionByExpression && ((RepartitionByExpression) plan).child() instanceof Aggregate) {
            SparkPlan planned = planned((RepartitionByExpression) plan);
            if (planned != null) {
                found.add(planned);
            }
        }
        return Scala.seq(found);
    }

    private SparkPlan planned(RepartitionByExpression repartition) {
        List by = Scala.list(repartition.partitionExpressions());
        if (repartition.optNumPartitions().isEmpty() || by.size() != 1 || !(by.get(0) instanceof DirectShufflePartitionID)) {
            return null;
        }
        // Spark's own plan, which makes one of -0.0 and 0.0 among the keys, and of all NaN.
        List plans = Scala.list(own.sessionState().planner().Aggregation().apply(repartition.child()));
        if (plans.size() != 1 || !isPartialAndFinal((SparkPlan) plans.get(0))) {
            return null;
        }
        HashAggregateExec last = (HashAggregateExec) plans.get(0);
        List keys = Scala.list(last.groupingExpressions());
        Expression place = overKeys(
            ((DirectShufflePartitionID) by.get(0)).child(), keys, Scala.list(last.resultExpressions()));
        if (keys.isEmpty() || place == null) {
            return null;
        }
        SparkPlan sent = Exchange.of(
            new ShufflePartitionIdPassThrough(
                new DirectShufflePartitionID(place), ((Integer) repartition.optNumPartitions().get()).intValue()),
            last.child());
        // That all parts of a group are in one partition is known here, and not to Spark, which would shuffle once more.
        return last.copy(
            Scala.none(), last.isStreaming(), last.numShufflePartitions(), last.groupingExpressions(),
            last.aggregateExpressions(), last.aggregateAttributes(), last.initialInputBufferOffset(),
            last.resultExpressions(), sent);
    }

    /** Two halves, and nothing between them or below: no DISTINCT, and no function that has no halves. */
    private static boolean isPartialAndFinal(SparkPlan plan) {
        if (!(plan instanceof HashAggregateExec) || !(((HashAggregateExec) plan).child() instanceof HashAggregateExec)) {
            return false; // others want their rows sorted, or fall back to it
        }
        HashAggregateExec first = (HashAggregateExec) ((HashAggregateExec) plan).child();
        return first.child() instanceof PlanLater;
    }

    /** An expression over an aggregation's output as one over what it groups by; null where it reads anything else. */
    private static Expression overKeys(Expression place, List keys, List results) {
        Map known = new HashMap();
        List grouped = new ArrayList();
        for (Object key : keys) {
            Attribute attribute = ((NamedExpression) key).toAttribute();
            grouped.add(attribute.exprId());
            known.put(attribute.exprId(), attribute);
        }
        for (Object result : results) {
            if (result instanceof Alias) {
                known.put(((Alias) result).exprId(), ((Alias) result).child());
            }
        }
        Expression found = replaced(place, known);
        if (found == null || !found.deterministic()) {
            return null;
        }
        for (Object read : Scala.list(found.references().toSeq())) {
            if (!grouped.contains(((Attribute) read).exprId())) {
                return null;
            }
        }
        return found;
    }

    private static Expression replaced(Expression expression, Map known) {
        if (expression instanceof Attribute) {
            return (Expression) known.get(((Attribute) expression).exprId());
        }
        List children = new ArrayList();
        for (Object child : Scala.list(expression.children())) {
            Expression over = replaced((Expression) child, known);
            if (over == null) {
                return null;
            }
            children.add(over);
        }
        return Scala.over(expression, children);
    }
}
