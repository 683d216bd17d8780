package relationalcache;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.DeltaTableUtils;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.actions.Action$;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.files.TahoeBatchFileIndex;
import org.apache.spark.sql.delta.files.TahoeLogFileIndex;
import org.apache.spark.sql.delta.util.FileNames;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * Some files that commits of a table added or removed, read as the table's schema at a later version has them: what came
 * and what went since a snapshot. A file is known by its path and the id of its deletion vector; one path may stand in a
 * log with several vectors.
 */
public final class ChangedFiles {
    private static final ObjectMapper JSON = new ObjectMapper();
    // A snapshot is the same object for as long as its table does not move.
    private static final Map FOUND = new java.util.WeakHashMap();

    public ChangedFiles() {
    }

    /** `key` is the path as the log spells it, a newline, and the vector's id or nothing. */
    private static String key(AddFile file) {
        return file.path() + "\n" + (file.deletionVector() == null ? "" : file.deletionVector().uniqueId());
    }

    /** The rows of the files named by `keys`, which commits `since` (left out) to `version` added, or removed. */
    public static LogicalPlan rows(
        SparkSession spark, String location, long since, long version, List keys, boolean removed) throws Exception {
        Snapshot snapshot = Tables.snapshot(spark, location, version);
        List files = new ArrayList(find(snapshot.deltaLog(), since, version, keys, removed).values());
        return Tables.some(spark, snapshot, files);
    }

    /** The same as the relation of a query reads them: its catalog table, its columns' ids, the user's own rights. */
    public static LogicalPlan rows(LogicalRelation relation, Snapshot snapshot, long since, List keys)
        throws Exception {
        TahoeLogFileIndex index = PlanWriter.deltaIndex(relation);
        List files = remembered(snapshot, since, keys);
        return LocalReads.over(DeltaTableUtils.replaceFileIndex(relation, (FileIndex) new TahoeBatchFileIndex(
            index.spark(), "batch", (scala.collection.immutable.Seq) Scala.seq(files), snapshot.deltaLog(), index.path(),
            snapshot, false)));
    }

    /** A query after the other asks for the same files of the same snapshot. */
    private static List remembered(Snapshot snapshot, long since, List keys) throws Exception {
        List key = new ArrayList(keys);
        key.add(Long.toString(since));
        synchronized (FOUND) {
            Map known = (Map) FOUND.get(snapshot);
            if (known != null && known.containsKey(key)) {
                return (List) known.get(key);
            }
        }
        List files = new ArrayList(find(snapshot.deltaLog(), since, snapshot.version(), keys, false).values());
        synchronized (FOUND) {
            Map known = (Map) FOUND.get(snapshot);
            if (known == null) {
                known = new LinkedHashMap();
                FOUND.put(snapshot, known);
            }
            known.put(key, files);
        }
        return files;
    }

    /**
     * One line of JSON: whether columns are mapped, so that statistics go by other names, and of each file its bytes and
     * its statistics, a text or null.
     */
    public static String statistics(SparkSession spark, String location, long since, long version, List keys)
        throws Exception {
        Snapshot snapshot = Tables.snapshot(spark, location, version);
        boolean mapped = snapshot.metadata().configuration().contains("delta.columnMapping.mode");
        StringBuilder out = new StringBuilder("[").append(mapped).append(",[");
        Object[] files = find(snapshot.deltaLog(), since, version, keys, false).values().toArray();
        for (int i = 0; i < files.length; i++) {
            AddFile file = (AddFile) files[i];
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

    /** Whether writers of the table are told, at a version, to keep its Change Data Feed. */
    public static boolean keepsFeed(SparkSession spark, String location, long version) throws Exception {
        scala.Option set = Tables.snapshot(spark, location, version).metadata().configuration().get(
            "delta.enableChangeDataFeed");
        return set.isDefined() && "true".equalsIgnoreCase((String) set.get());
    }

    /** The columns that a version of the table is partitioned by, as partition values name them; a line of JSON. */
    public static String partitionColumns(SparkSession spark, String location, long version) throws Exception {
        String[] names = Tables.snapshot(spark, location, version).metadata().physicalPartitionSchema().fieldNames();
        StringBuilder out = new StringBuilder("[");
        for (int i = 0; i < names.length; i++) {
            out.append(i > 0 ? "," : "");
            Scala.quote(out, names[i]);
        }
        return out.append(']').toString();
    }

    /**
     * The paths of those files that are no more where the log says; a line of JSON. A shallow clone has files of its source,
     * which may lie in another storage than its own.
     */
    public static String missing(SparkSession spark, String location, List paths) throws Exception {
        DeltaLog log = Tables.log(spark, location);
        Configuration conf = log.newDeltaHadoopConf();
        FileSystem own = log.dataPath().getFileSystem(conf);
        StringBuilder out = new StringBuilder("[");
        for (int i = 0; i < paths.size(); i++) {
            String path = (String) paths.get(i);
            Path file = new Path(new java.net.URI(path));
            FileSystem storage = file.toUri().getScheme() == null ? own : file.getFileSystem(conf);
            if (!storage.exists(file.isAbsolute() ? file : new Path(log.dataPath(), file))) {
                out.append(out.length() > 1 ? "," : "");
                Scala.quote(out, path);
            }
        }
        return out.append(']').toString();
    }

    private static Map find(DeltaLog log, long since, long version, List keys, boolean removed) throws Exception {
        Set wanted = new java.util.HashSet(keys);
        String kind = removed ? "remove" : "add";
        Map found = new LinkedHashMap();
        Configuration conf = log.newDeltaHadoopConf();
        for (long at = since + 1L; at <= version; at++) {
            List lines = Scala.list(log.store().read(FileNames.unsafeDeltaFile(log.logPath(), at), conf));
            for (int i = 0; i < lines.size(); i++) {
                String line = (String) lines.get(i);
                if (line.contains("\"" + kind + "\"")) {
                    JsonNode action = (JsonNode) JSON.readTree(line).get(kind);
                    AddFile file = action != null && action.isObject() ? file(action, line, removed) : null;
                    if (file != null && wanted.contains(key(file))) {
                        found.put(key(file), file);
                    }
                }
            }
        }
        if (found.size() != wanted.size()) {
            throw new IllegalStateException(
                "the log at " + log.logPath() + " does not hold " + (wanted.size() - found.size()) + " of the files that "
                + "were changed after version " + since + ": it was cleaned meanwhile");
        }
        return found;
    }

    /**
     * A removed file as it stood in the table before. Where rows are tracked, Delta reads no file without the number of its
     * first row, and one that came or went before they were has none; nobody here looks at these numbers.
     */
    private static AddFile file(JsonNode action, String line, boolean removed) throws Exception {
        boolean tracked = action.hasNonNull("baseRowId");
        if (!removed && tracked) {
            return (AddFile) Action$.MODULE$.fromJson(line);
        }
        if (!action.hasNonNull("size") || !action.hasNonNull("partitionValues")) {
            return null;
        }
        ObjectNode add = JSON.createObjectNode();
        String[] kept = {"path", "partitionValues", "size", "deletionVector", "stats", "tags", "clusteringProvider"};
        for (int i = 0; i < kept.length; i++) {
            if (action.hasNonNull(kept[i])) {
                add.put(kept[i], (JsonNode) action.get(kept[i]));
            }
        }
        add.put("baseRowId", tracked ? ((JsonNode) action.get("baseRowId")).asLong() : 0L);
        add.put("defaultRowCommitVersion", 0L);
        add.put("modificationTime",
            action.hasNonNull("modificationTime") ? ((JsonNode) action.get("modificationTime")).asLong() : 0L);
        add.put("dataChange", true);
        ObjectNode whole = JSON.createObjectNode();
        whole.put("add", (JsonNode) add);
        return (AddFile) Action$.MODULE$.fromJson(whole.toString());
    }
}
