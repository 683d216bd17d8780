package relationalcache;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;

import io.delta.storage.HDFSLogStore;
import io.delta.storage.LocalLogStore;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.CapturedSnapshot;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.LogSegment;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.files.TahoeLogFileIndex;
import org.apache.spark.sql.delta.storage.DelegatingLogStore;
import org.apache.spark.sql.delta.storage.LogStore;
import org.apache.spark.sql.delta.storage.LogStoreAdaptor;
import org.apache.spark.sql.delta.util.FileNames;

/**
 * Whether the snapshot that Delta loaded a moment ago, for Spark's analysis as a rule, is still the table's newest, by
 * one look at its log: the commit of its version is the file that it was, and there is none of the next one. Delta would
 * list the log once more, under a lock of the table's, which is what many threads at once wait for
 * (`SnapshotManagement.update`).
 *
 * Where anything is not as it was, or is not known to be, the answer is no, and Delta is asked. A look sees less than a
 * listing (gaps, a checkpoint, an older commit that was repaired, the right to list), so none follows another: behind
 * each is a listing of Delta's that is at most `MOST_MILLIS` old.
 */
final class StillNewest {
    static final long MOST_MILLIS = 1000L;
    private static final String STALENESS_LIMIT = "spark.databricks.delta.stalenessLimit";
    private static final Map CONFIGURATIONS = Collections.synchronizedMap(new WeakHashMap());

    private StillNewest() {
    }

    /** The last snapshot of a table if it is the newest one now; else null. */
    static Snapshot of(TahoeLogFileIndex index) {
        DeltaLog log = index.deltaLog();
        CapturedSnapshot captured = log.getCapturedSnapshot();
        Snapshot snapshot = captured.snapshot();
        if (index.isTimeTravelQuery() || log.clock().getTimeMillis() - captured.updateTimestamp() > MOST_MILLIS) {
            return null;
        }
        // Delta refuses one without columns or with other ones than were analysed, and knows of commits that a catalog
        // has and the log has not
        if (snapshot.version() < 0 || snapshot.schema().isEmpty() || Commits.byCatalog(snapshot.protocol())
            || !snapshot.metadata().equals(index.metadata()) || !asDeltaLooks(index)) {
            return null;
        }
        try {
            boolean same = byStatus(log) ? twoStatuses(index, snapshot) : oneListing(log, snapshot);
            return same ? snapshot : null;
        } catch (InterruptedIOException interrupted) {
            Thread.currentThread().interrupt(); // the query's, which goes on to Delta's own listing
            return null;
        } catch (IOException | RuntimeException unknown) {
            return null;
        }
    }

    /** False where Delta may answer with a version that it knows is not the newest. */
    private static boolean asDeltaLooks(TahoeLogFileIndex index) {
        String limit = index.spark().conf().get(STALENESS_LIMIT, "0");
        return limit.equals("0") || limit.equals("0ms");
    }

    /** True where a file's status tells at once whether it is there, and a log store adds nothing to what the folder has. */
    private static boolean byStatus(DeltaLog log) {
        LogStore store = log.store();
        if (store instanceof DelegatingLogStore) {
            store = ((DelegatingLogStore) store).getDelegate(log.logPath());
        }
        if (!(store instanceof LogStoreAdaptor)) {
            return false;
        }
        Class kind = ((LogStoreAdaptor) store).logStoreImpl().getClass();
        return kind == HDFSLogStore.class || kind == LocalLogStore.class;
    }

    private static boolean twoStatuses(TahoeLogFileIndex index, Snapshot snapshot) throws IOException {
        DeltaLog log = index.deltaLog();
        Configuration settings = log.options().isEmpty() ? configuration(index.spark()) : log.newDeltaHadoopConf();
        if (settings.getBoolean("fs." + log.logPath().toUri().getScheme() + ".impl.disable.cache", false)) {
            return false; // each look would open one more that nobody closes
        }
        FileSystem files = log.logPath().getFileSystem(settings);
        try {
            files.getFileStatus(file(log, snapshot.version() + 1L));
            return false;
        } catch (FileNotFoundException none) {
            return isCommitOf(snapshot, files.getFileStatus(file(log, snapshot.version())));
        }
    }

    /** An object store has no cheaper answer than a listing, but this one is under no lock. */
    private static boolean oneListing(DeltaLog log, Snapshot snapshot) {
        scala.collection.Iterator found = log.listFrom(snapshot.version());
        boolean same = false;
        while (found.hasNext()) {
            FileStatus status = (FileStatus) found.next();
            if (!FileNames.isDeltaFile(status)) {
                continue;
            }
            if (FileNames.deltaVersion(status) > snapshot.version()) {
                return false;
            }
            same = same || FileNames.deltaVersion(status) == snapshot.version() && isCommitOf(snapshot, status);
        }
        return same;
    }

    /** By time and length, as `Commits` knows one file from another; a checkpoint or a compaction has the time alone. */
    private static boolean isCommitOf(Snapshot snapshot, FileStatus now) {
        LogSegment segment = snapshot.logSegment();
        FileStatus then = Commits.status(segment, snapshot.version());
        if (then == null) {
            return now.getModificationTime() == segment.lastCommitFileModificationTimestamp();
        }
        return now.getModificationTime() == then.getModificationTime() && now.getLen() == then.getLen();
    }

    private static Path file(DeltaLog log, long version) {
        return FileNames.unsafeDeltaFile(log.logPath(), version);
    }

    /**
     * Hadoop's settings of a session. To copy them takes longer than both looks, and they matter to the first
     * `FileSystem` of a scheme, place and user alone, which Hadoop keeps.
     */
    private static Configuration configuration(org.apache.spark.sql.SparkSession spark) {
        Configuration known = (Configuration) CONFIGURATIONS.get(spark);
        if (known == null) {
            known = ((SparkSession) spark).sessionState().newHadoopConf();
            CONFIGURATIONS.put(spark, known);
        }
        return known;
    }
}
