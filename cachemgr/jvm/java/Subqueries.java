package relationalcache;

import java.util.ArrayList;
import java.util.List;

import org.apache.spark.sql.catalyst.expressions.Exists;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ListQuery;
import org.apache.spark.sql.catalyst.expressions.ScalarSubquery;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.optimizer.InlineCTE;
import org.apache.spark.sql.catalyst.optimizer.PullupCorrelatedPredicates$;
import org.apache.spark.sql.catalyst.optimizer.RewriteNonCorrelatedExists$;
import org.apache.spark.sql.catalyst.plans.InnerLike;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
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

    /**
     * The queries in an analysed plan that Spark optimises apart and of which the plan document has nothing: those of
     * scalar subqueries that no row changes (so is an EXISTS of which the same holds), and those of EXISTS and IN that
     * stand where rows are not filtered.
     */
    static final class Apart {
        final List scalars = new ArrayList();
        final List tests = new ArrayList();

        Apart(LogicalPlan analysed) {
            add(new InlineCTE(true, false).apply(analysed));
        }

        private void add(LogicalPlan plan) {
            LogicalPlan apart = PullupCorrelatedPredicates$.MODULE$.apply(RewriteNonCorrelatedExists$.MODULE$.apply(plan));
            addAll(apart);
        }

        private void addAll(LogicalPlan plan) {
            List expressions = Scala.list(plan.expressions());
            for (int i = 0; i < expressions.size(); i++) {
                add((Expression) expressions.get(i), filters(plan));
            }
            List children = Scala.list(plan.children());
            for (int i = 0; i < children.size(); i++) {
                addAll((LogicalPlan) children.get(i));
            }
        }

        /** The optimiser makes a Filter of the conditions of such joins. */
        private static boolean filters(LogicalPlan plan) {
            JoinType kind = plan instanceof Join ? ((Join) plan).joinType() : null;
            return plan instanceof Filter || kind instanceof InnerLike || kind instanceof LeftSemi$;
        }

        private void add(Expression expression, boolean filters) {
            if (expression instanceof SubqueryExpression) {
                SubqueryExpression subquery = (SubqueryExpression) expression;
                if (expression instanceof ScalarSubquery) {
                    if (!subquery.isCorrelated()) {
                        scalars.add(subquery.plan());
                    }
                } else if (!filters && (expression instanceof Exists || expression instanceof ListQuery)) {
                    tests.add(subquery.plan());
                }
                add(subquery.plan());
            }
            List children = Scala.list(expression.children());
            for (int i = 0; i < children.size(); i++) {
                add((Expression) children.get(i), filters);
            }
        }
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
