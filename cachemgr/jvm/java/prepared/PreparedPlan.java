package relationalcache.prepared;

import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;

import relationalcache.Pins;
import relationalcache.Scala;
import relationalcache.local.Held;

/**
 * What stands for a part of a query of one shape, whatever its free constants are: an analysed plan in which a mark stands
 * for each of them. It keeps no session and no rows: of the sets that it reads it only knows where they are.
 */
final class PreparedPlan {
    /** It cannot be kept, or not be used any more. */
    static final class NotPrepared extends RuntimeException {
        NotPrepared(String why) {
            super(why, null, false, false);
        }
    }

    private final LogicalPlan template;
    private final List<WeakReference<InMemoryRelation>> sets = new ArrayList<>();
    /** The place of the constant that each mark stands for. */
    private final Map<Literal, Integer> places;

    /**
     * @param marked the plan over held sets, as `Grafter.finished` gives it, with marks
     * @param places the place of the constant that each mark stands for
     * @param held the held sets that it reads, as the application keeps them
     * @throws NotPrepared it has operators of other kinds, or a mark does not stand in it just once
     */
    PreparedPlan(LogicalPlan marked, Map<Literal, Integer> places, Collection<?> held) {
        this.places = places;
        this.template = withoutSets(marked, held);
        Map<Literal, Integer> counts = new HashMap<>();
        count(template, counts);
        for (Literal mark : places.keySet()) {
            if (counts.getOrDefault(mark, 0) != 1) {
                throw new NotPrepared("a constant has a say in more than one place, or in none");
            }
        }
    }

    private LogicalPlan withoutSets(LogicalPlan plan, Collection<?> held) {
        if (plan instanceof InMemoryRelation read) {
            for (Object each : held) {
                if (each instanceof InMemoryRelation known && known.cacheBuilder() == read.cacheBuilder()) {
                    sets.add(new WeakReference<>(known));
                    return stub(read);
                }
            }
        }
        if (!(plan instanceof Project || plan instanceof Filter || plan instanceof Aggregate)) {
            throw new NotPrepared("it has a " + plan.nodeName());
        }
        LogicalPlan child = (LogicalPlan) plan.children().head();
        return Scala.over(plan, List.of(withoutSets(child, held)));
    }

    @SuppressWarnings("unchecked")
    private static LogicalPlan stub(InMemoryRelation read) {
        scala.collection.immutable.Seq<?> none = Scala.seq(List.of());
        return new LocalRelation(
            read.output(), (scala.collection.immutable.Seq<InternalRow>) none, false, Scala.none());
    }

    private void count(LogicalPlan plan, Map<Literal, Integer> counts) {
        for (Object expression : Scala.list(plan.expressions())) {
            count((Expression) expression, counts);
        }
        for (Object child : Scala.list(plan.children())) {
            count((LogicalPlan) child, counts);
        }
    }

    private void count(Expression expression, Map<Literal, Integer> counts) {
        if (expression instanceof PlanExpression || !expression.deterministic()) {
            throw new NotPrepared("it has a subquery, or what is computed anew each time");
        }
        if (expression instanceof Literal literal && places.containsKey(literal)) {
            counts.merge(literal, 1, Integer::sum);
        }
        for (Object child : Scala.list(expression.children())) {
            count((Expression) child, counts);
        }
    }

    /**
     * The plan for other constants. All of it is new: its expressions' ids, its relations, and what a query notes on them.
     *
     * @throws NotPrepared a set that it reads is not held any more
     */
    LogicalPlan bound(SparkSession spark, Lifted lifted) {
        return new Binding(spark, lifted).plan(template);
    }

    private final class Binding {
        private final SparkSession spark;
        private final Lifted lifted;
        private final Map<ExprId, ExprId> ids = new HashMap<>();
        private int next = 0;

        Binding(SparkSession spark, Lifted lifted) {
            this.spark = spark;
            this.lifted = lifted;
        }

        LogicalPlan plan(LogicalPlan plan) {
            if (plan instanceof LocalRelation stub) {
                return set(stub);
            }
            LogicalPlan over = Scala.over(plan, List.of(plan((LogicalPlan) plan.children().head())));
            return (LogicalPlan) over.mapExpressions(new scala.runtime.AbstractFunction1<>() {
                @Override
                public Expression apply(Expression expression) {
                    return expression(expression);
                }
            });
        }

        private LogicalPlan set(LocalRelation stub) {
            InMemoryRelation held = sets.get(next++).get();
            if (held == null || !Held.holds(held) || !Pins.present(spark, held)) {
                throw new NotPrepared("its rows are not held any more");
            }
            LogicalPlan read = (LogicalPlan) held.newInstance();
            List<?> before = Scala.list(stub.output());
            List<?> now = Scala.list(read.output());
            for (int i = 0; i < before.size(); i++) {
                ids.put(((Attribute) before.get(i)).exprId(), ((Attribute) now.get(i)).exprId());
            }
            return read;
        }

        private ExprId id(ExprId before) {
            return ids.computeIfAbsent(before, unknown -> NamedExpression$.MODULE$.newExprId());
        }

        private Expression expression(Expression expression) {
            if (expression instanceof Literal literal) {
                Integer place = places.get(literal);
                return place == null ? literal : lifted.literal(place);
            }
            if (expression instanceof AttributeReference attribute) {
                return (Expression) attribute.withExprId(id(attribute.exprId()));
            }
            List<Object> children = new ArrayList<>();
            for (Object child : Scala.list(expression.children())) {
                children.add(expression((Expression) child));
            }
            if (expression instanceof Alias alias) {
                return new Alias(
                    (Expression) children.get(0), alias.name(), id(alias.exprId()), alias.qualifier(),
                    alias.explicitMetadata(), alias.nonInheritableMetadataKeys());
            }
            Expression over = Scala.over(expression, children);
            return over instanceof AggregateExpression a
                ? new AggregateExpression(a.aggregateFunction(), a.mode(), a.isDistinct(), a.filter(), id(a.resultId()))
                : over;
        }
    }
}
