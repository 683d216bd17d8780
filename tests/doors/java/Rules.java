package authorising;

import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * An optimizer rule of the kind by which Apache Kyuubi's plugin asks Apache Ranger. The setting `test.rules` says what it does,
 * and `test.later` what another one does in a later batch: `authorise` looks at a plan and marks it as seen, `filter` hides the
 * rows of table t with k = 2.
 */
public final class Rules extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
    private static final TreeNodeTag<Boolean> SEEN = new TreeNodeTag<>("authorising.seen");

    @Override
    public BoxedUnit apply(SparkSessionExtensions extensions) {
        extensions.injectOptimizerRule(rule("test.rules"));
        extensions.injectPreCBORule(rule("test.later"));
        return BoxedUnit.UNIT;
    }

    private static AbstractFunction1<org.apache.spark.sql.SparkSession, Rule<LogicalPlan>> rule(String setting) {
        return new AbstractFunction1<>() {
            @Override
            public Rule<LogicalPlan> apply(org.apache.spark.sql.SparkSession spark) {
                return new Authorise((SparkSession) spark, setting);
            }
        };
    }

    public static final class Authorise extends Rule<LogicalPlan> {
        private final SparkSession spark;

        private final String setting;

        Authorise(SparkSession spark, String setting) {
            this.spark = spark;
            this.setting = setting;
        }

        @Override
        public String ruleName() {
            return "authorising.Authorise";
        }

        @Override
        public LogicalPlan apply(LogicalPlan plan) {
            String what = spark.sessionState().conf().getConfString(setting, "");
            if (what.equals("filter")) {
                return filtered(plan);
            }
            if (what.equals("authorise") && plan.getTagValue(SEEN).isEmpty()) {
                look(plan);
                plan.setTagValue(SEEN, Boolean.TRUE);
            }
            return plan;
        }

        private void look(LogicalPlan plan) {
            String place = place(plan);
            String denied = spark.sessionState().conf().getConfString("test.denied", "nothing");
            if (place.contains("/" + denied)) {
                throw new SecurityException("permission to read " + place + " denied");
            }
            scala.collection.Iterator<LogicalPlan> children = plan.children().iterator();
            while (children.hasNext()) {
                look(children.next());
            }
        }

        private static LogicalPlan filtered(LogicalPlan plan) {
            if (place(plan).endsWith("/t") && plan.getTagValue(SEEN).isEmpty()) {
                plan.setTagValue(SEEN, Boolean.TRUE);
                scala.collection.Iterator<Attribute> columns = plan.output().iterator();
                while (columns.hasNext()) {
                    Attribute column = columns.next();
                    if (column.name().equals("k")) {
                        return new Filter(new Not(new EqualTo(column, Literal$.MODULE$.apply(2L))), plan);
                    }
                }
            }
            return plan.mapChildren(new AbstractFunction1<LogicalPlan, LogicalPlan>() {
                @Override
                public LogicalPlan apply(LogicalPlan child) {
                    return filtered(child);
                }
            });
        }

        private static String place(LogicalPlan plan) {
            if (plan instanceof LogicalRelation && ((LogicalRelation) plan).relation() instanceof HadoopFsRelation) {
                HadoopFsRelation files = (HadoopFsRelation) ((LogicalRelation) plan).relation();
                return files.location().rootPaths().head().toString();
            }
            return "";
        }
    }
}
