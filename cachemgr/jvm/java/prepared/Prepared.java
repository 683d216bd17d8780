package relationalcache.prepared;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BiFunction;

import relationalcache.Scala;

/**
 * The decisions that hold for a query's shape and not for its constants alone, kept so that the next query of that shape
 * is answered without Python. One for all sessions of an application that follow the same feed.
 *
 * Each belongs to an epoch, which ends with any change of what is served: a publish, drop, alter, grant, revoke, mark,
 * damage, a join that broke. And none serves unless Python was heard of a moment ago: it may be dead or stuck, and with it
 * whoever would tell of such a change.
 */
public final class Prepared {
    /** So long after it was heard of, Python is asked. */
    private static final long ALIVE_NANOS = TimeUnit.SECONDS.toNanos(4);
    private static final long MOST_BYTES = 16_000_000;
    /** Of one shape: they differ in constants that belong to it. */
    private static final int MOST_OF_A_SHAPE = 8;
    /** That of a plan, about; it has some hundred objects. */
    private static final long PLAN_BYTES = 30_000;
    private static final int MOST_USES = 10_000;

    private final AtomicLong epoch = new AtomicLong();
    private volatile long heardAt = System.nanoTime() - ALIVE_NANOS;
    private final LinkedHashMap<String, List<Kept>> shapes = new LinkedHashMap<>(64, 0.75f, true);
    private long bytes = 0;
    private final ArrayDeque<Use> uses = new ArrayDeque<>();
    private long dropped = 0;

    /**
     * A decision.
     *
     * @param id Python's number of it
     * @param epoch that in which it was made
     * @param pinned the constants that belong to the shape, as written; null for the free ones
     * @param versions of all tables that the query reads, as `Request.versions` has them
     * @param plan what is put in place
     * @param path where, with `node` and `parts` as in `Request.graft`
     * @param bounds as there
     */
    record Kept(
        long id, long epoch, List<String> pinned, String versions, PreparedPlan plan, String path, String node, String parts,
        String bounds) {
        private boolean isOf(Lifted lifted) {
            for (int i = 0; i < pinned.size(); i++) {
                if (pinned.get(i) != null && !pinned.get(i).equals(lifted.constants().get(i))) {
                    return false;
                }
            }
            return true;
        }

        private long bytes() {
            long found = PLAN_BYTES + 2L * versions.length();
            for (String constant : pinned) {
                found += constant == null ? 8 : 48 + 2L * constant.length();
            }
            return found;
        }
    }

    /** That a decision was used, to be told to Python. */
    private record Use(long id, String session, long decision, double millis, long at, List<String> constants) {
    }

    /** For Python, which calls static methods by an object. */
    public Prepared() {
    }

    public static Prepared create() {
        return new Prepared();
    }

    /** Decides by what is kept here where that will do, and else asks `python`. */
    public BiFunction<Object, Object, Object> before(BiFunction<?, ?, ?> python) {
        return new PreparedDecider(this, python);
    }

    /** What is served is about to change, or has. */
    public void changed() {
        epoch.incrementAndGet();
        synchronized (shapes) {
            shapes.clear();
            bytes = 0;
        }
    }

    /** Python lives, and may answer queries from caches. */
    public void heard() {
        heardAt = System.nanoTime();
    }

    long epoch() {
        return epoch.get();
    }

    /** Whether what was decided in an epoch still holds. */
    boolean holds(long since) {
        return epoch.get() == since && System.nanoTime() - heardAt < ALIVE_NANOS;
    }

    /** The decision that holds for such a query; null for none. */
    Kept find(String shape, Lifted lifted) {
        synchronized (shapes) {
            List<Kept> found = shapes.get(shape);
            for (int i = 0; found != null && i < found.size(); i++) {
                if (found.get(i).isOf(lifted)) {
                    return found.get(i);
                }
            }
            return null;
        }
    }

    void keep(String shape, Kept kept) {
        synchronized (shapes) {
            if (kept.epoch() != epoch.get()) {
                return;
            }
            List<Kept> of = shapes.get(shape);
            if (of == null) {
                of = new ArrayList<>();
                shapes.put(shape, of);
                bytes += 2L * shape.length();
            }
            of.removeIf(other -> other.pinned().equals(kept.pinned()) && forget(other));
            if (of.size() == MOST_OF_A_SHAPE) {
                forget(of.remove(0));
            }
            of.add(kept);
            bytes += kept.bytes();
            Iterator<Map.Entry<String, List<Kept>>> oldest = shapes.entrySet().iterator();
            while (bytes > MOST_BYTES && oldest.hasNext()) {
                Map.Entry<String, List<Kept>> gone = oldest.next();
                gone.getValue().forEach(this::forget);
                bytes -= 2L * gone.getKey().length();
                oldest.remove();
            }
        }
    }

    private boolean forget(Kept kept) {
        bytes -= kept.bytes();
        return true;
    }

    /** One that cannot be used any more. */
    void drop(String shape, Kept kept) {
        synchronized (shapes) {
            List<Kept> of = shapes.get(shape);
            if (of != null && of.remove(kept)) {
                forget(kept);
            }
        }
    }

    void used(Kept kept, String session, long decision, long nanos, List<String> constants) {
        Use use = new Use(kept.id(), session, decision, nanos / 1e6, System.currentTimeMillis(), constants);
        synchronized (uses) {
            if (uses.size() == MOST_USES) {
                uses.poll();
                dropped++;
            }
            uses.add(use);
        }
    }

    /** {"decisions": so many are kept, "bytes": about so many, "epoch": their epoch}. */
    public String stats() {
        synchronized (shapes) {
            int count = 0;
            for (List<Kept> of : shapes.values()) {
                count += of.size();
            }
            return "{\"decisions\":" + count + ",\"bytes\":" + bytes + ",\"epoch\":" + epoch.get() + "}";
        }
    }

    /**
     * What was used since the last call, the oldest first: [so many were dropped for want of room, [Python's number,
     * session, the hook's number of the decision, milliseconds, when in milliseconds since 1970, [constants, as written in
     * the document]], …].
     */
    public String drain() {
        List<Use> found;
        long lost;
        synchronized (uses) {
            found = new ArrayList<>(uses);
            uses.clear();
            lost = dropped;
            dropped = 0;
        }
        StringBuilder out = new StringBuilder("[").append(lost);
        for (Use use : found) {
            out.append(",[").append(use.id()).append(',');
            Scala.quote(out, use.session());
            out.append(',').append(use.decision()).append(',').append(use.millis()).append(',').append(use.at()).append(",[");
            for (int i = 0; i < use.constants().size(); i++) {
                out.append(i > 0 ? "," : "");
                Scala.quote(out, use.constants().get(i));
            }
            out.append("]]");
        }
        return out.append(']').toString();
    }
}
