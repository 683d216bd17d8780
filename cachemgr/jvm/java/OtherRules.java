package relationalcache;

import java.util.ArrayList;
import java.util.List;

import org.apache.spark.sql.catalyst.optimizer.Optimizer;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;

/**
 * The optimizer rules that others have added to a session, beside ours. Some refuse a query, or filter and mask its rows, by
 * the tables that they see in it (Apache Ranger's, say): they must see those of the original plan, wherever they are listed.
 */
final class OtherRules {
    private static final String[] KNOWN = {"org.apache.spark.", "io.delta.", "relationalcache."};

    private final List all = new ArrayList();
    /** Those that Spark runs after ours. */
    private final List later = new ArrayList();
    /** Those of other batches, which Spark runs once and later. */
    private final List elsewhere = new ArrayList();

    /** Whether one of them made something else of a plan that it was given. */
    private boolean changed = false;

    private OtherRules() {
    }

    static OtherRules of(SparkSession spark) {
        OtherRules found = new OtherRules();
        boolean isLater = false;
        Optimizer optimizer = spark.sessionState().optimizer();
        List rules = Scala.list(optimizer.extendedOperatorOptimizationRules());
        for (int i = 0; i < rules.size(); i++) {
            Object rule = rules.get(i);
            isLater |= rule instanceof Hook.RewriteRule;
            if (isOthers(rule)) {
                found.all.add(rule);
                if (isLater) {
                    found.later.add(rule);
                }
            }
        }
        found.addElsewhere(optimizer.earlyScanPushDownRules());
        found.addElsewhere(optimizer.preCBORules());
        found.addElsewhere(spark.sessionState().experimentalMethods().extraOptimizations());
        return found;
    }

    private void addElsewhere(scala.collection.immutable.Seq rules) {
        List listed = Scala.list(rules);
        for (int i = 0; i < listed.size(); i++) {
            if (isOthers(listed.get(i))) {
                elsewhere.add(listed.get(i));
            }
        }
    }

    private static boolean isOthers(Object rule) {
        String name = rule.getClass().getName();
        for (int i = 0; i < KNOWN.length; i++) {
            if (name.startsWith(KNOWN[i])) {
                return false;
            }
        }
        return true;
    }

    /**
     * Whether a rule of another batch would change the plan or refuse it. What it does there is for the plan as it is, once:
     * nothing of it may be gone by then.
     */
    boolean changeLater(LogicalPlan plan) {
        for (int i = 0; i < elsewhere.size(); i++) {
            LogicalPlan copy = (LogicalPlan) plan.clone(); // some mark what they have looked at
            try {
                if (!((LogicalPlan) ((Rule) elsewhere.get(i)).apply(copy)).fastEquals(copy)) {
                    return true;
                }
            } catch (Exception refusal) {
                return true;
            }
        }
        return false;
    }

    /** The plan as the rules after ours leave it; null where one of them refuses it, which it then does itself. */
    LogicalPlan applied(LogicalPlan plan) {
        try {
            LogicalPlan result = plan;
            for (int i = 0; i < later.size(); i++) {
                result = (LogicalPlan) ((Rule) later.get(i)).apply(result);
            }
            changed |= !result.fastEquals(plan);
            return result;
        } catch (Exception refusal) {
            return null;
        }
    }

    /**
     * Tries them on a rewritten plan, which Spark gives them from now on. Throws if the query would fail by one of them.
     *
     * Some mark the top of a plan that they have looked at. Spark's own rules lose such marks now and then, so what they are
     * tried on has none.
     */
    void check(LogicalPlan rewritten) {
        check(all, rewritten);
        if (!elsewhere.isEmpty()) {
            check(elsewhere, (LogicalPlan) rewritten.clone());
        }
    }

    /** Whether one of them changes, by what it sees, the query or what stands in its place. */
    boolean change() {
        return changed;
    }

    private void check(List rules, LogicalPlan rewritten) {
        for (int i = 0; i < rules.size(); i++) {
            Rule rule = (Rule) rules.get(i);
            try {
                LogicalPlan tried = new Project(Scala.seq(Scala.list(rewritten.output())), rewritten);
                changed |= !((LogicalPlan) rule.apply(tried)).fastEquals(tried);
            } catch (Exception refusal) {
                throw new IllegalStateException(
                    "optimizer rule " + rule.ruleName() + " refuses the plan that reads the cache: " + refusal.getMessage(),
                    refusal);
            }
        }
    }
}
