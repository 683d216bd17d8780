package relationalcache.sidecar;

import java.util.function.LongSupplier;

/**
 * A circuit breaker: after a failure nobody is asked for a second, then one may try; each try that fails doubles the
 * pause, up to half a minute, and one that succeeds ends it.
 */
public final class Breaker {
    private static final long FIRST_MILLIS = 1_000;
    private static final long LONGEST_MILLIS = 30_000;

    private final LongSupplier clock;
    private long pause = 0;
    private long closedUntil = 0;
    private boolean trying = false;

    /** `clock` tells milliseconds. */
    public Breaker(LongSupplier clock) {
        this.clock = clock;
    }

    /** Whether to ask now. He who is let through says afterwards how it went. */
    public synchronized boolean lets() {
        if (pause == 0) {
            return true;
        }
        if (trying || clock.getAsLong() < closedUntil) {
            return false;
        }
        trying = true;
        return true;
    }

    public synchronized void succeeded() {
        pause = 0;
        trying = false;
    }

    /** He was let through and will not learn how it went: another one may try. */
    public synchronized void gaveUp() {
        trying = false;
    }

    /**
     * No thread was free for him in time. That is no failure while others are answered. Where he was the one to try, those
     * that hold the threads have had no answer for as long as the pause.
     */
    public synchronized void foundNoThread() {
        if (trying) {
            failed();
        }
    }

    public synchronized void failed() {
        if (pause > 0 && !trying) {
            return; // one of those that had been let through before the first failure
        }
        pause = Math.min(pause == 0 ? FIRST_MILLIS : 2 * pause, LONGEST_MILLIS);
        closedUntil = clock.getAsLong() + pause;
        trying = false;
    }

    /** How long there is nothing but failure, in milliseconds; 0 while it works. */
    public synchronized long pause() {
        return pause;
    }
}
