package relationalcache;

import java.util.ArrayList;
import java.util.List;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.Average;
import org.apache.spark.sql.catalyst.expressions.aggregate.CentralMomentAgg;
import org.apache.spark.sql.catalyst.expressions.aggregate.CollectSet;
import org.apache.spark.sql.catalyst.expressions.aggregate.Covariance;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.expressions.aggregate.PearsonCorrelation;
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.StringType;

/** What an aggregation or a window function shows of the order of the rows below it. */
public final class Order {
    public Order() {
    }

    /** True if FLOAT or DOUBLE values are added: the last digits depend on the order of the rows. */
    public static boolean addsFloats(LogicalPlan plan) {
        return any(Scala.list(plan.expressions()), true);
    }

    /**
     * True if one of several values that are equal and not the same is shown, -0.0 or 0.0, 'a' or 'A': the one that
     * comes first.
     */
    public static boolean picksAmongEquals(LogicalPlan plan) {
        return plan instanceof Aggregate && collated(Scala.list(((Aggregate) plan).groupingExpressions()))
            || any(Scala.list(plan.expressions()), false);
    }

    /**
     * The ids of the attributes of whole numbers that are averaged, null among them for what is computed: Spark adds
     * them in DOUBLE.
     */
    public static List averaged(LogicalPlan plan) {
        List ids = new ArrayList();
        gatherAveraged(Scala.list(plan.expressions()), ids);
        return ids;
    }

    private static void gatherAveraged(List expressions, List ids) {
        for (int i = 0; i < expressions.size(); i++) {
            Expression e = (Expression) expressions.get(i);
            if (e instanceof AggregateExpression && (Object) ((AggregateExpression) e).aggregateFunction() instanceof Average) {
                Expression argument = ((Average) (Object) ((AggregateExpression) e).aggregateFunction()).child();
                if (argument.dataType() instanceof IntegralType) {
                    ids.add(attribute(argument));
                }
            }
            gatherAveraged(Scala.list(e.children()), ids);
        }
    }

    /** The id of an attribute, whatever kind of whole number it is cast to; null for anything else. */
    private static ExprId attribute(Expression e) {
        Expression found = e;
        while (found instanceof Cast && ((Cast) found).child().dataType() instanceof IntegralType) {
            found = ((Cast) found).child();
        }
        return found instanceof Attribute ? ((Attribute) found).exprId() : null;
    }

    private static boolean any(List expressions, boolean sums) {
        for (int i = 0; i < expressions.size(); i++) {
            Expression e = (Expression) expressions.get(i);
            if (e instanceof AggregateExpression) {
                Expression function = (Expression) ((AggregateExpression) e).aggregateFunction();
                if (sums ? adds(function) : picks(function)) {
                    return true;
                }
            }
            if (any(Scala.list(e.children()), sums)) {
                return true;
            }
        }
        return false;
    }

    private static boolean picks(Expression function) {
        if (!(function instanceof Min || function instanceof Max || function instanceof CollectSet)) {
            return false;
        }
        List arguments = Scala.list(function.children());
        return ofFloats(arguments) || collated(arguments);
    }

    private static boolean collated(List expressions) {
        for (int i = 0; i < expressions.size(); i++) {
            Object type = ((Expression) expressions.get(i)).dataType();
            if (type instanceof StringType && !((StringType) type).supportsBinaryEquality()) {
                return true;
            }
        }
        return false;
    }

    private static boolean adds(Expression function) {
        if (function instanceof CentralMomentAgg || function instanceof Covariance || function instanceof PearsonCorrelation
            || function.getClass().getSimpleName().startsWith("Regr")) {
            return true;
        }
        return (function instanceof Sum || function instanceof Average) && ofFloats(Scala.list(function.children()));
    }

    private static boolean ofFloats(List arguments) {
        for (int i = 0; i < arguments.size(); i++) {
            Object type = ((Expression) arguments.get(i)).dataType();
            if (type instanceof DoubleType || type instanceof FloatType) {
                return true;
            }
        }
        return false;
    }
}
