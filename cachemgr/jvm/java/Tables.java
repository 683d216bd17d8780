package relationalcache;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.AliasIdentifier;
import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.VersionChecksum;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Delta tables by their place and version, and SELECT text over them.
 *
 * Nothing here looks a name up in a catalog: a text's relations are put in place of its unresolved ones,
 * so that it works under spark.sql.runSQLOnFiles=false and leaves nothing in SHOW TABLES.
 */
public final class Tables {
    private static final int FEW_FILES = 50;
    private static final String ADAPTIVE = "spark.sql.adaptive.enabled";
    /**
     * Of those that Spark's parser looks at (AbstractParser, AstBuilder, DataTypeAstBuilder), what a SELECT of ours can
     * meet. Left to the session are the ones that expressions are made under and that the query has its meaning by: ANSI,
     * the time zone, upper and lower case. Ours have no ordinal, BETWEEN, INTERVAL, IDENTIFIER, parameter or pipe.
     */
    private static final String[] PARSER = {
        "spark.sql.parser.escapedStringLiterals",
        "spark.sql.parser.quotedRegexColumnNames",
        "spark.sql.ansi.doubleQuotedIdentifiers",
        "spark.sql.ansi.enforceReservedKeywords",
        "spark.sql.ansi.relationPrecedence",
        "spark.sql.timestampType",
        "spark.sql.legacy.consecutiveStringLiterals.enabled",
        "spark.sql.legacy.exponentLiteralAsDecimal.enabled",
        "spark.sql.legacy.parser.havingWithoutGroupByAsWhere",
        "spark.sql.legacy.setopsPrecedence.enabled",
    };

    // A snapshot is the same object for as long as its table does not move.
    private static final Map FILES = new java.util.WeakHashMap();

    public Tables() {
    }

    /** The one spelling of a table's place: an absolute URI without a slash at its end. */
    public static String location(Path path) {
        String text = path.toUri().toString();
        while (text.length() > 1 && text.endsWith("/") && !text.endsWith(":/")) {
            text = text.substring(0, text.length() - 1);
        }
        if (text.startsWith("file:///")) {
            text = "file:" + text.substring("file://".length());
        }
        return text;
    }

    public static String normalise(SparkSession spark, String location) throws Exception {
        Path path = new Path(location);
        FileSystem fs = path.getFileSystem(spark.sessionState().newHadoopConf());
        return location(fs.makeQualified(path));
    }

    /** The path of a place in its one spelling, which is a URI: a space is escaped in it. */
    static Path path(String location) {
        try {
            return new Path(new java.net.URI(location));
        } catch (java.net.URISyntaxException plain) {
            return new Path(location);
        }
    }

    public static DeltaLog log(SparkSession spark, String location) {
        return DeltaLog.forTable((org.apache.spark.sql.SparkSession) spark, path(location));
    }

    public static Snapshot head(DeltaLog log) {
        return log.update(false, Scala.none(), Scala.none());
    }

    /** The snapshot of one version; the head's own when that is asked for, since another one is rebuilt at each read. */
    public static Snapshot snapshot(SparkSession spark, String location, long version) {
        DeltaLog log = log(spark, location);
        Snapshot current = log.unsafeVolatileSnapshot();
        if (current.version() == version) {
            return current;
        }
        current = head(log);
        if (current.version() == version) {
            return current;
        }
        return log.getSnapshotAt(version, Scala.none(), Scala.none(), false);
    }

    /** True if the files of a version hold its rows as they are: nothing in the log hides or renames a part of them. */
    public static boolean plainFiles(SparkSession spark, String location, long version) {
        org.apache.spark.sql.delta.actions.Protocol protocol = snapshot(spark, location, version).protocol();
        if (protocol.minReaderVersion() <= 1) {
            return true;
        }
        scala.Option features = protocol.readerFeatures();
        if (features.isEmpty()) {
            return false;
        }
        List names = Scala.list(((scala.collection.immutable.Set) features.get()).toSeq());
        names.removeAll(java.util.Arrays.asList(new Object[] {"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}));
        return names.isEmpty();
    }

    /** Has the state of the newest version computed meanwhile; see ReadAhead. */
    public static void readAhead(SparkSession spark, String location) {
        ReadAhead.start(spark, location);
    }

    /** Has a session of ours read its table's Change Data Feed as LocalReads says. */
    public static void readLocally(SparkSession spark, String location) {
        LocalReads.set(spark, location);
    }

    /** A table at one version, pinned: what is committed later never shows. */
    public static LogicalPlan atVersion(SparkSession spark, String location, long version) {
        Snapshot snapshot = snapshot(spark, location, version);
        scala.Option before = activate(spark);
        try {
            return LocalReads.over(org.apache.spark.sql.execution.datasources.LogicalRelation$.MODULE$.apply(
                snapshot.deltaLog().createRelation(
                    (scala.collection.immutable.Seq) Scala.seq(new ArrayList()),
                    Scala.some(snapshot), Scala.none(), true),
                false));
        } finally {
            restore(before);
        }
    }

    /**
     * The files of a version with few of them, and not of many bytes; null where there are more, or nobody knows. What
     * Delta's checksum lists is not read: Delta overwrites none that it finds, and so one may be that of a commit that was
     * undone since.
     */
    private static List listed(SparkSession spark, Snapshot snapshot, long mostBytes) {
        synchronized (FILES) {
            if (FILES.containsKey(snapshot)) {
                return (List) FILES.get(snapshot);
            }
        }
        scala.Option checksum = snapshot.checksumOpt();
        if (checksum.isEmpty() || ((VersionChecksum) checksum.get()).numFiles() > FEW_FILES
            || ((VersionChecksum) checksum.get()).tableSizeBytes() > mostBytes) {
            return null;
        }
        List found = java.util.Arrays.asList(collected(spark, snapshot));
        synchronized (FILES) {
            FILES.put(snapshot, found);
        }
        return found;
    }

    /** One job: under adaptive execution it would be three. */
    private static Object[] collected(SparkSession spark, Snapshot snapshot) {
        String adaptive = spark.conf().get(ADAPTIVE);
        scala.Option before = activate(spark);
        try {
            spark.conf().set(ADAPTIVE, "false");
            return (Object[]) snapshot.allFilesViaStateReconstruction().collect();
        } finally {
            spark.conf().set(ADAPTIVE, adaptive);
            restore(before);
        }
    }

    /** As atVersion, for a table of few files, which no job of the query has to look for. */
    public static LogicalPlan fewFiles(SparkSession spark, String location, long version) {
        Snapshot snapshot = snapshot(spark, location, version);
        List files = listed(spark, snapshot, Long.MAX_VALUE);
        if (files == null) {
            return atVersion(spark, location, version);
        }
        return some(spark, snapshot, files);
    }

    /** Some of the files of a snapshot. */
    public static LogicalPlan some(SparkSession spark, Snapshot snapshot, List files) {
        scala.Option before = activate(spark);
        try {
            Dataset frame = (Dataset) snapshot.deltaLog().createDataFrame(
                snapshot, (scala.collection.immutable.Seq) Scala.seq(files), false, Scala.none());
            return LocalReads.over(frame.queryExecution().analyzed());
        } finally {
            restore(before);
        }
    }

    /** Makes a session the thread's, under whose settings Delta makes relations; returns what is to be restored. */
    private static scala.Option activate(SparkSession spark) {
        scala.Option before = SparkSession.getActiveSession();
        SparkSession.setActiveSession(spark);
        return before;
    }

    private static void restore(scala.Option before) {
        if (before.isDefined()) {
            SparkSession.setActiveSession((SparkSession) before.get());
        } else {
            SparkSession.clearActiveSession();
        }
    }

    /**
     * One line of JSON: whether columns are mapped, so that statistics go by other names, and the bytes and the statistics,
     * a text or null, of each of a version's files; null where these are not few, or have more bytes.
     */
    public static String filesListed(SparkSession spark, String location, long version, long mostBytes) {
        Snapshot snapshot = snapshot(spark, location, version);
        List found = listed(spark, snapshot, mostBytes);
        if (found == null) {
            return null;
        }
        boolean mapped = snapshot.metadata().configuration().contains("delta.columnMapping.mode");
        StringBuilder out = new StringBuilder("[").append(mapped).append(",[");
        for (int i = 0; i < found.size(); i++) {
            AddFile file = (AddFile) found.get(i);
            out.append(i > 0 ? ",[" : "[").append(file.size()).append(',');
            if (file.stats() == null) {
                out.append("null");
            } else {
                Scala.quote(out, file.stats());
            }
            out.append(']');
        }
        return out.append("]]").toString();
    }

    /** Bytes of the newest version, by Delta's checksum where there is one: to add its files up is a job. */
    public static long bytes(SparkSession spark, String location) {
        Snapshot snapshot = head(log(spark, location));
        if (snapshot.version() < 0) {
            return 0;
        }
        scala.Option checksum = snapshot.checksumOpt();
        return checksum.isDefined() ? ((VersionChecksum) checksum.get()).tableSizeBytes() : snapshot.sizeInBytes();
    }

    /**
     * One line of JSON: for each location asked [location, table id, version, commit, timestamp], null where there is no
     * table, or what is wrong where its log cannot be read: that is the others' business no more.
     */
    public static String versions(SparkSession spark, List locations) {
        StringBuilder out = new StringBuilder("[");
        for (int i = 0; i < locations.size(); i++) {
            if (i > 0) {
                out.append(',');
            }
            try {
                out.append(version(spark, (String) locations.get(i)));
            } catch (Exception unreadable) {
                Scala.quote(out, unreadable.toString());
            }
        }
        return out.append(']').toString();
    }

    private static String version(SparkSession spark, String location) {
        Snapshot head = head(log(spark, location));
        if (head.version() < 0) {
            return "null";
        }
        if (Commits.byCatalog(head.protocol())) {
            throw new IllegalStateException(
                "its commits are managed by a catalog, so that its log does not tell how it stands");
        }
        StringBuilder out = new StringBuilder("[");
        Scala.quote(out, location);
        out.append(',');
        Scala.quote(out, head.metadata().id());
        out.append(',').append(head.version()).append(',');
        Commits.state(out, head);
        return out.append(']').toString();
    }

    /** One line of JSON: [name, is a folder, bytes, modified at (ms)] of each entry of a folder; none if it is not there. */
    public static String listing(SparkSession spark, String folder) throws Exception {
        Path path = path(folder);
        FileSystem fs = path.getFileSystem(spark.sessionState().newHadoopConf());
        StringBuilder out = new StringBuilder("[");
        try {
            FileStatus[] found = fs.listStatus(path);
            for (int i = 0; i < found.length; i++) {
                out.append(i > 0 ? ",[" : "[");
                Scala.quote(out, found[i].getPath().getName());
                out.append(',').append(found[i].isDirectory()).append(',').append(found[i].getLen());
                out.append(',').append(found[i].getModificationTime()).append(']');
            }
        } catch (java.io.FileNotFoundException gone) {
            // no folder has no entries
        }
        return out.append(']').toString();
    }

    /** The schema of a table at one version, in the JSON of the Delta protocol. */
    public static String schema(SparkSession spark, String location, long version) {
        return snapshot(spark, location, version).metadata().schemaString();
    }

    /** When the first commit after `version` was made (ms); -1 if there is none, 0 if its log entry is gone. */
    public static long firstCommitAfter(SparkSession spark, String location, long version)
        throws Exception {
        Snapshot head = head(log(spark, location));
        return head.version() <= version ? -1L : Commits.next(head, version);
    }

    /** A version below `head`, in the history of that; see Commits.past. */
    public static String past(SparkSession spark, String location, long version, long head) throws Exception {
        return Commits.past(snapshot(spark, location, head), version);
    }

    /** The commits after a version, up to `last`; see Ranges.read. */
    public static String commits(SparkSession spark, String location, long since, long last, long mostBytes)
        throws Exception {
        DeltaLog log = log(spark, location);
        Snapshot head = log.unsafeVolatileSnapshot();
        if (head.version() < last) {
            head = head(log);
        }
        if (head.version() < last) {
            throw new IllegalStateException("the table is at version " + head.version() + " now, before " + last);
        }
        return Ranges.read(head, since, last, mostBytes);
    }

    /** Analyses `text` with the given plans in place of its relations, in `spark`'s session. */
    public static Dataset select(SparkSession spark, String text, Map relations) {
        return Dataset.ofRows(spark, bind(parse(spark, text), relations));
    }

    /** What gives the words, quotes and types of a text another meaning; our own is parsed by Spark's defaults. */
    public static String parserSettings() {
        return String.join(",", PARSER);
    }

    /** Parses our own text: under the session's settings, save those of the parser. */
    public static LogicalPlan parse(SparkSession spark, final String text) {
        // Copied as Spark does for views: its setters log a warning for each that is deprecated.
        Map theirs = spark.sessionState().conf().settings();
        SQLConf conf = new SQLConf();
        synchronized (theirs) {
            conf.settings().putAll(theirs);
        }
        conf.settings().keySet().removeAll(java.util.Arrays.asList(PARSER));
        return (LogicalPlan) org.apache.spark.sql.internal.SQLConf$.MODULE$.withExistingConf(
            conf, new Parse(text));
    }

    public static final class Parse extends scala.runtime.AbstractFunction0 {
        private final String text;

        public Parse(String text) {
            this.text = text;
        }

        public Object apply() {
            return new CatalystSqlParser().parsePlan(text);
        }
    }

    private static LogicalPlan bind(LogicalPlan plan, Map relations) {
        if (plan instanceof UnresolvedRelation) {
            String name = name((UnresolvedRelation) plan);
            Object given = relations.get(name);
            if (given == null) {
                given = relations.get(name.toLowerCase(java.util.Locale.ROOT));
            }
            if (given == null) {
                throw new IllegalArgumentException(
                    "the text reads " + name + ", which is not among the relations given: " + relations.keySet());
            }
            // What a query notes down on its leaves must not stay with what the application shares.
            LogicalPlan table = given instanceof MultiInstanceRelation
                ? (LogicalPlan) ((MultiInstanceRelation) given).newInstance() : (LogicalPlan) ((LogicalPlan) given).clone();
            return new SubqueryAlias(new AliasIdentifier(lastPart(plan)), table);
        }
        List children = Scala.list(plan.children());
        for (int i = 0; i < children.size(); i++) {
            children.set(i, bind((LogicalPlan) children.get(i), relations));
        }
        return Scala.over(plan, children);
    }

    private static String name(UnresolvedRelation relation) {
        StringBuilder out = new StringBuilder();
        List parts = Scala.list(relation.multipartIdentifier());
        for (int i = 0; i < parts.size(); i++) {
            if (i > 0) {
                out.append('.');
            }
            out.append((String) parts.get(i));
        }
        return out.toString();
    }

    private static String lastPart(LogicalPlan plan) {
        List parts = Scala.list(((UnresolvedRelation) plan).multipartIdentifier());
        return (String) parts.get(parts.size() - 1);
    }
}
