package relationalcache;

import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;

import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreePattern;

/** What stands below a node of a plan: its children, and the queries of EXISTS, IN and scalar subqueries in it. */
public final class EachQuery extends scala.runtime.AbstractPartialFunction<Expression, Expression> {
    private final UnaryOperator<LogicalPlan> made;

    private EachQuery(UnaryOperator<LogicalPlan> made) {
        this.made = made;
    }

    /** The node over what is made of each; the node itself where they are the ones that it has. */
    public static LogicalPlan below(LogicalPlan plan, UnaryOperator<LogicalPlan> made) {
        List<LogicalPlan> children = new ArrayList<>();
        for (Object child : Scala.list(plan.children())) {
            children.add(made.apply((LogicalPlan) child));
        }
        LogicalPlan found = over(plan, children);
        if (found.expressions().exists(each -> ((TreeNode<?>) each).containsPattern(TreePattern.PLAN_EXPRESSION()))) {
            found = (LogicalPlan) found.transformExpressions(new EachQuery(made));
        }
        return found;
    }

    /** The node, with its tags, over other children; the node itself where they are the ones that it has. */
    public static LogicalPlan over(LogicalPlan plan, List<LogicalPlan> children) {
        LogicalPlan found = Scala.over(plan, children);
        if (found != plan) {
            found.copyTagsFrom(plan);
        }
        return found;
    }

    @Override
    public boolean isDefinedAt(Expression expression) {
        return expression instanceof SubqueryExpression;
    }

    @Override
    public <A extends Expression, B> B applyOrElse(A expression, scala.Function1<A, B> otherwise) {
        if (!isDefinedAt(expression)) {
            return otherwise.apply(expression);
        }
        SubqueryExpression subquery = (SubqueryExpression) expression;
        LogicalPlan query = made.apply(subquery.plan());
        @SuppressWarnings("unchecked")
        B found = (B) (query == subquery.plan() ? subquery : subquery.withNewPlan(query));
        return found;
    }
}
