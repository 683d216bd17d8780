package relationalcache.local;

import java.util.List;
import java.util.Set;

import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.types.NullType;

import relationalcache.Scala;

/**
 * The expressions that are evaluated here, as Spark itself does without generated code. Each is a pure function of its
 * children that keeps nothing between rows, takes a bounded time, and gives nothing much larger than it was given.
 */
final class Allowed {
    private static final String PACKAGE = "org.apache.spark.sql.catalyst.expressions.";
    private static final Set<String> EXPRESSIONS = Set.of(
        // values
        "Literal", "AttributeReference", "BoundReference", "Alias", "Cast", "ToPrettyString", "KnownNotNull", "KnownNullable",
        // predicates
        "And", "Or", "Not", "EqualTo", "EqualNullSafe", "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual",
        "In", "InSet", "IsNull", "IsNotNull",
        // choices
        "If", "CaseWhen", "Coalesce", "Greatest", "Least",
        // numbers
        "Add", "Subtract", "Multiply", "Divide", "IntegralDivide", "Remainder", "Pmod", "UnaryMinus", "UnaryPositive", "Abs",
        "CheckOverflow", "CheckOverflowInSum", "DecimalDivideWithOverflowCheck", "DecimalAddNoOverflowCheck", "MakeDecimal",
        "UnscaledValue", "Round", "BRound", "Ceil", "Floor", "RoundCeil", "RoundFloor",
        // times
        "Year", "Quarter", "Month", "DayOfMonth", "DayOfWeek", "WeekDay", "DayOfYear", "WeekOfYear", "Hour", "Minute",
        "Second", "DateAdd", "DateSub", "DateDiff", "AddMonths", "LastDay", "TruncDate", "TruncTimestamp",
        // strings
        "Upper", "Lower", "Substring", "Concat", "Length", "StringTrim", "StringTrimLeft", "StringTrimRight", "StartsWith",
        "EndsWith", "Contains");
    private static final Set<String> AGGREGATES = Set.of("Sum", "Count", "Min", "Max", "Average");

    private Allowed() {
    }

    /** What of an expression, aggregates left out, is not evaluated here; null if nothing. */
    static String refused(Expression expression) {
        String name = expression.getClass().getName();
        if (!name.startsWith(PACKAGE) || !EXPRESSIONS.contains(name.substring(PACKAGE.length()))) {
            return expression.getClass().getSimpleName();
        }
        if (!(expression.dataType() instanceof NullType) && !HeldTable.holds(expression.dataType())) {
            return expression.dataType().sql();
        }
        if (expression instanceof In in && !HeldTable.isKey(in.value().dataType())
            || expression instanceof InSet set && !HeldTable.isKey(set.child().dataType())) {
            return "IN over " + ((Expression) expression.children().head()).dataType().sql();
        }
        List<?> children = Scala.list(expression.children());
        for (Object child : children) {
            String found = refused((Expression) child);
            if (found != null) {
                return found;
            }
        }
        return null;
    }

    /** What of an aggregate's call is not evaluated here; null if nothing. What its steps compute is asked about apart. */
    static String refused(AggregateExpression call) {
        AggregateFunction function = call.aggregateFunction();
        String prefix = PACKAGE + "aggregate.";
        String name = function.getClass().getName();
        if (!name.startsWith(prefix) || !AGGREGATES.contains(name.substring(prefix.length()))) {
            return function.getClass().getSimpleName();
        }
        if (call.isDistinct()) {
            return "DISTINCT";
        }
        boolean isOrdered = function instanceof Min || function instanceof Max;
        return isOrdered && !HeldTable.isKey(function.dataType()) ? function.prettyName() + " of " + function.dataType().sql() : null;
    }
}
