package relationalcache;

import java.util.concurrent.atomic.AtomicLong;

/** One decision, on the leaves of the plan that it was about: where such a leaf is planned, the decision is what runs. */
final class Decided {
    private static final AtomicLong NEXT = new AtomicLong();

    final long id = NEXT.incrementAndGet();
    /** Whether something was put in place. */
    volatile boolean replaced = false;
    /** Whether the query was answered by rows computed while it was planned. */
    volatile boolean local = false;
    /** Whether it was told already what became of it. */
    private boolean told = false;

    /** True for the first who asks: what became of a decision is told once, however often Spark plans it. */
    synchronized boolean tellOnce() {
        boolean first = !told;
        told = true;
        return first;
    }
}
