package relationalcache;

import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;

import relationalcache.local.Bounds;

/** One question to the decider, and where its answer is put together. Lives for one callback, in one thread. */
public final class Request {
    private final SparkSession spark;
    private final LogicalPlan plan;
    private final String mode;
    public final boolean write;
    private final boolean kept;
    private final long id;
    public LogicalPlan rewritten;
    public int grafts = 0;
    /** What computing the rewritten plan's rows here may take; null where that is not wanted. */
    public Bounds localBounds = null;

    private final Moment moment;
    private final PlanWriter writer;
    /** Whether a decision on it may be one that was made before, and may be kept. */
    private boolean preparable = false;
    private String document = "";
    private String asksAs = "";
    private Put put = null;
    private Preparer preparer = null;
    private Runnable whenSound = null;

    /** Keeps a decision, see `prepared.PreparedDecider`. */
    public interface Preparer {
        boolean prepare(String sql, String marks, long id);
    }

    /** What was put in place; see `graft`. */
    public record Put(String path, String node, String parts, Map relations, LogicalPlan body, String bounds) {
    }

    public Request(
        SparkSession spark, LogicalPlan plan, String mode, boolean write, boolean kept, Moment moment,
        PlanWriter writer, long id) {
        this.id = id;
        this.kept = kept;
        this.moment = moment;
        this.writer = writer;
        this.spark = spark;
        this.plan = plan;
        this.mode = mode;
        this.write = write;
        this.rewritten = plan;
    }

    /** Nothing of what was put together counts: nobody waits for the rest. */
    public void abandon() {
        rewritten = plan;
        grafts = 0;
        put = null;
        localBounds = null;
        whenSound = null;
    }

    public long id() {
        return id;
    }

    public SparkSession spark() {
        return spark;
    }

    public String session() {
        return spark.sessionUUID();
    }

    /** No rule of another extension has a say in the query, which is not explained either. */
    void mayBeDecidedAlike() {
        preparable = !write && !kept && !(plan instanceof Subquery) && !"planonly".equals(mode);
    }

    public boolean mayBePrepared() {
        return preparable;
    }

    public String document() {
        return document;
    }

    /** All that a decision goes by beside the document: who asks, in what way, under which settings and hints, from where. */
    public String asksAs() {
        return currentSchema() + asksAs;
    }

    public void prepareBy(Preparer found) {
        preparer = found;
    }

    /**
     * Keeps the decision that was put in place for queries that differ from this one in free constants alone.
     *
     * @param sql that of `graft`, with marks in place of these
     * @param marks see `prepared.PreparedDecider`
     * @param number Python's number of the decision
     * @return whether it is kept, unless a rule of another extension has a say
     */
    public boolean prepare(String sql, String marks, long number) {
        return preparer != null && preparer.prepare(sql, marks, number);
    }

    /** `keep` is run once it is known that no other rule refuses or changes what was put in place. */
    public void whenSound(Runnable keep) {
        whenSound = keep;
    }

    void isSound() {
        if (whenSound != null) {
            whenSound.run();
        }
    }

    /** What was put in place, if that was one part of the query; else null. */
    public Put onlyPut() {
        return grafts == 1 ? put : null;
    }

    public LogicalPlan analysed(String sql, Map relations) {
        return Tables.select(spark, sql, relations).queryExecution().analyzed();
    }

    /** Whether the query still waits for what is being put together. */
    public boolean isAwaited() {
        return true;
    }

    /** A cache's table at one version, as the query's session reads it, but whole; called `name` in plans. */
    public LogicalPlan atVersion(String location, long version, String name) {
        return named(WholeFiles.over(Tables.atVersion(spark, location, version)), name);
    }

    /** `stored`, whose files are called `name` in plans. */
    public LogicalPlan named(LogicalPlan stored, String name) {
        return name.isEmpty() ? stored : ScanName.over(stored, name);
    }

    /** What `sql` makes of one relation, analysed in the query's session. */
    public LogicalPlan over(String name, LogicalPlan relation, String sql) {
        return Tables.select(spark, sql, java.util.Collections.singletonMap(name, relation)).queryExecution().analyzed();
    }

    /** The versions of the known tables of which the document has none: {location: [id, version, commit, time]}. */
    public String versions() {
        return writer.lookUp();
    }

    /** The plan, of a subquery, is to be asked about once more if it is that of EXISTS or IN; see `Subqueries`. */
    public void askAgain() {
        Subqueries.mark(plan);
    }

    /** [catalog, schema] that names without them mean in the query's session now. */
    public String currentSchema() {
        StringBuilder out = new StringBuilder("[");
        Scala.quote(out, spark.sessionState().catalogManager().currentCatalog().name());
        out.append(',');
        Scala.quote(out, String.join(".", spark.sessionState().catalogManager().currentNamespace()));
        return out.append(']').toString();
    }

    /**
     * {"id", "session", "preparable", "user", "vouched", "mode", "kept", "write", "subquery", "settings", "texts", "tags"} and
     * on the next line the document: all that most decisions need, so that there is one crossing.
     */
    public String read(String text) {
        document = text;
        StringBuilder out = new StringBuilder(document.length() + 4096);
        out.append("{\"id\":").append(id).append(",\"session\":");
        Scala.quote(out, spark.sessionUUID());
        out.append(",\"preparable\":").append(preparable);
        int own = out.length();
        Who who = Who.asks(spark);
        out.append(",\"user\":");
        if (who.name() == null) {
            out.append("null");
        } else {
            Scala.quote(out, who.name());
        }
        out.append(",\"vouched\":").append(who.vouched());
        out.append(",\"mode\":");
        Scala.quote(out, mode);
        out.append(",\"kept\":").append(kept).append(",\"write\":").append(write).append(",\"subquery\":").append(plan instanceof Subquery);
        out.append(",\"settings\":");
        settings(spark, out);
        StringBuilder texts = new StringBuilder();
        StringBuilder tags = new StringBuilder();
        hints(plan, texts, tags, new HashSet());
        out.append(",\"texts\":[").append(texts).append("],\"tags\":[").append(tags).append("]}\n");
        asksAs = preparable ? out.substring(own) : "";
        return out.append(document).toString();
    }

    public static void settings(SparkSession spark, StringBuilder out) {
        SQLConf conf = spark.sessionState().conf();
        out.append("{\"spark.sql.session.timeZone\":");
        Scala.quote(out, conf.sessionLocalTimeZone());
        // SPARK_ANSI_SQL_MODE in the environment makes the default; a setting that is not named is taken for true.
        if (!conf.ansiEnabled() && !conf.contains("spark.sql.ansi.enabled")) {
            out.append(",\"spark.sql.ansi.enabled\":\"false\"");
        }
        scala.collection.Iterator entries = conf.getAllConfs().iterator();
        while (entries.hasNext()) {
            scala.Tuple2 entry = (scala.Tuple2) entries.next();
            String key = (String) entry._1();
            if (key.startsWith("spark.sql.") || key.startsWith("spark.cachemgr.")
                || key.startsWith("spark.databricks.delta.") || ofParquetsReader(key)) {
                if (!key.equals("spark.sql.session.timeZone")) {
                    out.append(',');
                    Scala.quote(out, key);
                    out.append(':');
                    Scala.quote(out, (String) entry._2());
                }
            }
        }
        out.append('}');
    }

    /** Those of Hadoop's settings by which Parquet's reader leaves rows out. */
    private static boolean ofParquetsReader(String key) {
        String name = key.startsWith("spark.hadoop.") ? key.substring(13) : key;
        return name.equals("parquet.strings.signed-min-max.enabled") || name.equals("parquet.read.filter")
            || name.equals("parquet.private.read.filter.predicate");
    }

    /** Who asks, under which settings. */
    String asker() {
        StringBuilder out = new StringBuilder(String.valueOf(Who.asks(spark).name()));
        settings(spark, out);
        return out.toString();
    }

    /** The SQL texts that the plan's nodes came from, where they may hold a hint, and hints given by the DataFrame API. */
    private static void hints(LogicalPlan node, StringBuilder texts, StringBuilder tags, HashSet seen) {
        scala.Option tag = node.getTagValue(Tags.HINT);
        if (tag.isDefined() && seen.add("tag:" + tag.get())) {
            tags.append(tags.length() > 0 ? "," : "");
            Scala.quote(tags, (String) tag.get());
        }
        scala.Option text = node.origin().sqlText();
        if (text.isDefined() && seen.add(text.get())
            && ((String) text.get()).toUpperCase(Locale.ROOT).contains("RELATIONAL_CACHE")) {
            texts.append(texts.length() > 0 ? "," : "");
            Scala.quote(texts, (String) text.get());
        }
        List expressions = Scala.list(node.expressions());
        for (int i = 0; i < expressions.size(); i++) {
            text = ((org.apache.spark.sql.catalyst.expressions.Expression) expressions.get(i)).origin().sqlText();
            if (text.isDefined() && seen.add(text.get())
                && ((String) text.get()).toUpperCase(Locale.ROOT).contains("RELATIONAL_CACHE")) {
                texts.append(texts.length() > 0 ? "," : "");
                Scala.quote(texts, (String) text.get());
            }
        }
        List children = Scala.list(node.children());
        for (int i = 0; i < children.size(); i++) {
            hints((LogicalPlan) children.get(i), texts, tags, seen);
        }
    }

    /**
     * Puts the rows of `sql` at `path` ("0.1"); says what is wrong with its columns instead, where something is. They
     * stand for the subtree's; or, where `node` is given, for `parts` of the outputs of the node at that path below. `bounds` are
     * those of `Bounds`; "" where some of the relations are not held.
     */
    public String graft(String path, String node, String parts, String sql, Map relations, String bounds) {
        LogicalPlan body = Grafter.finished(spark, analysed(sql, relations));
        String difference = put(path, node, parts, body, bounds);
        put = new Put(path, node, parts, relations, body, bounds);
        return difference;
    }

    /** The same of a plan that is analysed, and has come as far as `Grafter.finished` has it. */
    public String put(String path, String node, String parts, LogicalPlan body, String bounds) {
        int[] steps = Split.steps(path);
        LogicalPlan original = Grafter.at(plan, steps);
        Split split = node == null ? null : new Split(Grafter.at(original, Split.steps(node)), parts);
        String difference = Grafter.difference(split == null ? Scala.list(original.output()) : split.parts(), body);
        if (difference != null) {
            Counters.count("refused_schema");
            return difference;
        }
        rewritten = Grafter.graft(rewritten, steps, body, split);
        grafts++;
        localBounds = grafts == 1 && bounds.length() > 0 ? Bounds.read(bounds) : null;
        return "";
    }

    /** The table at `location` as the subtree at `path` reads it, at the snapshot that the query saw of it. */
    public LogicalPlan table(String path, String location) {
        LogicalRelation found = Grafter.relation(Grafter.at(plan, Split.steps(path)), location);
        if (found == null) {
            throw new IllegalArgumentException("the replaced part does not read " + location);
        }
        return Grafter.held(found, moment);
    }

    /** Of that table only the files named by `keys`, which were added after version `since`; see ChangedFiles. */
    public LogicalPlan added(String path, String location, long since, List keys) throws Exception {
        LogicalRelation found = Grafter.relation(Grafter.at(plan, Split.steps(path)), location);
        Snapshot snapshot = (Snapshot) moment.snapshots.get(location);
        if (found == null || snapshot == null) {
            throw new IllegalArgumentException("the replaced part does not read " + location + " as it was seen");
        }
        return ChangedFiles.rows(found, snapshot, since, keys);
    }
}
