package relationalcache;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.DeltaTableUtils;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.files.TahoeLogFileIndex;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/** Puts an analysed plan in the place of a subtree, under that subtree's own attributes. */
public final class Grafter {
    public Grafter() {
    }

    /** What differs between the expressions wanted and the columns of their replacement, or null if nothing does. */
    public static String difference(List wanted, LogicalPlan replacement) {
        List given = Scala.list(replacement.output());
        if (wanted.isEmpty()) {
            return null; // rows alone are asked for, as below COUNT(*): SQL has to name some column
        }
        if (wanted.size() != given.size()) {
            return given.size() + " columns instead of " + wanted.size();
        }
        for (int i = 0; i < wanted.size(); i++) {
            Expression a = (Expression) wanted.get(i);
            Attribute b = (Attribute) given.get(i);
            if (!a.dataType().equals(b.dataType())) {
                String name = a instanceof Attribute ? ((Attribute) a).name() : a.sql();
                return "column " + name + " would be " + b.dataType().sql() + " instead of " + a.dataType().sql();
            }
        }
        return null;
    }

    public static LogicalPlan at(LogicalPlan root, int[] path) {
        LogicalPlan node = root;
        for (int i = 0; i < path.length; i++) {
            node = (LogicalPlan) node.children().apply(path[i]);
        }
        return node;
    }

    /** `root` with `body`, which is `finished`, at `path`, below the outputs of `split` if there is one. */
    public static LogicalPlan graft(LogicalPlan root, int[] path, LogicalPlan body, Split split) {
        LogicalPlan original = at(root, path);
        List given = Scala.list(body.output());
        List columns = split == null ? named(Scala.list(original.output()), given) : split.columns(given);
        Project project = new Project(Scala.seq(columns), body);
        ArrayList gone = new ArrayList();
        relations(original, gone);
        project.setTagValue(Tags.SUBSTITUTED, gone);
        // The projection may be merged into its neighbours; what it reads stays.
        markLeaves(body, gone);
        return put(root, path, 0, split == null ? project : split.over(columns, project));
    }

    /** What stands for an analysed plan in the middle of the optimiser. */
    public static LogicalPlan finished(SparkSession spark, LogicalPlan analysed) {
        // The batch that drops aliases and rewrites run-time replaceable functions is over for this query.
        LogicalPlan body = (LogicalPlan) spark.sessionState().optimizer().FinishAnalysis().apply(analysed);
        // So is the one that gives common expressions (NULLIF's, say) a place of their own.
        return (LogicalPlan) org.apache.spark.sql.catalyst.optimizer.RewriteWithExpression$.MODULE$.apply(body);
    }

    /** The columns under the names and ids of those that stood there. */
    private static List named(List wanted, List given) {
        ArrayList columns = new ArrayList();
        for (int i = 0; i < wanted.size(); i++) {
            Attribute a = (Attribute) wanted.get(i);
            columns.add(new Alias(
                (Attribute) given.get(i), a.name(), a.exprId(), a.qualifier(),
                Scala.some(a.metadata()), Scala.seq(new ArrayList())));
        }
        return columns;
    }

    private static LogicalPlan put(LogicalPlan node, int[] path, int depth, LogicalPlan replacement) {
        if (depth == path.length) {
            return replacement;
        }
        List children = Scala.list(node.children());
        children.set(path[depth], put((LogicalPlan) children.get(path[depth]), path, depth + 1, replacement));
        return (LogicalPlan) node.withNewChildren(Scala.seq(children));
    }

    private static void markLeaves(LogicalPlan plan, List gone) {
        List children = Scala.list(plan.children());
        if (children.isEmpty()) {
            plan.setTagValue(Tags.SUBSTITUTED, gone);
        }
        for (int i = 0; i < children.size(); i++) {
            markLeaves((LogicalPlan) children.get(i), gone);
        }
    }

    private static void relations(LogicalPlan plan, List into) {
        if (plan instanceof LogicalRelation) {
            into.add(plan);
        }
        List parts = parts(plan);
        for (int i = 0; i < parts.size(); i++) {
            relations((LogicalPlan) parts.get(i), into);
        }
    }

    /** What `plan` reads: its children, and the queries in its expressions. */
    static List parts(LogicalPlan plan) {
        List parts = Scala.list(plan.children());
        parts.addAll(Scala.list(plan.subqueries()));
        return parts;
    }

    /** The first relation of `plan`, or of a query in it, that reads `location`; null if there is none. */
    public static LogicalRelation relation(LogicalPlan plan, String location) {
        if (plan instanceof LogicalRelation) {
            return location.equals(PlanWriter.locationOf((LogicalRelation) plan)) ? (LogicalRelation) plan : null;
        }
        List parts = parts(plan);
        for (int i = 0; i < parts.size(); i++) {
            LogicalRelation found = relation((LogicalPlan) parts.get(i), location);
            if (found != null) {
                return found;
            }
        }
        return null;
    }

    /** A table held at its snapshot; one that nobody looked at before is looked at now, for the whole query. */
    public static LogicalPlan held(LogicalRelation relation, Moment moment) {
        TahoeLogFileIndex index = PlanWriter.deltaIndex(relation);
        String location = PlanWriter.locationOf(relation);
        if (index != null && !index.isTimeTravelQuery()) {
            moment.at(location, index);
        }
        return pinRest(relation, moment.snapshots);
    }

    /**
     * The tables still read beside a cache, held at the snapshots that the decision saw: a commit that lands before
     * Spark prepares its scans would otherwise show in one part of the answer and not in the other.
     */
    public static LogicalPlan pinRest(LogicalPlan plan, Map snapshots) {
        if (plan.getTagValue(Tags.SUBSTITUTED).isDefined()) {
            return plan;
        }
        if (plan instanceof LogicalRelation) {
            TahoeLogFileIndex index = PlanWriter.deltaIndex((LogicalRelation) plan);
            if (index == null || index.isTimeTravelQuery()) {
                return plan;
            }
            Snapshot snapshot = (Snapshot) snapshots.get(PlanWriter.locationOf((LogicalRelation) plan));
            if (snapshot == null) {
                return plan;
            }
            return DeltaTableUtils.replaceFileIndex(plan, (FileIndex) new TahoeLogFileIndex(
                index.spark(), index.deltaLog(), index.path(), snapshot, index.catalogTableOpt(),
                index.partitionFilters(), true));
        }
        if (!plan.subqueries().isEmpty()) {
            plan = (LogicalPlan) plan.mapExpressions(new PinSubqueries(snapshots));
        }
        List children = Scala.list(plan.children());
        for (int i = 0; i < children.size(); i++) {
            children.set(i, pinRest((LogicalPlan) children.get(i), snapshots));
        }
        return Scala.over(plan, children);
    }

    /** Pins the tables read by subquery expressions. */
    public static final class PinSubqueries extends scala.runtime.AbstractFunction1 {
        private final Map snapshots;

        public PinSubqueries(Map snapshots) {
            this.snapshots = snapshots;
        }

        public Object apply(Object expression) {
            return pin((Expression) expression);
        }

        private Expression pin(Expression expression) {
            List children = Scala.list(expression.children());
            for (int i = 0; i < children.size(); i++) {
                children.set(i, pin((Expression) children.get(i)));
            }
            Expression result = Scala.over(expression, children);
            if (result instanceof PlanExpression && ((PlanExpression) result).plan() instanceof LogicalPlan) {
                LogicalPlan inner = (LogicalPlan) ((PlanExpression) result).plan();
                LogicalPlan pinned = pinRest(inner, snapshots);
                return pinned == inner ? result : (Expression) ((PlanExpression) result).withNewPlan(pinned);
            }
            return result;
        }
    }
}
