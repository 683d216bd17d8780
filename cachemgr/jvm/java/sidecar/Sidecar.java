package relationalcache.sidecar;

import java.io.IOException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiFunction;

import org.apache.spark.SparkContext;
import org.apache.spark.sql.classic.SparkSession;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import relationalcache.Hook;
import relationalcache.prepared.Prepared;

/**
 * The Python process that decides and carries statements out for a driver in which no Python of ours runs: spark-sql, a
 * Thrift server, a Connect server, a Scala program. One an application; started with its first session, started again
 * when it ends, and ended with the application.
 */
public final class Sidecar implements Runnable {
    private static final Logger LOG = LoggerFactory.getLogger("relationalcache.Sidecar");
    private static final String PREFIX = "spark.cachemgr.";
    private static final String TIMEOUT = PREFIX + "sidecar.timeout";
    /** A process that lived so long did start well. */
    private static final long GOOD_LIFE_MILLIS = 60_000;
    private static final long FIRST_PAUSE_MILLIS = 1_000;
    private static final long LONGEST_PAUSE_MILLIS = 60_000;
    /** So long there is no answer until the process is taken for dead. */
    private static final long DEAD_AFTER_MILLIS = 15_000;
    private static final int MOST_QUESTIONS = 16;
    private static final int MOST_STATEMENTS = 256;

    private static Sidecar current = null;

    private final SparkSession spark;
    private final SparkContext context;
    private final CountDownLatch firstReady = new CountDownLatch(1);
    private volatile SidecarProcess process = null;
    private volatile TimedDecider decider = null;
    private volatile Statements statements = null;
    private volatile String trouble = "it has not started yet";
    private volatile boolean over = false;

    /** Python reaches the static methods by an instance, see `loader.java_class`. */
    public Sidecar() {
        this(null);
    }

    private Sidecar(SparkSession spark) {
        this.spark = spark;
        this.context = spark == null ? null : spark.sparkContext();
        if (context != null) {
            context.addSparkListener(new Failures(this::failed));
        }
    }

    private void failed(String text) {
        Statements found = statements;
        if (found != null) {
            try {
                found.failed(text);
            } catch (RejectedExecutionException ended) {
                // so has the process that it would be told to
            }
        }
    }

    /** A session is made. Where a Python program drives the application it may call us itself: until it asks, nothing starts. */
    static void begin(SparkSession spark) {
        if (isPythonDriven()) {
            Hook.whenMissed(missed -> started((SparkSession) missed));
        } else {
            started(spark);
        }
    }

    /** Whether some thread of this JVM serves or waits for the Python program that drives it. */
    private static boolean isPythonDriven() {
        for (StackTraceElement[] frames : Thread.getAllStackTraces().values()) {
            for (StackTraceElement frame : frames) {
                String name = frame.getClassName();
                if (name.startsWith("org.apache.spark.api.python.PythonGatewayServer")
                    || name.startsWith("org.apache.spark.deploy.PythonRunner")) {
                    return true;
                }
            }
        }
        return false;
    }

    private static synchronized void started(SparkSession spark) {
        SparkContext context = spark.sparkContext();
        if (current != null && current.context == context) {
            return;
        }
        String enabled = context.getConf().get(PREFIX + "enabled", "true");
        if (context.isStopped() || !"true".equalsIgnoreCase(enabled.trim()) || Hook.isTaken()) {
            return;
        }
        current = new Sidecar(spark);
        Thread supervisor = clean("relational-cache-sidecar", current);
        supervisor.start();
    }

    /** What carries statements out; waits for a sidecar that starts. Raises why there is none. */
    static Statements statements(SparkSession spark) {
        started(spark);
        Sidecar sidecar = current;
        if (sidecar == null || sidecar.context != spark.sparkContext()) {
            throw StatementError.of(
                "SIDECAR_OFF", "relational caches are off in this application: start it without "
                    + "spark.cachemgr.enabled=false, or run the statement where they are on");
        }
        try {
            sidecar.firstReady.await(SidecarProcess.START_SECONDS, TimeUnit.SECONDS);
        } catch (InterruptedException cancelled) {
            Thread.currentThread().interrupt();
        }
        Statements found = sidecar.statements;
        if (found == null) {
            throw StatementError.of(
                "SIDECAR_LOST", "the process beside Spark that carries statements out does not run: " + sidecar.trouble
                    + "; it is started again and again, the driver's log (relationalcache.Sidecar) says more");
        }
        return found;
    }

    /** The session that the Python process works in. */
    public static SparkSession session() {
        return current.spark;
    }

    /** The Python process is ready; called by it. */
    public static void attach(
        BiFunction<Object, Object, Object> decide, BiFunction<Object, Object, Object> carryOut, Prepared prepared) {
        Sidecar sidecar = current;
        sidecar.decider = new TimedDecider(decide, threads("decides", MOST_QUESTIONS), sidecar.timeoutMillis());
        sidecar.statements = new Statements(carryOut, threads("statement", MOST_STATEMENTS));
        Hook.serve(prepared.before(sidecar.decider));
        sidecar.firstReady.countDown();
        LOG.info("relational caches serve this application; their Python process took {} ms to start",
            sidecar.process.ageMillis());
    }

    /** Python in this driver has taken over, or the application ends. */
    public static synchronized void end() {
        if (current != null) {
            current.over = true;
            current.stop();
        }
    }

    private long timeoutMillis() {
        return context.getConf().getTimeAsMs(TIMEOUT, "250ms");
    }

    @Override
    public void run() {
        long pause = FIRST_PAUSE_MILLIS;
        while (!over && !context.isStopped()) {
            long began = System.currentTimeMillis();
            try {
                process = SidecarProcess.start(context.getConf());
                watch();
            } catch (IOException error) {
                trouble = error.getMessage();
            } catch (InterruptedException stop) {
                over = true;
            } finally {
                stop();
            }
            if (over || context.isStopped()) {
                break;
            }
            pause = System.currentTimeMillis() - began > GOOD_LIFE_MILLIS
                ? FIRST_PAUSE_MILLIS : Math.min(2 * pause, LONGEST_PAUSE_MILLIS);
            LOG.warn("relational caches answer nothing, since their Python process ended: {}; it is started again in {} s",
                trouble, pause / 1000);
            firstReady.countDown();
            try {
                Thread.sleep(pause);
            } catch (InterruptedException stop) {
                break;
            }
        }
        stop();
    }

    /** Returns once the process has ended, or is taken for dead, or the application stops. */
    private void watch() throws InterruptedException {
        long silentSince = 0;
        while (!process.ended(500)) {
            if (over || context.isStopped()) {
                return;
            }
            TimedDecider asked = decider;
            if (asked == null || asked.breaker.pause() == 0) {
                silentSince = 0;
            } else if (silentSince == 0) {
                silentSince = System.currentTimeMillis();
            } else if (System.currentTimeMillis() - silentSince > DEAD_AFTER_MILLIS && !asked.answers(TimeUnit.SECONDS.toMillis(5))) {
                trouble = "it did not answer any more, and was killed";
                return;
            }
            if (asked == null && process.isLate()) {
                trouble = "it was not ready within " + SidecarProcess.START_SECONDS + " s; its last words: " + process.lastWords();
                return;
            }
        }
        trouble = "exit code " + process.exitCode() + ", its last words: " + process.lastWords();
    }

    private void stop() {
        TimedDecider decides = decider;
        Statements carries = statements;
        Hook.serve(null);
        decider = null;
        statements = null;
        if (process != null) {
            process.kill();
        }
        if (decides != null) {
            decides.close();
        }
        if (carries != null) {
            carries.close();
        }
    }

    /** Threads that have nothing from the one that happens to need them first: no job group, no user, no session. */
    private static ThreadPoolExecutor threads(String name, int most) {
        AtomicInteger number = new AtomicInteger();
        ThreadFactory made = work -> clean("relational-cache-" + name + "-" + number.incrementAndGet(), work);
        return new ThreadPoolExecutor(0, most, 5, TimeUnit.MINUTES, new SynchronousQueue<>(), made);
    }

    static Thread clean(String name, Runnable work) {
        Thread thread = new Thread(null, work, name, 0, false);
        thread.setDaemon(true);
        thread.setContextClassLoader(Sidecar.class.getClassLoader());
        return thread;
    }
}
