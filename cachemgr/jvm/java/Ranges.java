package relationalcache;

import java.io.BufferedReader;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.util.FileNames;

/**
 * The commits of a range, each reduced to what tells whether rows changed: its files, the table's id, and actions that
 * nobody here knows. `cachemgr.delta.base_commits` says the same of local folders, in the same words.
 *
 * A commit is read once and again when its time or size changed. What it was reduced to is kept, up to a bound in
 * characters, so that caches with other snapshots of the table do not read it again.
 */
public final class Ranges {
    private static final long KEPT_CHARS = 16L << 20;
    /** As BOUNDED_FILES in `cachemgr.delta.base_commits`. */
    private static final int BOUNDED_FILES = 32;
    private static final Set HARMLESS = new HashSet(
        Arrays.asList(new Object[] {"commitInfo", "protocol", "txn", "domainMetadata"}));
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final LinkedHashMap KNOWN = new LinkedHashMap(64, 0.75f, true);
    private static long chars = 0L;

    private Ranges() {
    }

    private static final class Reduced {
        long modified;
        long length;
        String text = "";
    }

    /**
     * The commits after `since` up to `last`, in the history of `head`, which is at `last` or later: {"before": [commit,
     * time], "commits": [...]}; {"gone": version} if one is not in the log any more, {"bytes": n} if they are more than
     * `mostBytes` together.
     */
    public static String read(Snapshot head, long since, long last, long mostBytes) throws Exception {
        FileStatus[] found = statuses(head, since, last);
        long bytes = 0L;
        for (int i = 1; i < found.length; i++) {
            if (found[i] == null) {
                return gone(since + i);
            }
            bytes += found[i].getLen();
        }
        if (bytes > mostBytes) {
            return "{\"bytes\":" + bytes + "}";
        }
        DeltaLog log = head.deltaLog();
        String before = found[0] == null ? null : Commits.said(log, found[0]);
        StringBuilder out = new StringBuilder("{\"before\":[").append(before == null ? "\"\",null" : before);
        out.append("],\"commits\":[");
        // the last one comes last: it is the one that tells this history from another
        for (int i = 1; i < found.length; i++) {
            String text = reduced(log, found[i]);
            if (text == null) {
                return gone(since + i);
            }
            out.append(i > 1 ? ",[" : "[").append(since + i).append(',').append(text).append(']');
        }
        return out.append("]}").toString();
    }

    private static String gone(long version) {
        return "{\"gone\":" + version + "}";
    }

    /** The files of the commits from `since` to `last`: by the snapshot's own list, and what it lacks by one listing. */
    private static FileStatus[] statuses(Snapshot head, long since, long last) throws Exception {
        FileStatus[] found = new FileStatus[(int) (last - since) + 1];
        List deltas = Scala.list(head.logSegment().deltas());
        for (int i = 0; i < deltas.size(); i++) {
            put(found, since, (FileStatus) deltas.get(i));
        }
        for (int i = 0; i < found.length; i++) {
            if (found[i] == null) {
                list(head, found, since, since + i);
                break;
            }
        }
        return found;
    }

    private static void list(Snapshot head, FileStatus[] found, long since, long from) throws Exception {
        DeltaLog log = head.deltaLog();
        try {
            scala.collection.Iterator files = log.store().listFrom(
                FileNames.listingPrefix(log.logPath(), from), log.newDeltaHadoopConf());
            while (files.hasNext()) {
                FileStatus status = (FileStatus) files.next();
                if (FileNames.isDeltaFile(status) && FileNames.deltaVersion(status) >= since + found.length) {
                    return;
                }
                put(found, since, status);
            }
        } catch (Exception error) {  // Scala declares none
            if (!(error instanceof FileNotFoundException)) {
                throw error;
            }
        }
    }

    private static void put(FileStatus[] found, long since, FileStatus status) {
        if (!FileNames.isDeltaFile(status)) {
            return;
        }
        long at = FileNames.deltaVersion(status) - since;
        if (at >= 0L && at < found.length && found[(int) at] == null) {
            found[(int) at] = status;
        }
    }

    /** Commit, time, table id, unknown kinds, added and removed files and those of change rows, as the inside of a JSON list; null if it is gone. */
    private static String reduced(DeltaLog log, FileStatus status) throws IOException {
        String key = status.getPath().toString();
        synchronized (KNOWN) {
            Reduced known = (Reduced) KNOWN.get(key);
            if (known != null && known.modified == status.getModificationTime() && known.length == status.getLen()) {
                return known.text;
            }
        }
        String said = Commits.said(log, status);
        if (said == null) {
            return null;
        }
        StringBuilder out = new StringBuilder(said);
        try {
            actions(out, log, status.getPath());
        } catch (FileNotFoundException gone) {
            return null;
        }
        Reduced found = new Reduced();
        found.modified = status.getModificationTime();
        found.length = status.getLen();
        found.text = out.toString();
        keep(key, found);
        return found.text;
    }

    private static void keep(String key, Reduced found) {
        synchronized (KNOWN) {
            Reduced before = (Reduced) KNOWN.put(key, found);
            chars += found.text.length() - (before == null ? 0 : before.text.length());
            Iterator eldest = KNOWN.entrySet().iterator();
            while (chars > KEPT_CHARS && eldest.hasNext()) {
                chars -= ((Reduced) ((Map.Entry) eldest.next()).getValue()).text.length();
                eldest.remove();
            }
        }
    }

    private static void actions(StringBuilder out, DeltaLog log, Path path) throws IOException {
        FileSystem fs = path.getFileSystem(log.newDeltaHadoopConf());
        String tableId = null;
        Set unknown = new LinkedHashSet();
        int adds = 0;
        StringBuilder added = new StringBuilder();
        StringBuilder removed = new StringBuilder();
        StringBuilder changeRows = new StringBuilder();
        BufferedReader lines = new BufferedReader(new InputStreamReader((InputStream) fs.open(path), "UTF-8"));
        try {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.trim().length() == 0) {
                    continue;
                }
                JsonNode actions = JSON.readTree(line);
                Iterator kinds = actions.fieldNames();
                while (kinds.hasNext()) {
                    String kind = (String) kinds.next();
                    JsonNode action = at(actions, kind);
                    if (kind.equals("add")) {
                        file(added, action, adds < BOUNDED_FILES);
                        adds++;
                    } else if (kind.equals("remove")) {
                        file(removed, action, false);
                    } else if (kind.equals("cdc")) {
                        file(changeRows, action, false);
                    } else if (kind.equals("metaData")) {
                        tableId = at(action, "id").asText();
                    } else if (!HARMLESS.contains(kind)) {
                        unknown.add(kind);
                    }
                }
            }
        } finally {
            lines.close();
        }
        out.append(',');
        Scala.quote(out, tableId);
        out.append(",[");
        Iterator kinds = new ArrayList(unknown).iterator();
        while (kinds.hasNext()) {
            Scala.quote(out, (String) kinds.next());
            out.append(kinds.hasNext() ? "," : "");
        }
        out.append("],[").append((CharSequence) added).append("],[").append((CharSequence) removed);
        out.append("],[").append((CharSequence) changeRows).append(']');
    }

    private static JsonNode at(JsonNode node, String name) {
        return (JsonNode) node.get(name);
    }

    private static void file(StringBuilder out, JsonNode action, boolean bounded) throws IOException {
        JsonNode vector = action.hasNonNull("deletionVector") ? at(action, "deletionVector") : null;
        out.append(out.length() > 0 ? ",[" : "[");
        Scala.quote(out, at(action, "path").asText());
        out.append(',');
        Scala.quote(out, vector == null ? "" : vectorId(vector));
        out.append(',').append(action.hasNonNull("size") ? at(action, "size").asLong() : 0L).append(',');
        String stats = action.hasNonNull("stats") ? at(action, "stats").asText() : "";
        JsonNode told = stats.length() == 0 ? null : JSON.readTree(stats);
        out.append(rows(told, vector)).append(',');
        partition(out, action);
        out.append(",{");
        if (bounded && told != null) {
            bounds(out, told);
        }
        out.append("},").append(!action.hasNonNull("dataChange") || at(action, "dataChange").asBoolean());
        out.append(']');
    }

    /** As Delta makes it: DeletionVectorDescriptor.uniqueId. */
    private static String vectorId(JsonNode vector) {
        String name = at(vector, "storageType").asText() + at(vector, "pathOrInlineDv").asText();
        return vector.hasNonNull("offset") ? name + "@" + at(vector, "offset").asLong() : name;
    }

    /** The statistics count also the rows that the vector hides. */
    private static String rows(JsonNode told, JsonNode vector) {
        if (told == null || !told.hasNonNull("numRecords")) {
            return "null";
        }
        long hidden = vector == null ? 0L : at(vector, "cardinality").asLong();
        return Long.toString(at(told, "numRecords").asLong() - hidden);
    }

    /** Of whole numbers, whatever the type of their column; those of a vector's rows among them. */
    private static void bounds(StringBuilder out, JsonNode told) {
        JsonNode low = told.hasNonNull("minValues") ? at(told, "minValues") : JSON.createObjectNode();
        JsonNode high = told.hasNonNull("maxValues") ? at(told, "maxValues") : JSON.createObjectNode();
        String before = "";
        Iterator names = low.fieldNames();
        while (names.hasNext()) {
            String name = (String) names.next();
            if (isLong(at(low, name)) && isLong(at(high, name))) {
                before = bound(out, before, name, at(low, name).asLong(), at(high, name).asLong());
            }
        }
        if (!isLong(at(told, "numRecords")) || !told.hasNonNull("nullCount")) {
            return;
        }
        JsonNode nulls = at(told, "nullCount");
        long rows = at(told, "numRecords").asLong();
        names = nulls.fieldNames();
        while (names.hasNext()) {
            String name = (String) names.next();
            if (!low.has(name) && !high.has(name) && isLong(at(nulls, name)) && at(nulls, name).asLong() == rows) {
                before = bound(out, before, name, 0L, 0L);
            }
        }
    }

    private static boolean isLong(JsonNode value) {
        return value != null && value.isIntegralNumber() && value.canConvertToLong();
    }

    private static String bound(StringBuilder out, String before, String name, long low, long high) {
        out.append(before);
        Scala.quote(out, name);
        out.append(":[").append(low).append(',').append(high).append(']');
        return ",";
    }

    private static void partition(StringBuilder out, JsonNode action) {
        out.append('{');
        if (action.hasNonNull("partitionValues")) {
            JsonNode values = at(action, "partitionValues");
            Iterator names = values.fieldNames();
            while (names.hasNext()) {
                String name = (String) names.next();
                Scala.quote(out, name);
                out.append(':');
                Scala.quote(out, values.hasNonNull(name) ? at(values, name).asText() : null);
                out.append(names.hasNext() ? "," : "");
            }
        }
        out.append('}');
    }
}
