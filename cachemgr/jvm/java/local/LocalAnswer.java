package relationalcache.local;

import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.optimizer.ConstantFolding$;
import org.apache.spark.sql.catalyst.optimizer.DecimalAggregates$;
import org.apache.spark.sql.catalyst.optimizer.LikeSimplification$;
import org.apache.spark.sql.catalyst.optimizer.OptimizeIn$;
import org.apache.spark.sql.catalyst.optimizer.SimplifyCaseConversionExpressions$;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;

import relationalcache.Counters;
import relationalcache.Grafter;
import relationalcache.Scala;

/**
 * A query whose every leaf is a set that the driver holds, answered while it is optimised: what stands in its plan are its
 * rows. Spark then runs no job for it, and no expression of it is left that could fail later.
 *
 * Whatever goes wrong, the plan stays as it is, and Spark raises its own error at its own time.
 */
public final class LocalAnswer {
    /** Bounded, so that what evaluates never takes all of the driver's processors. */
    private static final AtomicInteger RUNNING = new AtomicInteger();
    /**
     * What Spark does to a plan after our rule has seen it, and what makes a difference: averages of short decimals are
     * computed as doubles there, long lists are looked up in a set, simple patterns are no regular expressions, and of
     * lower(upper(x)) the outer one is left. Other rules change no row.
     */
    private static final List<Rule<LogicalPlan>> LATER = List.of(
        ConstantFolding$.MODULE$, LikeSimplification$.MODULE$, OptimizeIn$.MODULE$, SimplifyCaseConversionExpressions$.MODULE$,
        DecimalAggregates$.MODULE$);

    /** The rows in place of the plan, or null; why there are none, and whether trying cost something. */
    public record Tried(LogicalPlan rows, String refused, boolean inVain) {
        private static Tried refused(String why) {
            return new Tried(null, why, false);
        }

        private static Tried inVain(String why) {
            return new Tried(null, why, true);
        }
    }

    /** For Python, which calls static methods by an object. */
    public LocalAnswer() {
    }

    /**
     * Computes a plan's rows in this thread.
     *
     * @param plan a whole query, up to its root
     * @param bounds what it may take
     */
    public static Tried of(LogicalPlan plan, Bounds bounds) {
        try {
            if (RUNNING.incrementAndGet() > bounds.most()) {
                Counters.count("local_busy");
                return Tried.refused("others are computed at the moment");
            }
            List<InternalRow> rows = new Evaluation(bounds).rows(asSparkWouldRun(plan));
            return new Tried(relation(plan, rows), null, false);
        } catch (Bound.Refused known) {
            return Tried.refused(known.getMessage());
        } catch (Bounds.Exceeded known) {
            return Tried.inVain(known.getMessage());
        } catch (Exception | LinkageError | StackOverflowError | AssertionError | OutOfMemoryError error) {
            return Tried.inVain("it raises " + error.getClass().getSimpleName());
        } finally {
            RUNNING.decrementAndGet();
        }
    }

    /** The same of an analysed plan, which has not come as far; `bounds` as in `Bounds.read`. */
    public static Tried ofAnalysed(SparkSession spark, LogicalPlan analysed, String bounds) {
        return of(Grafter.finished(spark, analysed), Bounds.read(bounds));
    }

    /**
     * The same; and where it was in vain, a plan of the same shape is not tried again for a minute.
     *
     * @param asker gives who asks under which settings
     */
    public static Tried of(LogicalPlan plan, Bounds bounds, Supplier<String> asker) {
        if (!Untried.isEmpty() && Untried.has(asker.get(), plan)) {
            return Tried.refused("a query like it could not be computed so within the last minute");
        }
        Tried tried = of(plan, bounds);
        if (tried.inVain()) {
            Untried.remember(asker.get(), plan);
        }
        return tried;
    }

    private static LogicalPlan asSparkWouldRun(LogicalPlan plan) {
        scala.Option<String> excluded = SQLConf.get().optimizerExcludedRules();
        List<String> names = excluded.isEmpty() ? List.of() : Arrays.asList(excluded.get().split("\\s*,\\s*"));
        LogicalPlan found = plan;
        for (Rule<LogicalPlan> rule : LATER) {
            if (!names.contains(rule.ruleName())) {
                found = (LogicalPlan) rule.apply(found);
            }
        }
        return found;
    }

    @SuppressWarnings("unchecked")
    private static LogicalPlan relation(LogicalPlan plan, List<InternalRow> rows) {
        scala.collection.immutable.Seq<?> held =
            scala.collection.immutable.ArraySeq$.MODULE$.unsafeWrapArray(rows.toArray(new InternalRow[0]));
        return new LocalRelation(
            plan.output(), (scala.collection.immutable.Seq<InternalRow>) held, false, Scala.none());
    }
}
