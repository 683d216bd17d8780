package relationalcache;

import java.util.Collections;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/** How often what happened, and one line of log for each distinct failure. */
public final class Counters {
    private static final String[] NAMES = {
        "called", "no_known_table", "own_target", "asked", "prepared", "replaced", "local", "local_busy", "looked_up", "listed", "refused_schema", "failed", "timed_out",
        "not_asked"
    };
    private static final int KEPT = 1024;
    private static final long[] ASKED = new long[KEPT];
    private static final long[] PASSED = new long[KEPT];
    private static final AtomicLong NEXT_ASKED = new AtomicLong();
    private static final AtomicLong NEXT_PASSED = new AtomicLong();
    private static final Map VALUES = new ConcurrentHashMap();
    private static final Set LOGGED = Collections.newSetFromMap(new ConcurrentHashMap());

    static {
        for (int i = 0; i < NAMES.length; i++) {
            VALUES.put(NAMES[i], new AtomicLong());
        }
    }

    public Counters() {
    }

    public static void count(String name) {
        ((AtomicLong) VALUES.get(name)).incrementAndGet();
    }

    /** What the rule added to one query: `asked` if Python was called. The last ones are kept. */
    public static void took(boolean asked, long nanos) {
        long[] kept = asked ? ASKED : PASSED;
        AtomicLong next = asked ? NEXT_ASKED : NEXT_PASSED;
        kept[(int) (next.getAndIncrement() % KEPT)] = nanos;
    }

    /** How many durations there were so far. */
    public static long measured(boolean asked) {
        return (asked ? NEXT_ASKED : NEXT_PASSED).get();
    }

    /** The last durations in nanoseconds, oldest first. */
    public static String durations(boolean asked, int last) {
        long[] kept = asked ? ASKED : PASSED;
        long end = measured(asked);
        long start = Math.max(0, end - Math.min(KEPT, last));
        StringBuilder out = new StringBuilder("[");
        for (long i = start; i < end; i++) {
            out.append(i > start ? "," : "").append(kept[(int) (i % KEPT)]);
        }
        return out.append(']').toString();
    }

    public static String json() {
        StringBuilder out = new StringBuilder("{");
        for (int i = 0; i < NAMES.length; i++) {
            out.append(i > 0 ? "," : "");
            Scala.quote(out, NAMES[i]);
            out.append(':').append(((AtomicLong) VALUES.get(NAMES[i])).get());
        }
        return out.append('}').toString();
    }

    public static void failed(String cause, Throwable error) {
        count("failed");
        // A bound, since a cause with a path or a number in it is distinct each time.
        if (LOGGED.size() < 100 && LOGGED.add(cause)) {
            org.slf4j.LoggerFactory.getLogger("relationalcache.Hook").warn(
                "relational caches: the original query runs, since the rewrite failed: " + cause,
                error instanceof Hook.NotDecided ? null : error);
        }
    }
}
