package relationalcache.prepared;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;

import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

import relationalcache.Counters;
import relationalcache.Grafter;
import relationalcache.Request;
import relationalcache.Wire;

/** Stands before Python: decides by what was decided before, where all that it depends on is as it was then. */
final class PreparedDecider implements BiFunction<Object, Object, Object> {
    /** A longer document is decided by Python, which keeps none of them either. */
    private static final int LONGEST = 24_000;

    private final Prepared prepared;
    private final BiFunction<?, ?, ?> python;

    PreparedDecider(Prepared prepared, BiFunction<?, ?, ?> python) {
        this.prepared = prepared;
        this.python = python;
    }

    @Override
    public Object apply(Object asked, Object question) {
        if (!(asked instanceof Request request) || !request.mayBePrepared() || request.document().length() > LONGEST) {
            return Wire.ask(python, asked, (String) question);
        }
        long start = System.nanoTime();
        long epoch = prepared.epoch(); // before anything is looked at
        Lifted lifted = Lifted.of(request.document());
        String shape = request.asksAs() + '\n' + lifted.shape();
        Prepared.Kept kept = prepared.find(shape, lifted);
        if (kept != null && prepared.holds(kept.epoch()) && isPutIn(kept, request, shape, lifted)) {
            prepared.used(kept, request.session(), request.id(), System.nanoTime() - start, lifted.constants());
            return "";
        }
        request.prepareBy((sql, marks, id) -> offered(request, shape, lifted, epoch, sql, marks, id));
        return Wire.ask(python, asked, (String) question);
    }

    private boolean isPutIn(Prepared.Kept kept, Request request, String shape, Lifted lifted) {
        try {
            if (request.versions().equals(kept.versions())) {
                LogicalPlan body = kept.plan().bound(request.spark(), lifted);
                boolean fits = request.put(kept.path(), kept.node(), kept.parts(), body, kept.bounds()).isEmpty();
                if (fits && prepared.holds(kept.epoch())) {
                    Counters.count("prepared");
                    return true;
                }
            }
        } catch (Exception | LinkageError | StackOverflowError | AssertionError unusable) {
            // Spark's errors are checked ones; Python decides, and says what is wrong where something is
            prepared.drop(shape, kept);
        }
        request.abandon();
        return false;
    }

    /**
     * Keeps a decision that was put in place just now, if a plan with marks in place of its free constants is the very same
     * once these are filled in.
     *
     * @param marks place, type and mark of each free constant, as written in documents: "3:int:900000001,5:string:mark0_5"
     */
    private boolean offered(
        Request request, String shape, Lifted lifted, long epoch, String sql, String marks, long id) {
        Request.Put put = request.onlyPut();
        if (put == null || put.bounds().isEmpty()) {
            return false;
        }
        Map<Literal, Integer> places = new HashMap<>();
        List<String> pinned = new ArrayList<>(lifted.constants());
        for (String mark : marks.isEmpty() ? new String[0] : marks.split(",")) {
            String[] parts = mark.split(":");
            int place = Integer.parseInt(parts[0]);
            if (!lifted.types().get(place).equals(parts[1])) {
                return false;
            }
            String written = parts[1].equals("string") ? '"' + parts[2] + '"' : parts[2];
            places.put(Lifted.literal(parts[1], written), Integer.valueOf(place));
            pinned.set(place, null);
        }
        PreparedPlan plan;
        try {
            LogicalPlan marked = Grafter.finished(request.spark(), request.analysed(sql, put.relations()));
            plan = new PreparedPlan(marked, places, put.relations().values());
            if (!plan.bound(request.spark(), lifted).sameResult(put.body())) {
                return false;
            }
        } catch (PreparedPlan.NotPrepared known) {
            return false;
        }
        Prepared.Kept kept = new Prepared.Kept(
            id, epoch, pinned, request.versions(), plan, put.path(), put.node(), put.parts(), put.bounds());
        request.whenSound(() -> prepared.keep(shape, kept));
        return true;
    }
}
