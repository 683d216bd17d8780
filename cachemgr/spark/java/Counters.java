package relationalcache;

import java.util.Collections;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/** How often what happened, and one line of log for each distinct failure. */
public final class Counters {
    private static final String[] NAMES = {
        "called", "no_known_table", "own_target", "asked", "replaced", "refused_schema", "failed"
    };
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
                "relational caches: the original query runs, since the rewrite failed: " + cause, error);
        }
    }
}
