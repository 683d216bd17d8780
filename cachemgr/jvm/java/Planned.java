package relationalcache;

import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.LinkedBlockingQueue;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.ReturnAnswer;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;

/**
 * Notes which decisions Spark plans to run. A decision alone says little: Spark drops subqueries of which nothing is wanted,
 * optimises the query of a write first as part of its command and then once more to run it, and putting something in place
 * may fail. What is left in a query's plan after the batches that rewrite plans is what runs.
 *
 * Of a command's query that is so only if Spark plans it with the command, which a planner strategy is told that itself
 * plans nothing. Python fetches what was noted when it has time; no query waits for that.
 */
public final class Planned extends SparkStrategy {
    /** Far more than are decided between two fetches. */
    private static final int MOST = 100_000;
    private static final LinkedBlockingQueue NOTES = new LinkedBlockingQueue(MOST);
    /** The queries of the command that this thread is planning. */
    private static final ThreadLocal QUERIES = new ThreadLocal();
    private static final Planned ONLY = new Planned();
    /**
     * Those of relations held in memory, which lose their tags where Spark copies a plan, and of aggregates without groups,
     * which Delta answers from a table's statistics: by the id of their first column, and of what it is renamed to above.
     */
    private static final Map HELD = new WeakHashMap();

    private Planned() {
    }

    /** For a session's extensions, as is the other: Spark makes its list of strategies anew for each plan. */
    public static final class StrategyBuilder extends scala.runtime.AbstractFunction1 {
        public Object apply(Object session) {
            return ONLY;
        }
    }

    public static final class RuleBuilder extends scala.runtime.AbstractFunction1 {
        public Object apply(Object session) {
            return new AfterRewriting();
        }
    }

    /** Looks at each plan once it is rewritten, ahead of what looks for statistics and files. It changes nothing. */
    public static final class AfterRewriting extends Rule {
        public String ruleName() {
            return "relationalcache.AfterRewriting";
        }

        public TreeNode apply(TreeNode node) {
            if (node instanceof Subquery) {
                return node; // its query comes after it
            }
            Explain explain = Explain.current();
            if (explain != null) {
                explain.end((LogicalPlan) node);
            } else if (!(node instanceof Command)) {
                note((LogicalPlan) node);
            }
            return node;
        }
    }

    @Override
    public scala.collection.immutable.Seq apply(LogicalPlan plan) {
        if (plan instanceof ReturnAnswer) {
            QUERIES.set(queriesOf(((ReturnAnswer) plan).child()));
        } else {
            Set queries = (Set) QUERIES.get();
            if (queries != null && queries.remove(plan)) {
                note(plan);
            }
        }
        return (scala.collection.immutable.Seq) Scala.seq(Collections.EMPTY_LIST);
    }

    private static Set queriesOf(LogicalPlan plan) {
        if (!(plan instanceof Command) || plan.children().isEmpty()) {
            return null;
        }
        Set found = Collections.newSetFromMap(new IdentityHashMap());
        found.addAll(Scala.list(plan.children()));
        return found;
    }

    private static void note(LogicalPlan plan) {
        Object[] found = decisions(plan).toArray();
        for (int i = 0; i < found.length; i++) {
            if (((Decided) found[i]).tellOnce()) {
                tell((Decided) found[i], null);
            }
        }
    }

    /** Those of a plan, and of the subqueries in it. */
    static Set decisions(LogicalPlan plan) {
        Set found = new LinkedHashSet();
        add(plan, found);
        return found;
    }

    private static void add(LogicalPlan plan, Set into) {
        Decided decided = of(plan);
        if (decided != null) {
            into.add(decided);
        }
        List parts = Grafter.parts(plan);
        for (int i = 0; i < parts.size(); i++) {
            add((LogicalPlan) parts.get(i), into);
        }
    }

    /** Nothing of a decision runs, since putting it in place failed. */
    static void failed(Decided decided, String cause) {
        if (decided.tellOnce()) {
            tell(decided, cause);
        }
    }

    private static void tell(Decided decided, String cause) {
        Object[] note = {
            Long.valueOf(decided.id), Boolean.valueOf(decided.replaced), Boolean.valueOf(decided.local), cause};
        while (!NOTES.offer(note)) {
            NOTES.poll(); // nobody has fetched them for long: the oldest go
        }
    }

    /** What was noted since the last call: [[id, whether something was put in place, whether as rows, why it failed or null], …]. */
    static String fetch() {
        StringBuilder out = new StringBuilder("[");
        for (Object[] note = (Object[]) NOTES.poll(); note != null; note = (Object[]) NOTES.poll()) {
            out.append(out.length() > 1 ? ",[" : "[").append(note[0]).append(',').append(note[1]).append(',').append(note[2]).append(',');
            if (note[3] == null) {
                out.append("null");
            } else {
                Scala.quote(out, (String) note[3]);
            }
            out.append(']');
        }
        return out.append(']').toString();
    }

    /** The decision that was made on a node of a plan, the last one if there were several; null for none. */
    static Decided of(LogicalPlan plan) {
        scala.Option tag = plan.getTagValue(Tags.ASKED);
        boolean isHeld = plan instanceof InMemoryRelation || plan instanceof LocalRelation;
        if (tag.isDefined() || !isHeld || plan.output().isEmpty()) {
            return tag.isDefined() ? (Decided) tag.get() : null;
        }
        synchronized (HELD) {
            return (Decided) HELD.get(((Attribute) plan.output().head()).exprId());
        }
    }

    /** Marks what a decision is told by: the leaves of its plan, and a command's query, whose leaves may go before it runs. */
    static void mark(LogicalPlan plan, Decided decided) {
        List children = Scala.list(plan.children());
        if (plan instanceof Command) {
            for (int i = 0; i < children.size(); i++) {
                ((LogicalPlan) children.get(i)).setTagValue(Tags.ASKED, decided);
            }
        }
        if (children.isEmpty()) {
            plan.setTagValue(Tags.ASKED, decided);
        }
        boolean isHeld = plan instanceof InMemoryRelation || plan instanceof LocalRelation;
        if ((isHeld || isOneRow(plan)) && plan.output().nonEmpty()) {
            synchronized (HELD) {
                HELD.put(((Attribute) plan.output().head()).exprId(), decided);
            }
        }
        for (int i = 0; i < children.size(); i++) {
            mark((LogicalPlan) children.get(i), decided);
        }
    }

    private static boolean isOneRow(LogicalPlan plan) {
        return plan instanceof Project
            ? isOneRow(((Project) plan).child())
            : plan instanceof Aggregate && ((Aggregate) plan).groupingExpressions().isEmpty();
    }
}
