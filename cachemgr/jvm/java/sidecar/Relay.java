package relationalcache.sidecar;

import java.util.List;
import java.util.Map;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

import relationalcache.Request;

/** A `Request` whose methods are carried out by the thread that plans the query. */
public final class Relay {
    private final Request request;
    private final Handover handover;

    Relay(Request request, Handover handover) {
        this.request = request;
        this.handover = handover;
    }

    public boolean isAwaited() {
        return !handover.isOver();
    }

    public LogicalPlan atVersion(String location, long version, String name) throws Exception {
        return handover.call(() -> request.atVersion(location, version, name));
    }

    public LogicalPlan named(LogicalPlan stored, String name) throws Exception {
        return handover.call(() -> request.named(stored, name));
    }

    public LogicalPlan over(String name, LogicalPlan relation, String sql) throws Exception {
        return handover.call(() -> request.over(name, relation, sql));
    }

    public String versions() throws Exception {
        return handover.call(request::versions);
    }

    public void askAgain() throws Exception {
        handover.call(() -> {
            request.askAgain();
            return null;
        });
    }

    public String currentSchema() throws Exception {
        return handover.call(request::currentSchema);
    }

    public String graft(String path, String node, String parts, String sql, Map relations, String bounds) throws Exception {
        return handover.call(() -> request.graft(path, node, parts, sql, relations, bounds));
    }

    public boolean prepare(String sql, String marks, long number) throws Exception {
        return handover.call(() -> request.prepare(sql, marks, number));
    }

    public LogicalPlan table(String path, String location) throws Exception {
        return handover.call(() -> request.table(path, location));
    }

    public LogicalPlan added(String path, String location, long since, List keys) throws Exception {
        return handover.call(() -> request.added(path, location, since, keys));
    }
}
