package relationalcache;

import java.io.BufferedReader;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.math.BigInteger;
import java.security.MessageDigest;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.LogSegment;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.actions.Protocol;
import org.apache.spark.sql.delta.util.FileNames;

/**
 * Which commit a version of a table is. A version number is taken twice where a folder was put back from a copy, so a
 * version is known by the content of its commit: the writer's transaction id, or a hash of the file where there is none.
 *
 * A file is read once and again when its time or size changed, which the log segment of a snapshot tells without a
 * request. `cachemgr.delta.local_log` says the same of local folders, in the same words.
 */
public final class Commits {
    private static final int KEPT = 20000;
    /** As _BY_CATALOG in `cachemgr.delta.local_log`. */
    private static final String[] BY_CATALOG = {
        "catalogManaged", "catalogOwned-preview", "coordinatedCommits-preview"
    };
    private static final Map FILES = Collections.synchronizedMap(new Recent());
    private static final Map PASTS = Collections.synchronizedMap(new Recent());

    private Commits() {
    }

    private static final class Recent extends LinkedHashMap {
        Recent() {
            super(64, 0.75f, true);
        }

        protected boolean removeEldestEntry(Map.Entry eldest) {
            return size() > KEPT;
        }
    }

    /** What a commit's file said when it had this time and size; `inCommit` is -1 where the file's own time counts. */
    private static final class Read {
        long modified;
        long length;
        String identity = "";
        long inCommit = -1L;

        long time() {
            return inCommit >= 0L ? inCommit : modified;
        }
    }

    /** A version below a head, as that head's history has it; `head` is the version that it was looked up from. */
    private static final class Past {
        long head;
        long headModified;
        String identity = "";
        long time = -1L;
        long next = 0L;
    }

    /** True if commits go to a catalog, so that the files of the log do not tell how the table stands. */
    public static boolean byCatalog(Protocol protocol) {
        scala.Option features = protocol.writerFeatures();
        for (int i = 0; features.isDefined() && i < BY_CATALOG.length; i++) {
            if (((scala.collection.immutable.Set) features.get()).contains(BY_CATALOG[i])) {
                return true;
            }
        }
        return false;
    }

    /** Appends the commit of the version that a snapshot stands at and its time: "txn:…",1700000000000. */
    public static void state(StringBuilder out, Snapshot snapshot) {
        Scala.quote(out, identity(snapshot));
        out.append(',').append(snapshot.timestamp());
    }

    /** The commit of the version that a snapshot stands at; empty if its file is gone and only a checkpoint is left. */
    public static String identity(Snapshot snapshot) {
        LogSegment segment = snapshot.logSegment();
        FileStatus status = status(segment, snapshot.version());
        Path path = status == null ? FileNames.unsafeDeltaFile(segment.logPath(), snapshot.version()) : status.getPath();
        long modified = status == null ? segment.lastCommitFileModificationTimestamp() : status.getModificationTime();
        Read read = read(snapshot.deltaLog(), path, modified, status == null ? -1L : status.getLen());
        return read == null ? "" : read.identity;
    }

    /**
     * A version below the one that `head` stands at, in the history of that: its commit (empty: its file is gone), the
     * time of it (null: likewise) and that of the commit after it (0: likewise), as JSON.
     */
    public static String past(Snapshot head, long version) throws IOException {
        Past past = found(head, version);
        StringBuilder out = new StringBuilder("[");
        Scala.quote(out, past.identity);
        out.append(',').append(past.time < 0L ? "null" : Long.toString(past.time));
        return out.append(',').append(past.next).append(']').toString();
    }

    /** A commit and its time as its file says: "txn:…",1700000000000; null if the file is gone. */
    public static String said(DeltaLog log, FileStatus status) {
        Read read = read(log, status.getPath(), status.getModificationTime(), status.getLen());
        if (read == null) {
            return null;
        }
        StringBuilder out = new StringBuilder();
        Scala.quote(out, read.identity);
        return out.append(',').append(read.time()).toString();
    }

    /** When the first commit after a version below `head` was made (ms); 0 if its file is gone already. */
    public static long next(Snapshot head, long version) throws IOException {
        return found(head, version).next;
    }

    /** What the writer of a version noted down with its commit; null for nothing. Fails if the commit's file is gone. */
    static String userMetadata(DeltaLog log, long version) throws IOException {
        Path path = FileNames.unsafeDeltaFile(log.logPath(), version);
        JsonNode info = info(path.getFileSystem(log.newDeltaHadoopConf()), path);
        return info == null || !info.hasNonNull("userMetadata") ? null : field(info, "userMetadata").asText();
    }

    private static Past found(Snapshot head, long version) throws IOException {
        LogSegment segment = head.logSegment();
        String key = segment.logPath() + "#" + version;
        Past past = (Past) PASTS.get(key);
        // the head of the last look is still a part of this history, so what came before it is the same
        if (past == null || modified(head, past.head) != past.headModified) {
            past = look(head, version);
            PASTS.put(key, past);
        }
        return past;
    }

    private static Past look(Snapshot head, long version) throws IOException {
        Past past = new Past();
        past.head = head.version();
        past.headModified = head.logSegment().lastCommitFileModificationTimestamp();
        DeltaLog log = head.deltaLog();
        FileStatus own = anywhere(log, head.logSegment(), version);
        Read read = own == null ? null : read(log, own.getPath(), own.getModificationTime(), own.getLen());
        if (read != null) {
            past.identity = read.identity;
            past.time = read.time();
        }
        if (version + 1L == head.version()) {
            past.next = head.timestamp();
            return past;
        }
        FileStatus following = anywhere(log, head.logSegment(), version + 1L);
        if (following != null) {
            past.next = following.getModificationTime();
            // a file's own time may be anything after a copy: where the log keeps times, it says the truth
            if (((scala.Option) head.metadata().configuration().get("delta.enableInCommitTimestamps")).isDefined()) {
                Read next = read(log, following.getPath(), following.getModificationTime(), following.getLen());
                past.next = next == null ? 0L : next.time();
            }
        }
        return past;
    }

    private static long modified(Snapshot head, long version) {
        if (head.version() == version) {
            return head.logSegment().lastCommitFileModificationTimestamp();
        }
        FileStatus status = status(head.logSegment(), version);
        return status == null ? -1L : status.getModificationTime();
    }

    /** The file of a commit as a snapshot's log segment holds it in memory: those since its checkpoint. */
    static FileStatus status(LogSegment segment, long version) {
        List deltas = Scala.list(segment.deltas());
        for (int i = deltas.size() - 1; i >= 0; i--) {
            FileStatus status = (FileStatus) deltas.get(i);
            if (FileNames.isDeltaFile(status) && FileNames.deltaVersion(status) == version) {
                return status;
            }
        }
        return null;
    }

    private static FileStatus anywhere(DeltaLog log, LogSegment segment, long version) throws IOException {
        FileStatus status = status(segment, version);
        if (status != null) {
            return status;
        }
        Path path = FileNames.unsafeDeltaFile(segment.logPath(), version);
        try {
            return path.getFileSystem(log.newDeltaHadoopConf()).getFileStatus(path);
        } catch (FileNotFoundException gone) {
            return null;
        }
    }

    /** What a commit's file says; null if it is gone. */
    private static Read read(DeltaLog log, Path path, long modified, long length) {
        Read known = (Read) FILES.get(path.toString());
        if (known != null && known.modified == modified
            && (length < 0L || known.length < 0L || known.length == length)) {
            return known;
        }
        Read read = new Read();
        read.modified = modified;
        read.length = length;
        try {
            FileSystem fs = path.getFileSystem(log.newDeltaHadoopConf());
            JsonNode info = info(fs, path);
            String transaction = info == null || !info.hasNonNull("txnId") ? "" : field(info, "txnId").asText();
            read.identity = transaction.length() > 0 ? "txn:" + transaction : "sha256:" + digest(fs, path);
            read.inCommit = info == null || !info.hasNonNull("inCommitTimestamp")
                ? -1L : field(info, "inCommitTimestamp").asLong();
        } catch (FileNotFoundException gone) {
            return null;
        } catch (IOException error) {
            throw new UncheckedIOException("the commit " + path + " cannot be read: " + error.getMessage(), error);
        }
        FILES.put(path.toString(), read);
        return read;
    }

    private static JsonNode field(JsonNode info, String name) {
        return (JsonNode) info.get(name);
    }

    private static JsonNode info(FileSystem fs, Path path) throws IOException {
        ObjectMapper json = new ObjectMapper();
        BufferedReader lines = new BufferedReader(new InputStreamReader((InputStream) fs.open(path), "UTF-8"));
        try {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.contains("\"commitInfo\"")) {
                    JsonNode found = field(json.readTree(line), "commitInfo");
                    if (found != null && found.isObject()) {
                        return found;
                    }
                }
            }
            return null;
        } finally {
            lines.close();
        }
    }

    private static String digest(FileSystem fs, Path path) throws IOException {
        MessageDigest digest;
        try {
            digest = MessageDigest.getInstance("SHA-256");
        } catch (java.security.NoSuchAlgorithmException missing) {
            throw new IllegalStateException(missing);
        }
        InputStream bytes = (InputStream) fs.open(path);
        try {
            byte[] buffer = new byte[65536];
            for (int count = bytes.read(buffer); count >= 0; count = bytes.read(buffer)) {
                digest.update(buffer, 0, count);
            }
        } finally {
            bytes.close();
        }
        String text = new BigInteger(1, digest.digest()).toString(16);
        return "0000000000000000000000000000000000000000000000000000000000000000".substring(text.length()) + text;
    }
}
