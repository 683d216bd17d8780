package relationalcache;

import java.util.List;

import org.apache.spark.sql.catalyst.expressions.Exists;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ListQuery;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreePattern$;

/**
 * The queries of EXISTS and IN, asked about once more. Spark optimises each subquery on its own first, where nothing tells
 * whether all of its rows are wanted, or each once is enough; in the query around it, the expression that holds it does.
 * Only those are asked about of which the decider said then that a cache would serve.
 */
public final class Subqueries extends scala.runtime.AbstractFunction1 {
    private final Asker asker;

    /** Gives what is to run instead of a query whose rows are wanted once each, or the query itself. */
    public interface Asker {
        LogicalPlan askOnce(LogicalPlan query);
    }

    private Subqueries(Asker asker) {
        this.asker = asker;
    }

    public static LogicalPlan replaced(LogicalPlan plan, Asker asker) {
        if (!plan.containsPattern(TreePattern$.MODULE$.PLAN_EXPRESSION())) {
            return plan;
        }
        if (!plan.subqueries().isEmpty()) {
            plan = (LogicalPlan) plan.mapExpressions(new Subqueries(asker));
        }
        List children = Scala.list(plan.children());
        for (int i = 0; i < children.size(); i++) {
            children.set(i, replaced((LogicalPlan) children.get(i), asker));
        }
        return Scala.over(plan, children);
    }

    public Object apply(Object expression) {
        return replaced((Expression) expression);
    }

    private Expression replaced(Expression expression) {
        List children = Scala.list(expression.children());
        for (int i = 0; i < children.size(); i++) {
            children.set(i, replaced((Expression) children.get(i)));
        }
        Expression result = Scala.over(expression, children);
        if (result instanceof Exists || result instanceof ListQuery) {
            LogicalPlan query = (LogicalPlan) ((SubqueryExpression) result).plan();
            if (isMarked(query)) {
                unmark(query);
                LogicalPlan found = asker.askOnce(query);
                return found == query ? result : (Expression) ((SubqueryExpression) result).withNewPlan(found);
            }
        }
        return result;
    }

    public static void mark(LogicalPlan plan) {
        List leaves = Scala.list(plan.collectLeaves());
        for (int i = 0; i < leaves.size(); i++) {
            ((LogicalPlan) leaves.get(i)).setTagValue(Tags.SERVED_ONCE, Boolean.TRUE);
        }
    }

    private static void unmark(LogicalPlan plan) {
        List leaves = Scala.list(plan.collectLeaves());
        for (int i = 0; i < leaves.size(); i++) {
            ((LogicalPlan) leaves.get(i)).unsetTagValue(Tags.SERVED_ONCE);
        }
    }

    private static boolean isMarked(LogicalPlan plan) {
        List leaves = Scala.list(plan.collectLeaves());
        for (int i = 0; i < leaves.size(); i++) {
            if (!((LogicalPlan) leaves.get(i)).getTagValue(Tags.SERVED_ONCE).isDefined()) {
                return false;
            }
        }
        return !leaves.isEmpty();
    }
}
