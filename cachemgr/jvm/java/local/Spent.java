package relationalcache.local;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;

import relationalcache.Scala;

/** What an evaluation has taken so far, against its bounds. */
final class Spent {
    /** Of expressions, of which each row takes some: about a tenth of a second. */
    private static final long MOST_STEPS = 5_000_000;
    /** Of the processor. */
    private static final long MOST_NANOS = 250_000_000;
    /** Of the clock: a busy machine, or a pause of the collector, says nothing of the next query. */
    private static final long MOST_WAITED_NANOS = 1_000_000_000;
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final boolean IS_MEASURED = THREADS.isCurrentThreadCpuTimeSupported();
    private static final int LOOK = 512;

    private final Bounds bounds;
    private final long until = System.nanoTime() + MOST_WAITED_NANOS;
    private final long measuredUntil = measured() + MOST_NANOS;
    private long rows = 0;
    private long steps = 0;
    private long bytes = 0;
    private int ticks = 0;

    Spent(Bounds bounds) {
        this.bounds = bounds;
    }

    /**
     * Held rows are going to be looked at.
     *
     * @throws Bound.Refused they are too many, which costs nothing to find out
     */
    void looksAt(long more) {
        rows += more;
        if (rows > bounds.rows()) {
            throw new Bound.Refused("more than " + bounds.rows() + " rows to look at");
        }
    }

    /** An expression is evaluated for each of the rows that are looked at, of which there may be as many as held. */
    void evaluates(Expression expression) {
        steps += size(expression);
    }

    /** Once all is known that there is to evaluate. */
    void start() {
        if (rows * steps > MOST_STEPS) {
            throw new Bound.Refused("too much to compute: " + steps + " expressions for each of " + rows + " rows");
        }
    }

    private static long size(Expression expression) {
        long sum = expression instanceof In in ? 1 + Scala.list(in.list()).size() : 1;
        for (Object child : Scala.list(expression.children())) {
            if (!(expression instanceof In) || child == expression.children().head()) {
                sum += size((Expression) child);
            }
        }
        return sum;
    }

    /** One more row was looked at: now and then whether there is time left, and whether anybody still waits. */
    void tick() {
        if (++ticks % LOOK == 0) {
            if (measured() > measuredUntil) {
                throw new Bounds.Exceeded("more time than it may take");
            }
            if (System.nanoTime() - until > 0) {
                throw new Bound.Refused("no time, as the machine is busy");
            }
            if (Thread.currentThread().isInterrupted()) {
                throw new Bound.Refused("nobody waits for it any more");
            }
        }
    }

    private static long measured() {
        return IS_MEASURED ? THREADS.getCurrentThreadCpuTime() : 0;
    }

    /** One more row of some kind is kept. */
    void keeps(int count, long size) {
        if (count > bounds.groups()) {
            throw new Bounds.Exceeded("more than " + bounds.groups() + " rows");
        }
        takes(64 + size);
    }

    void takes(long more) {
        bytes += more;
        if (bytes > bounds.bytes()) {
            throw new Bounds.Exceeded("more than " + bounds.bytes() + " bytes");
        }
    }

    /** Bytes of a value, about. */
    static long size(Object value) {
        return value instanceof UTF8String text ? 56 + text.numBytes() : value instanceof Decimal ? 56 : 24;
    }

    /** Bytes of a row's values. */
    static long size(Object[] values) {
        long sum = 0;
        for (Object value : values) {
            sum += size(value);
        }
        return sum;
    }
}
