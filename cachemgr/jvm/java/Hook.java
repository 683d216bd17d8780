package relationalcache;

import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiFunction;
import java.util.function.Consumer;

import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.OptimisticTransaction$;
import org.apache.spark.sql.delta.files.TahoeLogFileIndex;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;

import relationalcache.limits.FewFiles;
import relationalcache.limits.FewTasks;
import relationalcache.local.LocalAnswer;
import relationalcache.pruning.FilesOpened;
import relationalcache.pruning.ImpliedRanges;

/** What the rule of all sessions shares: who takes part, and which places are known. */
public final class Hook {
    private static final String MODE = "spark.cachemgr.mode";
    private static final Map DECIDERS = new ConcurrentHashMap();
    /** The registered sessions, held weakly: ours is not to keep what its user has dropped. */
    private static final Map SESSIONS = new ConcurrentHashMap();
    private static final Set INJECTED = Collections.newSetFromMap(new IdentityHashMap());
    private static final ThreadLocal GUARD = new ThreadLocal();
    private static final ThreadLocal CAPTURE = new ThreadLocal();
    private static volatile Set known = Collections.EMPTY_SET;
    private static volatile BiFunction shared = null;
    /** Decides for each session that has no decider of its own, unless it says no: the sidecar's, see `sidecar.Sidecar`. */
    private static volatile BiFunction served = null;
    private static volatile Consumer whenMissed = null;

    public Hook() {
    }

    /** Adds the rule, and what notes its decisions, to the sessions that these extensions will make. */
    public static void extend(SparkSessionExtensions extensions) {
        synchronized (INJECTED) {
            if (INJECTED.add(extensions)) {
                extensions.injectOptimizerRule(new Builder());
                extensions.injectOptimizerRule(new ImpliedRanges.Builder());
                extensions.injectPreCBORule(new Planned.RuleBuilder());
                extensions.injectPreCBORule(new FewFiles.Builder());
                extensions.injectPlannerStrategy(new Planned.StrategyBuilder());
                extensions.injectPlannerStrategy(new FewTasks.Builder());
            }
        }
    }

    /** Adds the rule to the session and to all that share its extensions; once, since there is no way to take it off. */
    public static void inject(SparkSession spark) {
        extend(spark.extensions());
    }

    public static void register(SparkSession spark, BiFunction decider) {
        inject(spark);
        SESSIONS.put(spark.sessionUUID(), new WeakReference(spark));
        DECIDERS.put(spark.sessionUUID(), decider);
    }

    public static void unregister(SparkSession spark) {
        forget(spark.sessionUUID());
    }

    private static void forget(String key) {
        DECIDERS.remove(key);
        SESSIONS.remove(key);
    }

    /** Forgets the sessions that nobody holds any more, and those of a stopped application; their keys as a JSON list. */
    public static String gone() {
        StringBuilder out = new StringBuilder("[");
        Object[] keys = SESSIONS.keySet().toArray();
        for (int i = 0; i < keys.length; i++) {
            WeakReference held = (WeakReference) SESSIONS.get(keys[i]);
            SparkSession spark = held == null ? null : (SparkSession) held.get();
            if (held != null && (spark == null || spark.sparkContext().isStopped())) {
                forget((String) keys[i]);
                out.append(out.length() > 1 ? "," : "");
                Scala.quote(out, (String) keys[i]);
            }
        }
        return out.append(']').toString();
    }

    /** The settings of Spark's SQL, Delta, Parquet's reader and ours that are explicitly set in a session, its time zone, and ANSI where it is off, as JSON. */
    public static String settings(SparkSession spark) {
        StringBuilder out = new StringBuilder();
        Request.settings(spark, out);
        return out.toString();
    }

    public static boolean isRegistered(SparkSession spark) {
        return DECIDERS.containsKey(spark.sessionUUID());
    }

    /** The decider of sessions that were never registered but whose spark.cachemgr.enabled is true; null for none. */
    public static void share(BiFunction decider) {
        shared = decider;
    }

    public static void serve(BiFunction decider) {
        served = decider;
    }

    /** `asked` is told of a session that reads a Delta table while nobody decides in this application. */
    public static void whenMissed(Consumer asked) {
        whenMissed = asked;
    }

    /** Whether Python in this very driver decides for some session. */
    public static boolean isTaken() {
        return !DECIDERS.isEmpty() || shared != null;
    }

    /** Whether somebody decides for a session, which has not said that it wants nothing of us. */
    public static boolean takesPart(SparkSession spark) {
        BiFunction own = (BiFunction) DECIDERS.get(spark.sessionUUID());
        if (own == null && served == null && shared == null) {
            return false;
        }
        SQLConf conf = spark.sessionState().conf();
        String enabled = conf.getConfString("spark.cachemgr.enabled", own == null && served == null ? "false" : "true");
        return !"false".equalsIgnoreCase(enabled.trim())
            && !"off".equals(Chosen.modeOf(conf.getConfString(MODE, "rewrite")));
    }

    /** Whether a session takes part, and has not switched off what a setting of ours stands for. */
    public static boolean allows(SparkSession spark, String setting) {
        return takesPart(spark)
            && !"false".equalsIgnoreCase(spark.sessionState().conf().getConfString(setting, "true").trim());
    }

    public static void setKnown(List locations) {
        known = Collections.unmodifiableSet(new HashSet(locations));
    }

    /** A plan of ours is being made or run in this thread: leave it as it is until `leave`. */
    public static void enter() {
        Object depth = GUARD.get();
        GUARD.set(Integer.valueOf(depth == null ? 1 : ((Integer) depth).intValue() + 1));
    }

    public static void leave() {
        int depth = ((Integer) GUARD.get()).intValue() - 1;
        if (depth == 0) {
            GUARD.remove();
        } else {
            GUARD.set(Integer.valueOf(depth));
        }
    }

    public static boolean guarded() {
        return GUARD.get() != null;
    }

    /**
     * The plan of `analysed` at the very stage where the rule sees queries, as JSON. No job is run. Cached data of the user
     * is not put in: a definition means its tables.
     */
    public static String capture(SparkSession spark, LogicalPlan analysed) {
        inject(spark);
        Capture capture = new Capture();
        LogicalPlan copy = (LogicalPlan) analysed.clone();
        tag(copy, Tags.CAPTURED, Boolean.TRUE);
        CAPTURE.set(capture);
        try {
            spark.sessionState().optimizer().execute(copy);
        } catch (Captured done) {
            // what was looked for
        } finally {
            CAPTURE.remove();
        }
        if (capture.plan == null) {
            throw new IllegalStateException(
                "the optimiser never called the rule: is it in spark.sql.optimizer.excludedRules?");
        }
        return write(spark, capture.plan, new PlanWriter(null, Moment.apart()));
    }

    /** See `Explain.query`. */
    public static String explain(SparkSession spark, LogicalPlan analysed, BiFunction decider) {
        return Explain.query(spark, analysed, decider);
    }

    /** See `Explain.files`. */
    public static String files(SparkSession spark, LogicalPlan analysed, BiFunction decider) {
        return Explain.files(spark, analysed, decider);
    }

    /** See `FilesOpened.ran`. */
    public static String filesOf(Dataset query) {
        return FilesOpened.ran(query.queryExecution().executedPlan());
    }

    /** See `Planned.fetch`. */
    public static String planned() {
        return Planned.fetch();
    }

    /** A rule that asks for a table's size may make Delta query its log meanwhile: that is another plan. */
    private static boolean isCaptured(LogicalPlan plan) {
        List children = Scala.list(plan.children());
        if (children.isEmpty()) {
            return plan.getTagValue(Tags.CAPTURED).isDefined();
        }
        for (int i = 0; i < children.size(); i++) {
            if (isCaptured((LogicalPlan) children.get(i))) {
                return true;
            }
        }
        return false;
    }

    static String write(SparkSession spark, LogicalPlan plan, PlanWriter writer) {
        SQLConf conf = spark.sessionState().conf();
        return writer.write(plan, conf.ansiEnabled(), conf.decimalOperationsAllowPrecisionLoss(),
            conf.sessionLocalTimeZone());
    }

    /** A copy of the analysed plan, tagged so that its queries carry the hint; the given plan stays as it is. */
    public static Dataset hinted(SparkSession spark, LogicalPlan analysed, String hint) {
        LogicalPlan copy = (LogicalPlan) analysed.clone();
        tag(copy, Tags.HINT, hint);
        return Dataset.ofRows(spark, copy);
    }

    static void tag(LogicalPlan plan, TreeNodeTag tag, Object value) {
        plan.setTagValue(tag, value);
        List children = Scala.list(plan.children());
        for (int i = 0; i < children.size(); i++) {
            tag((LogicalPlan) children.get(i), tag, value);
        }
    }

    public static final class Capture {
        public LogicalPlan plan;
    }

    public static final class Captured extends RuntimeException {
        public Captured() {
            super("captured", null, false, false);
        }
    }

    /** What Python says went wrong when it was asked, and logs itself: where Java stood tells nothing more. */
    static final class NotDecided extends IllegalStateException {
        NotDecided(String said) {
            super(said);
        }
    }

    public static final class Builder extends scala.runtime.AbstractFunction1 {
        public Object apply(Object session) {
            return new RewriteRule((SparkSession) session);
        }
    }

    /** Asks about the query of EXISTS or IN, see `Subqueries`. */
    private static final class Asker implements Subqueries.Asker {
        private final RewriteRule rule;
        private final BiFunction decider;
        private final SparkSession spark;
        private final String mode;

        Asker(RewriteRule rule, BiFunction decider, SparkSession spark, String mode) {
            this.rule = rule;
            this.decider = decider;
            this.spark = spark;
            this.mode = mode;
        }

        public LogicalPlan askOnce(LogicalPlan query) {
            LogicalPlan subquery = new Subquery(query, true);
            LogicalPlan found = rule.decide(decider, spark, subquery, mode, 1);
            return found == subquery ? query : ((Subquery) found).child();
        }
    }

    /** Who decides on a plan, for which session, and in which mode; nobody where the plan is to be left alone. */
    private static final class Chosen {
        BiFunction decider;
        SparkSession session;
        String mode;

        static Chosen of(SparkSession spark, LogicalPlan plan) {
            Chosen found = new Chosen();
            found.session = spark;
            found.decider = (BiFunction) DECIDERS.get(spark.sessionUUID());
            SQLConf conf = spark.sessionState().conf();
            BiFunction everyones = served;
            String enabled = conf.getConfString(
                "spark.cachemgr.enabled", found.decider == null && everyones == null ? "false" : "true");
            found.mode = modeOf(conf.getConfString(MODE, "rewrite"));
            if (found.decider == null) {
                found.decider = shared == null ? everyones : shared;
            }
            if (found.decider != null && found.decider == everyones) {
                found.mode = modeOf(spark.sparkContext().conf().get(MODE, "rewrite")); // not each client's to set
            }
            if (found.decider == null && whenMissed != null && PlanWriter.readsDelta(plan)) {
                whenMissed.accept(spark);
            }
            SparkSession asks = found.decider == null ? keepsFor(plan) : null;
            if (asks != null) {
                found.decider = (BiFunction) DECIDERS.get(asks.sessionUUID());
                found.session = asks;
                enabled = conf.getConfString("spark.cachemgr.enabled", "true");
            }
            // what is neither true nor false is for Python to say
            if ("false".equalsIgnoreCase(enabled.trim()) || "off".equals(found.mode)) {
                found.decider = null;
            }
            return found;
        }

        /** Spark plans what it is to keep in a copy of the session: that which had read the tables. Null for none. */
        private static SparkSession keepsFor(LogicalPlan plan) {
            SparkSession found = reader(plan, known);
            return found != null && Frames.areKept(new Throwable().getStackTrace()) ? found : null;
        }

        /** The session that takes part and has read a known table of the plan; null if there is none. */
        private static SparkSession reader(LogicalPlan plan, Set places) {
            if (plan instanceof LogicalRelation && PlanWriter.reads(plan, places)) {
                TahoeLogFileIndex index = PlanWriter.deltaIndex((LogicalRelation) plan);
                Object session = index == null ? null : index.spark();
                return session instanceof SparkSession && isRegistered((SparkSession) session)
                    ? (SparkSession) session : null;
            }
            scala.collection.Iterator children = plan.children().iterator();
            while (children.hasNext()) {
                SparkSession found = reader((LogicalPlan) children.next(), places);
                if (found != null) {
                    return found;
                }
            }
            return null;
        }

        private static String modeOf(String text) {
            return text.trim().toLowerCase(java.util.Locale.ROOT);
        }
    }

    /** One rule object serves one run of the optimiser: Spark builds its batches anew for each. */
    public static final class RewriteRule extends Rule {
        private final SparkSession spark;
        private final List made = new ArrayList();
        private Explain explain = null;
        private boolean decided = false;
        private boolean asked = false;
        /** No rule of another extension has changed the query, which is not explained. */
        private boolean plain = false;
        /** That of the query, where all that stands in its place reads held rows; null for any other. */
        private Request local = null;

        public RewriteRule(SparkSession spark) {
            this.spark = spark;
        }

        public String ruleName() {
            return "relationalcache.RewriteRule";
        }

        public TreeNode apply(TreeNode node) {
            Capture capture = (Capture) CAPTURE.get();
            if (capture != null && !(node instanceof Subquery)) {
                capture.plan = (LogicalPlan) node; // the last one is the plan itself, whose leaves may all be gone
                if (isCaptured(capture.plan)) {
                    throw new Captured();
                }
            }
            explain = Explain.current(); // which is a plan of ours that is to be looked at all the same
            if (decided || capture != null || explain == null && GUARD.get() != null) {
                return node;
            }
            decided = true;
            if (explain != null) {
                return rewrite(node);
            }
            Counters.count("called");
            long start = System.nanoTime();
            TreeNode result = rewrite(node);
            Counters.took(asked, System.nanoTime() - start);
            return result;
        }

        private TreeNode rewrite(TreeNode node) {
            String mode = "rewrite";
            try {
                LogicalPlan given = (LogicalPlan) node;
                BiFunction decider = explain == null ? null : explain.decider;
                SparkSession session = spark;
                if (explain == null) {
                    Chosen chosen = Chosen.of(spark, given);
                    mode = chosen.mode;
                    decider = chosen.decider;
                    session = chosen.session;
                }
                if (decider == null) {
                    return leftAlone(given); // it may have been otherwise when a subquery was decided
                }
                // who explains is told of the query itself as well, whatever it reads
                boolean reads = explain != null && !(given instanceof Subquery) || PlanWriter.reads(given, known);
                if (!reads) {
                    count("no_known_table");
                    if (!given.containsPattern(TreePattern.PLAN_EXPRESSION()) && Moment.ofReplaced() == null) {
                        return node;
                    }
                }
                OtherRules others = OtherRules.of(spark);
                LogicalPlan seen = others.changeLater(given) ? null : others.applied(given);
                if (seen == null) {
                    if (explain != null) {
                        explain.leftAlone("an optimizer rule of another extension changes or refuses the query's plan later on");
                    }
                    return leftAlone(given);
                }
                plain = explain == null && !others.change();
                LogicalPlan plan = reads ? decide(decider, session, seen, mode, 2) : seen;
                LogicalPlan whole = Subqueries.replaced(plan, new Asker(this, decider, session, mode));
                Moment moment = Moment.current();
                if (reads && whole != plan && moment.replaced) {
                    // that of the query itself looked up no table if it replaced nothing
                    moment.lookUpAll(whole, known);
                }
                if (whole != seen) {
                    others.check(whole);
                }
                boolean rest = moment.replaced && (!reads || whole != plan);
                LogicalPlan found = rest ? besideCache(whole, moment) : whole;
                return local == null ? found : answeredHere(found, others);
            } catch (Exception error) {
                return fallBack(node, mode, error);
            } catch (LinkageError error) {
                return fallBack(node, mode, error);
            } catch (StackOverflowError error) {
                return fallBack(node, mode, error);
            } catch (AssertionError error) {
                return fallBack(node, mode, error);
            }
        }

        /** The rows of a query in its place, where they may be computed here. */
        private LogicalPlan answeredHere(LogicalPlan plan, OtherRules others) {
            if (others.change()) {
                return leftToSpark(plan, "an optimizer rule of another extension changes the query's plan");
            }
            try {
                local.isSound();
                LocalAnswer.Tried tried = explain == null
                    ? LocalAnswer.of(plan, local.localBounds, local::asker) : LocalAnswer.of(plan, local.localBounds);
                if (tried.rows() == null || explain != null) {
                    return leftToSpark(plan, tried.refused());
                }
                Decided decision = (Decided) made.get(0);
                Planned.mark(tried.rows(), decision);
                decision.local = true;
                count("local");
                return tried.rows();
            } catch (Exception | LinkageError | StackOverflowError | AssertionError error) {
                return leftToSpark(plan, "it fails: " + cause(error));
            }
        }

        /** `why` is null of a query that is explained, and whose rows could be computed. */
        private LogicalPlan leftToSpark(LogicalPlan plan, String why) {
            if (explain != null) {
                explain.computed(why);
            }
            return plan;
        }

        private TreeNode fallBack(TreeNode node, String mode, Throwable error) {
            for (int i = 0; i < made.size(); i++) {
                failed((Decided) made.get(i), cause(error));
            }
            if (explain != null) {
                return leftAlone((LogicalPlan) node);
            }
            Counters.failed(cause(error), error);
            if ("failfast".equals(mode)) {
                throw new IllegalStateException("relational cache rewrite failed: " + error.getMessage(), error);
            }
            return leftAlone((LogicalPlan) node);
        }

        private void failed(Decided decision, String cause) {
            if (explain == null) {
                Planned.failed(decision, cause);
            } else {
                explain.failed(decision, cause);
            }
        }

        private void count(String name) {
            if (explain == null) {
                Counters.count(name);
            }
        }

        /** A plan as it is, but for what it reads beside a subquery that a cache answers already. */
        private static LogicalPlan leftAlone(LogicalPlan plan) {
            Moment moment = Moment.ofReplaced();
            if (moment == null) {
                return plan;
            }
            moment.lookUpAll(plan, known);
            return besideCache(plan, moment);
        }

        private static String cause(Throwable error) {
            String text = String.valueOf(error.getMessage());
            int end = text.indexOf('\n');
            text = end > 0 ? text.substring(0, end) : text;
            text = text.length() > 160 ? text.substring(0, 160) : text;
            return error instanceof NotDecided ? text : error.getClass().getSimpleName() + ": " + text;
        }

        /** `once`: what is known of the rows of a subquery, see `PlanWriter.setOnce`. */
        private LogicalPlan decide(BiFunction decider, SparkSession spark, LogicalPlan plan, String mode, int once) {
            Set places = known;
            boolean again = once == 1 || explain != null && once == 2 && !(plan instanceof Subquery);
            Moment moment = Moment.current();
            if (plan.isStreaming() || !again && decidedBefore(plan, places, moment)) {
                return plan;
            }
            StackTraceElement[] frames = new Throwable().getStackTrace();
            if (Frames.neverRewritten(frames)) {
                return plan;
            }
            boolean write = plan instanceof Command || Frames.isWrite(frames);
            if (write && readsWhatItWrites(plan)) {
                count("own_target");
                return leftAlone(plan);
            }
            PlanWriter writer = new PlanWriter(places, moment);
            writer.setOnce(once);
            boolean kept = Frames.areKept(frames);
            Decided decision = new Decided();
            made.add(decision);
            Request request = new Request(spark, plan, mode, write, kept, moment, writer, decision.id);
            if (plain) {
                request.mayBeDecidedAlike();
            }
            enter();
            try {
                count("asked");
                asked = true;
                String document = write(spark, plan, writer);
                if (plan instanceof Subquery) {
                    // decided before its query and apart from it: what it may read now is of the query's moment
                    writer.lookUp();
                }
                Object answer = Wire.ask(decider, request, request.read(document));
                if (answer instanceof String && ((String) answer).length() > 0) {
                    throw new NotDecided((String) answer);
                }
                if (kept) {
                    Planned.mark(plan, decision);
                    return plan;
                }
                LogicalPlan rewritten = plan;
                if (request.grafts > 0 && !"planonly".equals(mode)) {
                    rewritten = request.rewritten;
                    moment.replaced = true;
                    decision.replaced = true;
                    count("replaced");
                    local = !write && !(plan instanceof Subquery) && request.localBounds != null ? request : local;
                }
                if (moment.replaced) {
                    writer.lookUp();
                    rewritten = besideCache(rewritten, moment);
                }
                Planned.mark(rewritten, decision);
                if (request.grafts > 0 || !isCorrelated(plan)) {
                    markDecided(rewritten, moment);
                }
                return rewritten;
            } finally {
                leave();
            }
        }

        /** What is read beside a cache, at the query's moment; but for what a write reads of its own target. */
        private static LogicalPlan besideCache(LogicalPlan plan, Moment moment) {
            Map snapshots = new HashMap(moment.snapshots);
            snapshots.remove(target());
            return Grafter.pinRest(plan, snapshots);
        }

        private static boolean readsWhatItWrites(LogicalPlan plan) {
            String target = target();
            return target != null && PlanWriter.reads(plan, Collections.singleton(target));
        }

        /**
         * Where the table lies that a transaction of Delta's in this thread writes; null if there is none. Delta notes
         * what is read of it, to see whether somebody else changed it meanwhile. It would note nothing of a cache, and
         * nothing of a table that is held at a snapshot.
         */
        private static String target() {
            scala.Option active = OptimisticTransaction$.MODULE$.getActive();
            return active.isEmpty()
                ? null : Tables.location(((OptimisticTransaction) active.get()).deltaLog().dataPath());
        }

        /** Its groups may be seen once Spark has joined it to its query: that is asked about as well. */
        private static boolean isCorrelated(LogicalPlan plan) {
            return plan instanceof Subquery && ((Subquery) plan).correlated();
        }

        /**
         * True if every known place in the plan was asked about already, in this query: the nodes of a subquery are those of
         * the DataFrame, and what was noted on them for one query is nothing to the next.
         */
        private static boolean decidedBefore(LogicalPlan plan, Set places, Moment moment) {
            if (plan instanceof LogicalRelation) {
                String location = PlanWriter.locationOf((LogicalRelation) plan);
                if (location == null || !places.contains(location)) {
                    return true;
                }
                scala.Option query = plan.getTagValue(Tags.DECIDED);
                return query.isDefined() && query.get() == moment.query;
            }
            scala.collection.Iterator children = plan.children().iterator();
            while (children.hasNext()) {
                if (!decidedBefore((LogicalPlan) children.next(), places, moment)) {
                    return false;
                }
            }
            return true;
        }

        private static void markDecided(LogicalPlan plan, Moment moment) {
            if (plan instanceof LogicalRelation) {
                plan.setTagValue(Tags.DECIDED, moment.query);
            }
            List children = Scala.list(plan.children());
            for (int i = 0; i < children.size(); i++) {
                markDecided((LogicalPlan) children.get(i), moment);
            }
        }
    }
}
