package relationalcache.pruning;

import java.util.Map;
import java.util.Set;

import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.DateFormatClass;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import relationalcache.EachQuery;
import relationalcache.Hook;
import relationalcache.Scala;

/**
 * Puts beside a filter the ranges that it implies: `year(d) = 2024` reads files by `d &gt;= DATE'2024-01-01' AND d &lt;=
 * DATE'2024-12-31'`, which Delta's statistics, generated columns and Parquet's row groups know. Spark and Delta compare
 * columns with constants alone.
 *
 * The rows are the same, since what is added is true of each row for which the filter is. So that errors are the same, it is
 * added only to filters that cannot raise: a row that is in no file that is read raises nothing. A subquery is looked at
 * with its query, after all that decides about caches has seen both.
 */
public final class ImpliedRanges extends Rule<LogicalPlan> {
    private static final String SETTING = "spark.cachemgr.pruning.impliedRanges";
    private static final Logger LOG = LoggerFactory.getLogger("relationalcache.ImpliedRanges");
    private static final String EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions.";
    private static final Set<String> TOTAL = Set.of(
        "AttributeReference", "Literal", "EqualTo", "EqualNullSafe", "LessThan", "LessThanOrEqual", "GreaterThan",
        "GreaterThanOrEqual", "And", "Or", "Not", "IsNull", "IsNotNull", "In", "InSet", "StartsWith", "EndsWith", "Contains",
        "Year", "Month", "Quarter", "DayOfMonth", "DayOfWeek", "WeekDay", "DayOfYear", "WeekOfYear", "Hour", "Minute", "Second",
        "TruncDate", "TruncTimestamp", "DateFormatClass", "DateAdd", "DateSub", "LastDay", "Coalesce", "If", "CaseWhen", "Upper",
        "Lower", "Length", "Substring", "GetStructField");

    private final SparkSession spark;

    private ImpliedRanges(SparkSession spark) {
        this.spark = spark;
    }

    /** For a session's extensions, behind the rule that decides about caches. */
    public static final class Builder extends scala.runtime.AbstractFunction1 {
        @Override
        public Object apply(Object session) {
            return new ImpliedRanges((SparkSession) session);
        }
    }

    @Override
    public String ruleName() {
        return "relationalcache.ImpliedRanges";
    }

    @Override
    public LogicalPlan apply(LogicalPlan plan) {
        if (plan instanceof Subquery || !plan.containsPattern(TreePattern.FILTER()) || plan.isStreaming()
            || !Hook.allows(spark, SETTING)) {
            return plan;
        }
        try {
            return applied(plan);
        } catch (Exception | LinkageError | StackOverflowError | AssertionError error) {
            LOG.warn("no ranges are added to a query's filters: {}", error.toString());
            return plan;
        }
    }

    private static LogicalPlan applied(LogicalPlan plan) {
        LogicalPlan found = EachQuery.below(plan, ImpliedRanges::applied);
        if (found instanceof Filter && ((Filter) found).child() instanceof LogicalRelation) {
            return ranged((Filter) found, (LogicalRelation) ((Filter) found).child());
        }
        return found;
    }

    private static LogicalPlan ranged(Filter filter, LogicalRelation read) {
        if (!isPruned(read) || !isTotal(filter.condition())) {
            return filter;
        }
        Set<String> partitions = Set.of(((HadoopFsRelation) read.relation()).partitionSchema().fieldNames());
        Map<Expression, Implied.Ranged> implied = Implied.by(filter.condition());
        Map<Expression, Implied.Ranged> known = Implied.byComparisons(filter.condition());
        Expression condition = filter.condition();
        for (Map.Entry<Expression, Implied.Ranged> each : implied.entrySet()) {
            Expression column = each.getValue().expression();
            if (isOf(column, partitions)) {
                continue; // whose values are what a filter is tried on
            }
            Interval before = known.containsKey(each.getKey()) ? known.get(each.getKey()).interval() : Interval.ALL;
            Interval now = each.getValue().interval();
            if (now.low() != null && (before.low() == null || before.low() < now.low())) {
                condition = new And(condition, new GreaterThanOrEqual(column, literal(now.low(), column.dataType())));
            }
            if (now.high() != null && (before.high() == null || before.high() > now.high())) {
                condition = new And(condition, new LessThanOrEqual(column, literal(now.high(), column.dataType())));
            }
        }
        if (condition == filter.condition()) {
            return filter;
        }
        Filter made = new Filter(condition, read);
        made.copyTagsFrom(filter);
        return made;
    }

    /** Whether files of it may be left out by the values of its columns. */
    private static boolean isPruned(LogicalRelation read) {
        if (!(read.relation() instanceof HadoopFsRelation)) {
            return false;
        }
        return ((HadoopFsRelation) read.relation()).fileFormat() instanceof ParquetFileFormat;
    }

    private static boolean isOf(Expression column, Set<String> partitions) {
        return column instanceof Attribute && partitions.contains(((Attribute) column).name());
    }

    /** Whether it has a value for every row, and never an error. */
    private static boolean isTotal(Expression expression) {
        if (expression instanceof Cast) {
            DataType from = ((Cast) expression).child().dataType();
            DataType to = expression.dataType();
            boolean isWider = from instanceof NumericType && to instanceof NumericType && Cast.canUpCast(from, to);
            if (!isWider && !(isTemporal(from) && isTemporal(to))) {
                return false;
            }
        } else if (!isNamed(expression) || expression instanceof DateFormatClass && !Implied.isKnown((DateFormatClass) expression)) {
            return false;
        }
        for (Object child : Scala.list(expression.children())) {
            if (!isTotal((Expression) child)) {
                return false;
            }
        }
        return true;
    }

    private static boolean isNamed(Expression expression) {
        String name = expression.getClass().getName();
        return name.startsWith(EXPRESSIONS) && TOTAL.contains(name.substring(EXPRESSIONS.length()));
    }

    private static boolean isTemporal(DataType type) {
        return type instanceof DateType || type instanceof TimestampType || type instanceof TimestampNTZType;
    }

    private static Literal literal(long value, DataType type) {
        Object held = type instanceof DateType ? (Object) (int) value : (Object) value;
        return new Literal(held, type);
    }
}
