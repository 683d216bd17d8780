package relationalcache.pruning;

import java.time.Instant;
import java.time.LocalDate;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.temporal.IsoFields;
import java.time.zone.ZoneOffsetTransition;
import java.time.zone.ZoneRules;
import java.util.Locale;
import java.util.Map;
import java.util.function.BiConsumer;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.DateAdd;
import org.apache.spark.sql.catalyst.expressions.DateSub;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.TruncDate;
import org.apache.spark.sql.catalyst.expressions.TruncTimestamp;
import org.apache.spark.sql.catalyst.expressions.Year;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/**
 * In which interval a column lies where a function of it lies in another one: what is told holds of every such row, and of
 * others.
 *
 * Local time does not grow with time: clocks are set back, at midnight too, and days are left out. So nothing here relies
 * on it: bounds of timestamps are those of all offsets that the zone has within 18 hours, which no offset exceeds.
 */
final class Preimage {
    static final long DAY = 86_400_000_000L;
    private static final long DAY_SECONDS = 86_400L;
    private static final long MOST_OFFSET = 18 * 3_600L;
    private static final long FIRST = LocalDate.of(1, 1, 1).toEpochDay();
    private static final long LAST = LocalDate.of(9999, 12, 31).toEpochDay();
    private static final long MOST_DAYS = 10_000_000L;
    private static final Map<String, String> LEVELS = Map.ofEntries(
        Map.entry("YEAR", "YEAR"), Map.entry("YYYY", "YEAR"), Map.entry("YY", "YEAR"),
        Map.entry("QUARTER", "QUARTER"),
        Map.entry("MONTH", "MONTH"), Map.entry("MON", "MONTH"), Map.entry("MM", "MONTH"),
        Map.entry("WEEK", "WEEK"),
        Map.entry("DAY", "DAY"), Map.entry("DD", "DAY"),
        Map.entry("HOUR", "TIME"), Map.entry("MINUTE", "TIME"), Map.entry("SECOND", "TIME"),
        Map.entry("MILLISECOND", "TIME"), Map.entry("MICROSECOND", "TIME"));

    private Preimage() {
    }

    /** Tells the column that a function is of, and its interval where the function lies in a given one. */
    static void of(Expression function, Interval values, BiConsumer<Expression, Interval> told) {
        if (values.isAll()) {
            return;
        }
        if (isColumn(function)) {
            told.accept(function, values);
        } else if (function instanceof Year) {
            of(((Year) function).child(), daysOfYears(values), told);
        } else if (function instanceof TruncDate) {
            truncated((TruncDate) function, values, told);
        } else if (function instanceof TruncTimestamp) {
            truncated((TruncTimestamp) function, values, told);
        } else if (function instanceof DateAdd) {
            moved(((DateAdd) function).startDate(), ((DateAdd) function).days(), 1, values, told);
        } else if (function instanceof DateSub) {
            moved(((DateSub) function).startDate(), ((DateSub) function).days(), -1, values, told);
        } else if (function instanceof Cast) {
            cast((Cast) function, values, told);
        }
    }

    /** A column, or a field of one, of which files keep the smallest and the largest value. */
    static boolean isColumn(Expression expression) {
        return expression instanceof Attribute
            || expression instanceof GetStructField && isColumn(((GetStructField) expression).child());
    }

    /** The moments, in microseconds, whose local date in a zone lies between two days. */
    static Interval times(Interval days, ZoneId zone) {
        ZoneRules rules = zone.getRules();
        Long low = null;
        Long high = null;
        if (days.low() != null) {
            long midnight = days.low() * DAY_SECONDS;
            low = (midnight - offset(rules, midnight, true)) * 1_000_000L;
        }
        if (days.high() != null) {
            long midnight = (days.high() + 1) * DAY_SECONDS;
            high = (midnight - offset(rules, midnight, false)) * 1_000_000L - 1;
        }
        return new Interval(low, high);
    }

    /** The largest or smallest offset of a zone around a local time. */
    private static long offset(ZoneRules rules, long local, boolean largest) {
        long found = rules.getOffset(Instant.ofEpochSecond(local - MOST_OFFSET)).getTotalSeconds();
        ZoneOffsetTransition next = rules.nextTransition(Instant.ofEpochSecond(local - MOST_OFFSET));
        while (next != null && next.toEpochSecond() <= local + MOST_OFFSET) {
            long offset = next.getOffsetAfter().getTotalSeconds();
            found = largest ? Math.max(found, offset) : Math.min(found, offset);
            next = rules.nextTransition(next.getInstant());
        }
        return found;
    }

    private static Interval daysOfYears(Interval years) {
        Long low = years.low() == null || years.low() < 1 || years.low() > 9999
            ? null : Long.valueOf(LocalDate.of(years.low().intValue(), 1, 1).toEpochDay());
        Long high = years.high() == null || years.high() < 1 || years.high() > 9999
            ? null : Long.valueOf(LocalDate.of(years.high().intValue(), 12, 31).toEpochDay());
        return new Interval(low, high);
    }

    /** The bounds that lie in the years 1 to 9999; of others Spark's functions are not looked into. */
    private static Interval inCalendar(Interval days) {
        return new Interval(
            days.low() == null || days.low() < FIRST || days.low() > LAST ? null : days.low(),
            days.high() == null || days.high() < FIRST || days.high() > LAST ? null : days.high());
    }

    private static String level(Expression format) {
        Object value = format instanceof Literal ? ((Literal) format).value() : null;
        return value == null ? null : LEVELS.get(value.toString().toUpperCase(Locale.ROOT));
    }

    private static void truncated(TruncDate function, Interval values, BiConsumer<Expression, Interval> told) {
        String level = level(function.format());
        if (level != null && !"TIME".equals(level) && !"DAY".equals(level)) {
            Interval days = inCalendar(values);
            Long high = days.high() == null ? null : Long.valueOf(lastDay(days.high(), level));
            of(function.date(), new Interval(days.low(), high), told);
        }
    }

    private static void truncated(TruncTimestamp function, Interval values, BiConsumer<Expression, Interval> told) {
        String level = level(function.format());
        if (level == null || function.timestamp().dataType() != DataTypes.TimestampType) {
            return;
        }
        if ("TIME".equals(level)) {
            of(function.timestamp(), widened(inTime(values), DAY), told);
            return;
        }
        ZoneId zone = function.zoneId();
        Interval days = inCalendar(days(values, zone));
        if (values.isOne() && days.low() != null) {
            days = Interval.of(firstDay(days.low(), level), lastDay(days.low(), level));
        } else if (!values.isOne()) {
            days = widened(days, 1);
            days = inCalendar(
                new Interval(days.low(), days.high() == null ? null : Long.valueOf(lastDay(days.high(), level))));
        }
        of(function.timestamp(), times(days, zone), told);
    }

    /** Days are added as 32-bit numbers, which begin anew beyond their largest: no such day is near. */
    private static void moved(
        Expression date, Expression days, int sign, Interval values, BiConsumer<Expression, Interval> told) {
        Object value = days instanceof Literal ? ((Literal) days).value() : null;
        Interval wanted = inCalendar(values);
        if (!(value instanceof Integer) || Math.abs((long) (Integer) value) > MOST_DAYS) {
            return;
        }
        long by = sign * (long) (Integer) value;
        if (by > 0 && wanted.low() == null || by < 0 && wanted.high() == null) {
            return;
        }
        of(date, new Interval(
            wanted.low() == null ? null : Long.valueOf(wanted.low() - by),
            wanted.high() == null ? null : Long.valueOf(wanted.high() - by)), told);
    }

    private static void cast(Cast cast, Interval values, BiConsumer<Expression, Interval> told) {
        Expression child = cast.child();
        DataType from = child.dataType();
        DataType to = cast.dataType();
        if (from instanceof TimestampType && to instanceof DateType) {
            of(child, times(inCalendar(values), cast.zoneId()), told);
        } else if (from instanceof TimestampNTZType && to instanceof DateType) {
            of(child, times(inCalendar(values), ZoneOffset.UTC), told);
        } else if (from instanceof DateType && to instanceof TimestampType) {
            of(child, widened(inCalendar(days(values, cast.zoneId())), 1), told);
        } else if (from instanceof DateType && to instanceof TimestampNTZType) {
            of(child, widened(inCalendar(days(values, ZoneOffset.UTC)), 1), told);
        } else if (isTime(from) && isTime(to)) {
            of(child, widened(inTime(values), DAY), told);
        }
    }

    private static boolean isTime(DataType type) {
        return type instanceof TimestampType || type instanceof TimestampNTZType;
    }

    private static Interval inTime(Interval times) {
        Interval days = inCalendar(days(times, ZoneOffset.UTC));
        return new Interval(days.low() == null ? null : times.low(), days.high() == null ? null : times.high());
    }

    private static Interval days(Interval times, ZoneId zone) {
        return new Interval(
            times.low() == null ? null : Long.valueOf(day(times.low(), zone)),
            times.high() == null ? null : Long.valueOf(day(times.high(), zone)));
    }

    private static long day(long micros, ZoneId zone) {
        return Instant.ofEpochSecond(Math.floorDiv(micros, 1_000_000L)).atZone(zone).toLocalDate().toEpochDay();
    }

    private static Interval widened(Interval values, long by) {
        return new Interval(
            values.low() == null ? null : Long.valueOf(values.low() - by),
            values.high() == null ? null : Long.valueOf(values.high() + by));
    }

    private static long firstDay(long day, String level) {
        LocalDate date = LocalDate.ofEpochDay(day);
        switch (level) {
            case "YEAR":
                return date.withDayOfYear(1).toEpochDay();
            case "QUARTER":
                return date.with(IsoFields.DAY_OF_QUARTER, 1L).toEpochDay();
            case "MONTH":
                return date.withDayOfMonth(1).toEpochDay();
            case "WEEK":
                return day - (date.getDayOfWeek().getValue() - 1);
            default:
                return day;
        }
    }

    private static long lastDay(long day, String level) {
        LocalDate first = LocalDate.ofEpochDay(firstDay(day, level));
        switch (level) {
            case "YEAR":
                return first.plusYears(1).toEpochDay() - 1;
            case "QUARTER":
                return first.plusMonths(3).toEpochDay() - 1;
            case "MONTH":
                return first.plusMonths(1).toEpochDay() - 1;
            case "WEEK":
                return first.plusDays(6).toEpochDay();
            default:
                return day;
        }
    }
}
