package relationalcache.pruning;

import java.util.ArrayList;
import java.util.List;

import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.dynamicpruning.PartitionPruning$;
import org.apache.spark.sql.internal.SQLConf;

import relationalcache.Scala;

/** What became of Spark's dynamic partition pruning of a table that is joined; see `PartitionPruning` there. */
final class DynamicPruning {
    static final String BROADCAST = "broadcast reused";
    static final String FILTER_QUERY = "filter query";
    static final String REUSE_ONLY = "none: reuse only";
    static final String NO_BENEFIT = "none: no benefit";
    private static final PartitionPruning$ SPARK = PartitionPruning$.MODULE$;

    private final String table;
    private final String key;
    private final String outcome;

    DynamicPruning(String table, String key, String outcome) {
        this.table = table;
        this.key = key;
        this.outcome = outcome;
    }

    boolean prunes() {
        return outcome.equals(BROADCAST) || outcome.equals(FILTER_QUERY);
    }

    void write(StringBuilder out) {
        Scala.quote(out.append("{\"table\":"), table);
        Scala.quote(out.append(",\"key\":"), key);
        Scala.quote(out.append(",\"outcome\":"), outcome);
        out.append('}');
    }

    /** Of each partitioned table of a plan that a join might prune, and does not: why. */
    static List<DynamicPruning> missing(LogicalPlan optimised, SQLConf conf) {
        List<DynamicPruning> found = new ArrayList<>();
        look(optimised, conf, found);
        return found;
    }

    private static void look(LogicalPlan plan, SQLConf conf, List<DynamicPruning> into) {
        if (plan instanceof Join) {
            Join join = (Join) plan;
            side(join, join.left(), join.right(), SPARK.canPruneLeft(join.joinType()), conf, into);
            side(join, join.right(), join.left(), SPARK.canPruneRight(join.joinType()), conf, into);
        }
        for (Object child : Scala.list(plan.children())) {
            look((LogicalPlan) child, conf, into);
        }
        for (Object subquery : Scala.list(plan.subqueries())) {
            if (!isOfPruning(plan)) {
                look((LogicalPlan) subquery, conf, into);
            }
        }
    }

    private static void side(
        Join join, LogicalPlan pruned, LogicalPlan other, boolean typeAllows, SQLConf conf, List<DynamicPruning> into) {
        for (LogicalPlan leaf : leaves(pruned, new ArrayList<>())) {
            if (leaf instanceof InMemoryRelation) {
                into.add(new DynamicPruning(nameOf((InMemoryRelation) leaf), null, "none: answer in memory"));
            } else if (isPartitioned(leaf)) {
                String why = why(join, pruned, other, (LogicalRelation) leaf, typeAllows, conf);
                if (why != null) {
                    into.add(new DynamicPruning(nameOf((LogicalRelation) leaf), null, why));
                }
            }
        }
    }

    /** Null where Spark prunes. */
    private static String why(
        Join join, LogicalPlan pruned, LogicalPlan other, LogicalRelation table, boolean typeAllows, SQLConf conf) {
        if (!conf.dynamicPartitionPruningEnabled()) {
            return "none: setting";
        }
        List<Expression> keys = keys(join, pruned, other);
        if (keys.isEmpty()) {
            return "none: no equi-join";
        }
        Expression found = null;
        for (Expression key : keys) {
            scala.Option<LogicalPlan> scan = SPARK.getFilterableTableScan(key, pruned);
            found = scan.isDefined() && reads(scan.get(), table) ? key : found;
        }
        if (found == null) {
            return "none: not partitioned by the key";
        }
        if (!typeAllows) {
            return "none: join type cannot prune that side";
        }
        if (isPruned(pruned, table)) {
            return null;
        }
        return isSelective(other) ? NO_BENEFIT : "none: no selective filter";
    }

    private static List<Expression> keys(Join join, LogicalPlan pruned, LogicalPlan other) {
        List<Expression> found = new ArrayList<>();
        if (join.condition().isEmpty()) {
            return found;
        }
        for (Object each : Scala.list(SPARK.splitConjunctivePredicates(join.condition().get()))) {
            if (each instanceof EqualTo) {
                EqualTo equal = (EqualTo) each;
                if (of(equal.left(), pruned) && of(equal.right(), other)) {
                    found.add(equal.left());
                } else if (of(equal.right(), pruned) && of(equal.left(), other)) {
                    found.add(equal.right());
                }
            }
        }
        return found;
    }

    private static boolean of(Expression expression, LogicalPlan plan) {
        return !expression.references().isEmpty() && expression.references().subsetOf(plan.outputSet());
    }

    private static boolean isSelective(LogicalPlan plan) {
        if (plan instanceof Filter && SPARK.isLikelySelective(((Filter) plan).condition())) {
            return true;
        }
        for (Object child : Scala.list(plan.children())) {
            if (isSelective((LogicalPlan) child)) {
                return true;
            }
        }
        return false;
    }

    /** Whether a filter of dynamic pruning stands above a table. */
    private static boolean isPruned(LogicalPlan plan, LogicalRelation table) {
        if (isOfPruning(plan) && leaves(plan, new ArrayList<>()).contains(table)) {
            return true;
        }
        for (Object child : Scala.list(plan.children())) {
            if (isPruned((LogicalPlan) child, table)) {
                return true;
            }
        }
        return false;
    }

    private static boolean isOfPruning(LogicalPlan plan) {
        return plan instanceof Filter && ((Filter) plan).condition().containsPattern(TreePattern.DYNAMIC_PRUNING_SUBQUERY());
    }

    private static boolean reads(LogicalPlan plan, LogicalRelation table) {
        return leaves(plan, new ArrayList<>()).contains(table);
    }

    private static List<LogicalPlan> leaves(LogicalPlan plan, List<LogicalPlan> into) {
        if (plan.children().isEmpty()) {
            into.add(plan);
        }
        for (Object child : Scala.list(plan.children())) {
            leaves((LogicalPlan) child, into);
        }
        return into;
    }

    private static boolean isPartitioned(LogicalPlan leaf) {
        return leaf instanceof LogicalRelation && ((LogicalRelation) leaf).relation() instanceof HadoopFsRelation
            && !((HadoopFsRelation) ((LogicalRelation) leaf).relation()).partitionSchema().isEmpty();
    }

    private static String nameOf(LogicalRelation table) {
        if (table.catalogTable().isDefined()) {
            return table.catalogTable().get().identifier().unquotedString();
        }
        return nameOf((HadoopFsRelation) table.relation());
    }

    /** Where a table lies that has no name. */
    static String nameOf(HadoopFsRelation read) {
        scala.collection.Seq<?> paths = read.location().rootPaths();
        return paths.isEmpty() ? "files" : paths.head().toString();
    }

    static String nameOf(InMemoryRelation kept) {
        return kept.cacheBuilder().tableName().getOrElse(() -> "kept rows");
    }
}
