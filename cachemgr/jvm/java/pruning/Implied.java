package relationalcache.pruning;

import java.time.DateTimeException;
import java.time.LocalDate;
import java.time.YearMonth;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.DateFormatClass;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GreaterThan;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.LessThan;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Month;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.Quarter;
import org.apache.spark.sql.catalyst.expressions.Year;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;

import relationalcache.Scala;

/** The intervals in which the columns of a table lie in all rows for which a condition is true. */
final class Implied {
    private static final Pattern DATE = Pattern.compile("(\\d{4})(?:[-/]?(\\d\\d)(?:[-/]?(\\d\\d))?)?");
    private static final Map<String, Pattern> FORMATS = Map.of(
        "yyyy", Pattern.compile("\\d{4}"),
        "yyyy-MM", Pattern.compile("\\d{4}-\\d\\d"), "yyyy-MM-dd", Pattern.compile("\\d{4}-\\d\\d-\\d\\d"),
        "yyyy/MM", Pattern.compile("\\d{4}/\\d\\d"), "yyyy/MM/dd", Pattern.compile("\\d{4}/\\d\\d/\\d\\d"),
        "yyyyMM", Pattern.compile("\\d{6}"), "yyyyMMdd", Pattern.compile("\\d{8}"));
    private static final String POLICY = "spark.sql.legacy.timeParserPolicy";

    /** An expression and where it lies. */
    record Ranged(Expression expression, Interval interval) {
    }

    private final boolean functions;

    private Implied(boolean functions) {
        this.functions = functions;
    }

    /** By columns; those that a condition bounds by functions, or by comparing them, or both. */
    static Map<Expression, Ranged> by(Expression condition) {
        return new Implied(true).columns(condition);
    }

    /** By columns; those that a condition compares with constants. */
    static Map<Expression, Ranged> byComparisons(Expression condition) {
        return new Implied(false).columns(condition);
    }

    private Map<Expression, Ranged> columns(Expression condition) {
        if (condition instanceof Or) {
            Map<Expression, Ranged> one = functions ? columns(((Or) condition).left()) : Map.of();
            Map<Expression, Ranged> found = new LinkedHashMap<>();
            if (!one.isEmpty()) {
                Map<Expression, Ranged> other = columns(((Or) condition).right());
                one.forEach((key, ranged) -> {
                    Ranged beside = other.get(key);
                    if (beside != null) {
                        found.put(key, new Ranged(ranged.expression, ranged.interval.or(beside.interval)));
                    }
                });
            }
            return found;
        }
        Map<Expression, Ranged> compared = new LinkedHashMap<>();
        Map<Expression, Ranged> found = new LinkedHashMap<>();
        for (Expression conjunct : conjuncts(condition, new ArrayList<>())) {
            if (conjunct instanceof Or) {
                columns(conjunct).values().forEach(ranged -> add(found, ranged.expression, ranged.interval));
            } else {
                compared(conjunct, compared);
            }
        }
        if (functions) {
            monthsOfYears(compared, found);
        }
        for (Ranged each : compared.values()) {
            Preimage.of(each.expression, each.interval, (column, interval) -> add(found, column, interval));
        }
        return found;
    }

    static List<Expression> conjuncts(Expression condition, List<Expression> into) {
        if (condition instanceof And) {
            conjuncts(((And) condition).left(), into);
            conjuncts(((And) condition).right(), into);
        } else {
            into.add(condition);
        }
        return into;
    }

    private static void add(Map<Expression, Ranged> into, Expression expression, Interval interval) {
        into.merge(expression.canonicalized(), new Ranged(expression, interval),
            (one, other) -> new Ranged(one.expression, one.interval.and(other.interval)));
    }

    private void compared(Expression conjunct, Map<Expression, Ranged> into) {
        if (conjunct instanceof In) {
            Interval found = null;
            for (Object each : Scala.list(((In) conjunct).list())) {
                Object value = each instanceof Literal ? ((Literal) each).value() : each;
                found = value == null ? found : hull(found, ((In) conjunct).value(), value);
            }
            addTo(into, ((In) conjunct).value(), found);
        } else if (conjunct instanceof InSet) {
            Interval found = null;
            scala.collection.Iterator<?> values = ((InSet) conjunct).hset().iterator();
            while (values.hasNext()) {
                Object value = values.next();
                found = value == null ? found : hull(found, ((InSet) conjunct).child(), value);
            }
            addTo(into, ((InSet) conjunct).child(), found);
        } else if (conjunct instanceof BinaryComparison) {
            Expression left = ((BinaryComparison) conjunct).left();
            Expression right = ((BinaryComparison) conjunct).right();
            if (right instanceof Literal) {
                compared(conjunct, left, ((Literal) right).value(), false, into);
            } else if (left instanceof Literal) {
                compared(conjunct, right, ((Literal) left).value(), true, into);
            }
        }
    }

    private void compared(
        Expression how, Expression function, Object value, boolean isTurned, Map<Expression, Ranged> into) {
        Interval at = value == null ? Interval.ALL : values(function, value);
        boolean isEqual = how instanceof EqualTo || how instanceof EqualNullSafe;
        if (isEqual) {
            addTo(into, function, at);
        } else if (!(function instanceof DateFormatClass)) {
            boolean isLess = how instanceof LessThan || how instanceof LessThanOrEqual;
            boolean isMore = how instanceof GreaterThan || how instanceof GreaterThanOrEqual;
            if (isLess && !isTurned || isMore && isTurned) {
                addTo(into, function, new Interval(null, at.high()));
            } else if (isMore || isLess) {
                addTo(into, function, new Interval(at.low(), null));
            }
        }
    }

    private static Interval hull(Interval before, Expression function, Object value) {
        Interval at = values(function, value);
        return before == null ? at : before.or(at);
    }

    /** A format's text is the interval of days that are written so. */
    private void addTo(Map<Expression, Ranged> into, Expression function, Interval interval) {
        if (interval == null || interval.isAll() || !functions && !Preimage.isColumn(function)) {
            return;
        }
        if (function instanceof DateFormatClass) {
            DateFormatClass format = (DateFormatClass) function;
            add(into, format.left(), Preimage.times(interval, format.zoneId()));
        } else {
            add(into, function, interval);
        }
    }

    /** Where a function lies that has a value; everywhere, where that is not known. */
    private static Interval values(Expression function, Object value) {
        DataType type = function.dataType();
        if (function instanceof DateFormatClass) {
            return days(((DateFormatClass) function).right(), value);
        }
        if (type instanceof IntegerType && (function instanceof Year || function instanceof Month || function instanceof Quarter)
            || type instanceof DateType || type instanceof TimestampType || type instanceof TimestampNTZType) {
            return value instanceof Number ? Interval.of(((Number) value).longValue(), ((Number) value).longValue())
                : Interval.ALL;
        }
        return Interval.ALL;
    }

    /** Whether a format is among those that are looked into; others may be refused when a row is formatted. */
    static boolean isKnown(DateFormatClass function) {
        return form(function.right()) != null;
    }

    private static Pattern form(Expression format) {
        Object written = format instanceof Literal ? ((Literal) format).value() : null;
        // the older formatter has other offsets for the years before 1900
        boolean isOlder = "LEGACY".equalsIgnoreCase(SQLConf.get().getConfString(POLICY, "CORRECTED").trim());
        return written == null || isOlder ? null : FORMATS.get(written.toString());
    }

    private static Interval days(Expression format, Object text) {
        Pattern form = form(format);
        if (form == null || !(text instanceof UTF8String) || !form.matcher(text.toString()).matches()) {
            return Interval.ALL;
        }
        Matcher parts = DATE.matcher(text.toString());
        if (!parts.matches() || Integer.parseInt(parts.group(1)) < 1) {
            return Interval.ALL;
        }
        int year = Integer.parseInt(parts.group(1));
        try {
            if (parts.group(2) == null) {
                return Interval.of(LocalDate.of(year, 1, 1).toEpochDay(), LocalDate.of(year, 12, 31).toEpochDay());
            }
            YearMonth month = YearMonth.of(year, Integer.parseInt(parts.group(2)));
            if (parts.group(3) == null) {
                return Interval.of(month.atDay(1).toEpochDay(), month.atEndOfMonth().toEpochDay());
            }
            long day = month.atDay(Integer.parseInt(parts.group(3))).toEpochDay();
            return Interval.of(day, day);
        } catch (DateTimeException noDate) {
            return Interval.ALL; // no row is written so; Spark finds that out
        }
    }

    /** Months and quarters bound a date where its year is one. */
    private static void monthsOfYears(Map<Expression, Ranged> compared, Map<Expression, Ranged> found) {
        for (Ranged each : List.copyOf(compared.values())) {
            Expression part = each.expression;
            if (!(part instanceof Month || part instanceof Quarter)) {
                continue;
            }
            Expression date = part instanceof Month ? ((Month) part).child() : ((Quarter) part).child();
            Ranged year = compared.get(new Year(date).canonicalized());
            if (year == null || !year.interval.isOne() || year.interval.low() < 1 || year.interval.low() > 9999) {
                continue;
            }
            int months = part instanceof Month ? 1 : 3;
            long first = each.interval.low() == null ? 1 : (each.interval.low() - 1) * months + 1;
            long last = each.interval.high() == null ? 12 : each.interval.high() * months;
            if (first >= 1 && last <= 12 && first <= last) {
                int in = year.interval.low().intValue();
                Interval days = Interval.of(LocalDate.of(in, (int) first, 1).toEpochDay(),
                    YearMonth.of(in, (int) last).atEndOfMonth().toEpochDay());
                Preimage.of(date, days, (column, interval) -> add(found, column, interval));
            }
        }
    }
}
