package relationalcache;

import java.util.ArrayList;
import java.util.List;

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

    private OtherRules() {
    }

    static OtherRules of(SparkSession spark) {
        OtherRules found = new OtherRules();
        boolean isLater = false;
        List rules = Scala.list(spark.sessionState().optimizer().extendedOperatorOptimizationRules());
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
        return found;
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

    /** The plan as the rules after ours leave it; null where one of them refuses it, which it then does itself. */
    LogicalPlan applied(LogicalPlan plan) {
        try {
            LogicalPlan result = plan;
            for (int i = 0; i < later.size(); i++) {
                result = (LogicalPlan) ((Rule) later.get(i)).apply(result);
            }
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
        for (int i = 0; i < all.size(); i++) {
            Rule rule = (Rule) all.get(i);
            try {
                rule.apply(new Project(Scala.seq(Scala.list(rewritten.output())), rewritten));
            } catch (Exception refusal) {
                throw new IllegalStateException(
                    "optimizer rule " + rule.ruleName() + " refuses the plan that reads the cache: " + refusal.getMessage(),
                    refusal);
            }
        }
    }
}
