package relationalcache.results;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.lang.ref.WeakReference;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.util.Utils$;

/**
 * Where an application's results lie: a folder of its own, in it one for each statement. What is not needed any more is
 * deleted by a thread that nobody waits for.
 *
 * The application touches a file there each minute. A folder whose file was not touched for long is that of one that was
 * killed; any other application that comes by deletes it. Times are those of the storage, so that no clock counts.
 */
final class Place {
    private static final String NAME = "relational-cache-results-";
    private static final String ALIVE = "_alive";
    private static final FsPermission OWNER_ENTERS = new FsPermission((short) 0700);
    private static final FsPermission OWNER_READS = new FsPermission((short) 0600);
    private static final long TOUCHED_SECONDS = 60;
    private static final long DEAD_AFTER_MILLIS = TimeUnit.MINUTES.toMillis(15);
    private static final long SWEPT_EVERY = 60;
    private static final long TRIED_AGAIN_NANOS = TimeUnit.SECONDS.toNanos(60);

    private static SparkContext tried = null;
    private static long triedAt = 0;
    private static Place current = null;
    private static String told = null;

    private final FileSystem files;
    private final Path root;
    private final Path own;
    private final Map<String, WeakReference<Answer>> answers = new ConcurrentHashMap<>();
    private final ScheduledExecutorService thread = Executors.newSingleThreadScheduledExecutor(Place::named);
    private long touched = 0;

    private Place(SparkContext context, String location) throws IOException {
        root = new Path(location);
        files = root.getFileSystem(context.hadoopConfiguration());
        own = new Path(root, NAME + UUID.randomUUID());
        make(own);
        touch();
    }

    private static Thread named(Runnable work) {
        Thread made = new Thread(null, work, "relational-cache-results", 0, false);
        made.setDaemon(true);
        made.setContextClassLoader(Place.class.getClassLoader());
        return made;
    }

    /** The application's; null where none is known or none can be made, which is said once in the log. */
    static synchronized Place of(SparkContext context) {
        boolean again = tried != context || current == null && System.nanoTime() - triedAt > TRIED_AGAIN_NANOS;
        if (again) {
            tried = context;
            triedAt = System.nanoTime();
            current = made(context);
        }
        return current;
    }

    private static Place made(SparkContext context) {
        String location = context.getConf().get(Answers.LOCATION, "").trim();
        if (location.isEmpty() && !context.isLocal()) {
            tell("no place is known that the driver and all executors reach: set " + Answers.LOCATION
                + " in the server's configuration");
            return null;
        }
        try {
            Place place = new Place(context, location.isEmpty()
                ? "file://" + Utils$.MODULE$.getConfiguredLocalDirs(context.getConf())[0] : location);
            context.addSparkListener(new Ends(place));
            place.thread.scheduleAtFixedRate(place::look, 0, TOUCHED_SECONDS, TimeUnit.SECONDS);
            return place;
        } catch (IOException | RuntimeException error) {
            tell("no folder can be made in " + Answers.LOCATION + " (" + error.getMessage()
                + "): set it to a folder that the server and all executors may write");
            return null;
        }
    }

    private static void tell(String why) {
        if (!why.equals(told)) {
            told = why;
            Answers.LOG.warn("rows of Thrift clients come without files, though spark.cachemgr.results.toFiles is true: {}", why);
        }
    }

    private void make(Path folder) throws IOException {
        if (!files.mkdirs(folder, OWNER_ENTERS)) {
            throw new IOException("cannot make " + folder);
        }
        files.setPermission(folder, OWNER_ENTERS); // whatever the process's mask is
    }

    private void touch() throws IOException {
        files.create(new Path(own, ALIVE), true).close();
    }

    void keep(Answer answer) {
        answers.put(answer.statement, new WeakReference<>(answer));
    }

    /** A new folder for the files of a statement. */
    Path folder(String statement) throws IOException {
        Path folder = new Path(own, statement);
        files.delete(folder, true);
        make(folder);
        return files.resolvePath(folder);
    }

    /** Leaves the files that were written to their owner alone. */
    void shut(Path folder, List<AddFile> written) throws IOException {
        if ("file".equals(files.getScheme())) {
            for (AddFile file : written) {
                files.setPermission(new Path(folder, file.path()), OWNER_READS);
            }
        }
    }

    /** The statement's client has what he wants, or wants no more of it. */
    void end(String statement) {
        Incremental.end(statement);
        WeakReference<Answer> kept = answers.get(statement);
        if (kept != null) {
            delete(statement, kept.get());
        }
    }

    /** Its operation is closed. Nobody fetches from it any more. */
    void close(String statement) {
        end(statement);
        answers.remove(statement);
    }

    private void delete(String statement, Answer answer) {
        try {
            thread.execute(() -> {
                if (answer != null) {
                    answer.close();
                }
                delete(new Path(own, statement));
            });
        } catch (RejectedExecutionException over) {
            // so is the application, and its folder is gone
        }
    }

    private void delete(Path folder) {
        try {
            files.delete(folder, true);
        } catch (IOException later) {
            Answers.LOG.warn("{} cannot be deleted ({}); it goes with the application's folder", folder, later.getMessage());
        }
    }

    private void look() {
        try {
            touch();
            // the server's events may be lost; what it has forgotten is nobody's any more
            answers.forEach((statement, answer) -> {
                if (answer.get() == null) {
                    close(statement);
                }
            });
            if (touched++ % SWEPT_EVERY == 0) {
                sweep();
            }
        } catch (IOException | RuntimeException error) {
            Answers.LOG.warn("{} is not looked after: {}", own, error.getMessage());
        }
    }

    private void sweep() throws IOException {
        long now = files.getFileStatus(new Path(own, ALIVE)).getModificationTime();
        for (FileStatus other : files.listStatus(root)) {
            if (other.getPath().getName().startsWith(NAME) && now - lastSeen(other) > DEAD_AFTER_MILLIS) {
                delete(other.getPath());
            }
        }
    }

    private long lastSeen(FileStatus folder) throws IOException {
        try {
            return files.getFileStatus(new Path(folder.getPath(), ALIVE)).getModificationTime();
        } catch (FileNotFoundException without) {
            return folder.getModificationTime();
        }
    }

    /** The application ends. */
    void end() {
        thread.shutdownNow();
        delete(own);
    }
}
