package relationalcache.sidecar;

import java.util.concurrent.ExecutionException;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BiFunction;

import org.slf4j.LoggerFactory;

import relationalcache.Counters;
import relationalcache.Hook;
import relationalcache.Request;
import relationalcache.Wire;

/**
 * The sidecar's decider. A query waits for it no longer than a time-out; then, and for a while afterwards, it is left as
 * it is.
 *
 * Threads of our own ask Python: each keeps its connection, so that neither a new JDBC connection has to open one, nor is
 * a query's thread caught in one that is stuck.
 */
final class TimedDecider implements BiFunction<Request, String, Object> {
    private final BiFunction<Object, Object, Object> python;
    private final ThreadPoolExecutor threads;
    private final long millis;
    final Breaker breaker = new Breaker(() -> System.nanoTime() / 1_000_000);

    /** The queue of `threads` holds nothing: what is put into it is taken at once by one of them that is free. */
    TimedDecider(BiFunction<Object, Object, Object> python, ThreadPoolExecutor threads, long millis) {
        this.python = python;
        this.threads = threads;
        this.millis = millis;
    }

    /** "" also where nothing is answered: the query runs as it is. */
    @Override
    public Object apply(Request request, String question) {
        if (!breaker.lets()) {
            Counters.count("not_asked");
            return "";
        }
        Handover handover = new Handover();
        Asked asked = new Asked(new Relay(request, handover), question, handover);
        long left = 0;
        try {
            left = takenUp(asked);
            handover.await(left);
        } catch (TimeoutException late) {
            request.abandon();
            if (left < millis) { // it had to wait for a thread, which says nothing of Python
                breaker.foundNoThread();
                Counters.count(left == 0 ? "not_asked" : "timed_out");
                return "";
            }
            breaker.failed();
            Counters.count("timed_out");
            LoggerFactory.getLogger("relationalcache.Sidecar").warn(
                "the original query runs, since the sidecar gave no answer within {} ms; it is asked again in {} ms",
                millis, breaker.pause());
            return "";
        } catch (InterruptedException cancelled) {
            request.abandon();
            breaker.gaveUp();
            Thread.currentThread().interrupt();
            return "";
        } catch (Error none) { // as where no thread can be had
            breaker.failed();
            throw none;
        }
        breaker.succeeded();
        if (asked.failure != null) {
            request.abandon();
            return String.valueOf(asked.failure);
        }
        return asked.answer;
    }

    /** Waits for a thread that takes a question up; how many milliseconds are left for the answer, all where one is free. */
    private long takenUp(Asked asked) throws TimeoutException, InterruptedException {
        long start = System.nanoTime();
        try {
            threads.execute(asked);
            return millis;
        } catch (RejectedExecutionException busy) {
            if (threads.isShutdown() || !threads.getQueue().offer(asked, millis, TimeUnit.MILLISECONDS)) {
                throw new TimeoutException("no thread was free within " + millis + " ms");
            }
            long waited = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start);
            return Math.max(1, millis - 1 - waited);
        }
    }

    /** Whether Python answers at all; waits so long for it. */
    boolean answers(long within) throws InterruptedException {
        try {
            threads.submit(() -> python.apply(null, "")).get(within, TimeUnit.MILLISECONDS);
            return true;
        } catch (TimeoutException | ExecutionException | RejectedExecutionException error) {
            return false;
        }
    }

    void close() {
        threads.shutdownNow();
    }

    /** One question, in a thread of ours. */
    private final class Asked implements Runnable {
        private final Relay relay;
        private final String question;
        private final Handover handover;
        private volatile Object answer = "";
        private volatile Throwable failure = null;

        Asked(Relay relay, String question, Handover handover) {
            this.relay = relay;
            this.question = question;
            this.handover = handover;
        }

        @Override
        public void run() {
            Hook.enter();
            try {
                answer = Wire.ask(python, relay, question);
            } catch (Throwable error) {
                failure = error;
            } finally {
                Hook.leave();
                handover.done();
            }
        }
    }
}
