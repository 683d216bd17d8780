package relationalcache.sidecar;

import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Between a thread that plans a query and the one that asks Python for it. What Python wants to be done with the plan is
 * done by the former, whose session, settings and planning are those of the query; it waits no longer than its time-out,
 * whatever the other one is stuck in.
 */
final class Handover {
    private static final FutureTask<Object> DONE = new FutureTask<>(() -> null);

    private final LinkedBlockingQueue<FutureTask<?>> tasks = new LinkedBlockingQueue<>();
    private volatile boolean over = false;

    /** Has `task` done by the thread that waits; called by the one that asks. */
    <T> T call(Callable<T> task) throws Exception {
        FutureTask<T> handed = new FutureTask<>(task);
        tasks.add(handed);
        if (over) {
            handed.cancel(false);
        }
        if (handed.isCancelled()) {
            throw new IllegalStateException("the query did not wait for its answer");
        }
        try {
            return handed.get();
        } catch (java.util.concurrent.CancellationException late) {
            throw new IllegalStateException("the query did not wait for its answer");
        } catch (ExecutionException failed) {
            throw failed.getCause() instanceof Exception cause ? cause : failed;
        }
    }

    /** Whether nobody waits any more. */
    boolean isOver() {
        return over;
    }

    /** There is an answer; called by the one that asks. */
    void done() {
        tasks.add(DONE);
    }

    /**
     * Does what it is handed until there is an answer; called by the thread that waits. What it does itself takes its own
     * time, and is not counted.
     */
    void await(long millis) throws TimeoutException, InterruptedException {
        long left = TimeUnit.MILLISECONDS.toNanos(millis);
        try {
            while (true) {
                long start = System.nanoTime();
                FutureTask<?> task = tasks.poll(left, TimeUnit.NANOSECONDS);
                left -= System.nanoTime() - start;
                if (task == null) {
                    throw new TimeoutException("no answer within " + millis + " ms");
                }
                if (task == DONE) {
                    return;
                }
                task.run();
            }
        } finally {
            over = true;
            FutureTask<?> late;
            while ((late = tasks.poll()) != null) {
                if (late != DONE) {
                    late.cancel(false);
                }
            }
        }
    }
}
