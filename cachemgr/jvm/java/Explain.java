package relationalcache;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.BiFunction;

import org.apache.spark.sql.catalyst.QueryPlanningTracker;
import org.apache.spark.sql.catalyst.QueryPlanningTracker$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;

import relationalcache.pruning.FilesOpened;

/**
 * A query as it would be optimised, by the rule itself, with another decider in place of the session's, who is asked about
 * all of it. No job is run, nothing is counted, and the given plan stays as it is, but for marks on the nodes of its
 * subqueries that mean nothing to other queries.
 */
final class Explain {
    /** Delta looks for files by jobs there. What decides is over before it, and nothing after it asks us. */
    private static final String SCANS = "org.apache.spark.sql.delta.stats.PrepareDeltaScan";
    private static final String EXCLUDED = "spark.sql.optimizer.excludedRules";
    private static final ThreadLocal CURRENT = new ThreadLocal();

    final BiFunction decider;
    private final QueryPlanningTracker tracker;
    /** Whether all of the plan is wanted, with the files that Delta finds by its own jobs, as Spark's EXPLAIN has it. */
    private final boolean whole;
    private final Map failures = new LinkedHashMap();
    private String leftAlone = null;
    private boolean isComputed = false;
    private String notComputed = null;
    private LogicalPlan optimised = null;

    private Explain(BiFunction decider, QueryPlanningTracker tracker, boolean whole) {
        this.decider = decider;
        this.tracker = tracker;
        this.whole = whole;
    }

    /** That of the query which this thread is optimising; null for any other query, such as one of Delta's own. */
    static Explain current() {
        Explain found = (Explain) CURRENT.get();
        if (found == null) {
            return null;
        }
        scala.Option tracker = QueryPlanningTracker$.MODULE$.get();
        return tracker.isDefined() && tracker.get() == found.tracker ? found : null;
    }

    void failed(Decided decided, String cause) {
        failures.put(Long.valueOf(decided.id), cause);
    }

    void leftAlone(String why) {
        leftAlone = why;
    }

    /** Whether the query's rows would be computed while it is planned: why not, or null. */
    void computed(String whyNot) {
        isComputed = true;
        notComputed = whyNot;
    }

    /**
     * {"stands": the ids of the decisions whose plans are left at the end, "failed": {id: cause} of those that could not be
     * put in place, "left": why the query is left alone without any decision, or null, "computed": null, or of a query over
     * held rows [why its rows are not computed while it is planned, null if they are]}.
     */
    static String query(SparkSession spark, LogicalPlan analysed, BiFunction decider) {
        Hook.inject(spark);
        LogicalPlan copy = (LogicalPlan) analysed.clone();
        Explain explain = new Explain(decider, new QueryPlanningTracker(Scala.none()), false);
        CURRENT.set(explain);
        try {
            org.apache.spark.sql.internal.SQLConf$.MODULE$.withExistingConf(
                withoutScans(spark), new Run(spark, copy, explain));
        } catch (Hook.Captured done) {
            // as far as it is wanted
        } finally {
            CURRENT.remove();
        }
        return explain.told();
    }

    /** See `FilesOpened.planned`: what a query would read as it would be answered, or without caches if there is no decider. */
    static String files(SparkSession spark, LogicalPlan analysed, BiFunction decider) {
        Hook.inject(spark);
        LogicalPlan copy = (LogicalPlan) analysed.clone();
        Explain explain = new Explain(decider, new QueryPlanningTracker(Scala.none()), true);
        // the active session is where Spark's planner looks for one
        scala.Function0<String> run = () -> FilesOpened.planned(spark, (LogicalPlan) new Run(spark, copy, explain).apply());
        if (decider == null) {
            Hook.enter();
        } else {
            CURRENT.set(explain);
        }
        try {
            return spark.withActive(run);
        } finally {
            CURRENT.remove();
            if (decider == null) {
                Hook.leave();
            }
        }
    }

    /** Ends the run where all plans are rewritten, ahead of what looks for statistics and files, unless these are wanted. */
    void end(LogicalPlan plan) {
        if (whole) {
            return;
        }
        optimised = plan;
        throw new Hook.Captured();
    }

    private String told() {
        StringBuilder out = new StringBuilder("{\"stands\":[");
        Object[] stands = optimised == null ? new Object[0] : Planned.decisions(optimised).toArray();
        for (int i = 0; i < stands.length; i++) {
            out.append(i > 0 ? "," : "").append(((Decided) stands[i]).id);
        }
        out.append("],\"failed\":{");
        Object[] failed = failures.keySet().toArray();
        for (int i = 0; i < failed.length; i++) {
            out.append(i > 0 ? ",\"" : "\"").append(failed[i]).append("\":");
            Scala.quote(out, (String) failures.get(failed[i]));
        }
        out.append("},\"left\":");
        if (leftAlone == null) {
            out.append("null");
        } else {
            Scala.quote(out, leftAlone);
        }
        out.append(",\"computed\":");
        if (isComputed) {
            Scala.quote(out.append('['), notComputed);
            out.append(']');
        } else {
            out.append("null");
        }
        return out.append('}').toString();
    }

    private static SQLConf withoutScans(SparkSession spark) {
        Map theirs = spark.sessionState().conf().settings();
        SQLConf conf = new SQLConf();
        synchronized (theirs) {
            conf.settings().putAll(theirs);
        }
        String excluded = conf.getConfString(EXCLUDED, "");
        conf.setConfString(EXCLUDED, excluded.isEmpty() ? SCANS : excluded + "," + SCANS);
        return conf;
    }

    /** The optimiser's run. */
    public static final class Run extends scala.runtime.AbstractFunction0 {
        private final SparkSession spark;
        private final LogicalPlan plan;
        private final Explain explain;

        Run(SparkSession spark, LogicalPlan plan, Explain explain) {
            this.spark = spark;
            this.plan = plan;
            this.explain = explain;
        }

        public Object apply() {
            explain.optimised = (LogicalPlan) spark.sessionState().optimizer().executeAndTrack(plan, explain.tracker);
            return explain.optimised;
        }
    }
}
