package relationalcache;

import java.util.HashMap;
import java.util.Map;
import java.util.WeakHashMap;

import org.apache.spark.sql.catalyst.QueryPlanningTracker;
import org.apache.spark.sql.catalyst.QueryPlanningTracker$;

/**
 * The one moment at which all parts of a query see the tables. Spark optimises subquery expressions apart from their
 * query and before it, each a decision of its own, and a commit may land in between.
 */
public final class Moment {
    private static final Map BY_QUERY = new WeakHashMap();

    /** Delta snapshots by location, as the first decision of the query saw them. */
    public final Map snapshots = new HashMap();
    /** Some part of the query is answered from a cache, so that the rest must be read at `snapshots`. */
    public boolean replaced = false;

    private Moment() {
    }

    /** That of the query which this thread is optimising. */
    public static Moment current() {
        scala.Option tracker = QueryPlanningTracker$.MODULE$.get();
        if (tracker.isEmpty()) {
            return new Moment();
        }
        synchronized (BY_QUERY) {
            Moment found = (Moment) BY_QUERY.get((QueryPlanningTracker) tracker.get());
            if (found == null) {
                found = new Moment();
                BY_QUERY.put(tracker.get(), found);
            }
            return found;
        }
    }
}
