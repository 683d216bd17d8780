package relationalcache;

import java.lang.ref.WeakReference;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;

import org.apache.spark.sql.catalyst.QueryPlanningTracker;
import org.apache.spark.sql.catalyst.QueryPlanningTracker$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.OptimisticTransaction$;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.files.TahoeLogFileIndex;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

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

    /** Stands for the query on nodes that outlive it. */
    final Object query = new Object();

    private final WeakReference transaction;

    private Moment(scala.Option transaction) {
        this.transaction = new WeakReference(transaction.isEmpty() ? null : transaction.get());
    }

    /** Of its own, and no query's. */
    public static Moment apart() {
        return new Moment(OptimisticTransaction$.MODULE$.getActive());
    }

    /**
     * The snapshot of a table, of no fixed version, as the query is to see it. Within a transaction of Delta's all queries see the same one:
     * a MERGE reads its source twice, each time by a query of its own, and only a scan that is left to Delta would be
     * noted there for the other one.
     */
    public Snapshot at(String location, TahoeLogFileIndex index) {
        Snapshot known = (Snapshot) snapshots.get(location);
        if (known != null) {
            return known;
        }
        OptimisticTransaction active = (OptimisticTransaction) transaction.get();
        Snapshot found = active == null ? StillNewest.of(index) : active.getDeltaScanGenerator(index).snapshotToScan();
        if (found == null) {
            Counters.count("listed");
            found = index.getSnapshot();
        }
        snapshots.put(location, found);
        return found;
    }

    /** Like `at`; counts what was not known yet. */
    public Snapshot lookUp(String location, TahoeLogFileIndex index) {
        if (!snapshots.containsKey(location)) {
            Counters.count("looked_up");
        }
        return at(location, index);
    }

    /** Looks up those tables of a plan, subqueries with it, that lie in one of these places. */
    public void lookUpAll(LogicalPlan plan, Set places) {
        if (plan instanceof LogicalRelation) {
            String location = PlanWriter.locationOf((LogicalRelation) plan);
            TahoeLogFileIndex index = PlanWriter.deltaIndex((LogicalRelation) plan);
            if (index != null && places.contains(location) && !index.isTimeTravelQuery()) {
                lookUp(location, index);
            }
        }
        List parts = Grafter.parts(plan);
        for (int i = 0; i < parts.size(); i++) {
            lookUpAll((LogicalPlan) parts.get(i), places);
        }
    }

    /** That of the query which this thread is optimising, if a part of it is answered from a cache; null if none is. */
    public static Moment ofReplaced() {
        scala.Option tracker = QueryPlanningTracker$.MODULE$.get();
        if (tracker.isEmpty()) {
            return null;
        }
        synchronized (BY_QUERY) {
            Moment found = (Moment) BY_QUERY.get((QueryPlanningTracker) tracker.get());
            return found != null && found.replaced ? found : null;
        }
    }

    /** That of the query which this thread is optimising. */
    public static Moment current() {
        scala.Option tracker = QueryPlanningTracker$.MODULE$.get();
        if (tracker.isEmpty()) {
            return apart();
        }
        synchronized (BY_QUERY) {
            Moment found = (Moment) BY_QUERY.get((QueryPlanningTracker) tracker.get());
            if (found == null) {
                found = apart();
                BY_QUERY.put(tracker.get(), found);
            }
            return found;
        }
    }
}
