package relationalcache;

import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Set;

import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.LeftAnti$;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.AttachDistributedSequence;
import org.apache.spark.sql.catalyst.plans.logical.CollectMetrics;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Offset;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sample;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.files.TahoeLogFileIndex;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/** A logical plan as compact JSON: shapes, expressions, and the tables at its leaves with the version Spark reads now. */
public final class PlanWriter implements ExprWriter.Plans {
    private final StringBuilder out = new StringBuilder(4096);
    private final StringBuilder tables = new StringBuilder();
    private final HashMap numbers = new HashMap();
    private final Moment moment;
    private final HashMap later = new HashMap();
    private final ExprWriter expressions = new ExprWriter(out, this);
    private final Set written = Collections.newSetFromMap(new IdentityHashMap());
    private final Set versioned;
    private int nodes = 0;
    private int depth = 0;
    private int once = 0;

    /**
     * `versioned`: the places whose current version matters, which `lookUp` finds (each costs a listing); null for all,
     * found at once. `moment`: what the query saw of them before; what is looked up is added.
     */
    public PlanWriter(Set versioned, Moment moment) {
        this.versioned = versioned;
        this.moment = moment;
    }

    /**
     * Of the rows of a subquery that is the plan: 1 if equal ones may be one, as below EXISTS and IN, 2 if nobody knows
     * (matcher.catalyst.once).
     */
    public void setOnce(int once) {
        this.once = once;
    }

    public String write(LogicalPlan plan, boolean ansi, boolean precisionLoss, String timeZone) {
        out.append("{\"v\":2,\"ansi\":").append(ansi).append(",\"precision_loss\":").append(precisionLoss);
        out.append(",\"time_zone\":");
        Scala.quote(out, timeZone);
        out.append(",\"plan\":");
        int start = out.length();
        try {
            node(plan);
        } catch (TooLarge tooLarge) {
            out.setLength(start);
            out.append("{\"n\":\"TooLarge\",\"x\":");
            Scala.quote(out, tooLarge.getMessage());
            out.append('}');
        }
        subqueries(plan);
        out.append(",\"schema\":[");
        List output = Scala.list(plan.output());
        for (int i = 0; i < output.size(); i++) {
            if (i > 0) {
                out.append(',');
            }
            expressions.attribute((org.apache.spark.sql.catalyst.expressions.Attribute) output.get(i));
        }
        out.append("],\"tables\":[").append(tables).append("]}");
        return out.toString();
    }

    /** The plan of a subquery, as part of the expression that holds it. */
    public void write(LogicalPlan plan) {
        written.add(plan);
        node(plan);
    }

    private void node(LogicalPlan plan) {
        node(plan, 0);
    }

    /** `rows`: as in `setOnce`, 0 if all rows are wanted. */
    private void node(LogicalPlan plan, int rows) {
        if (++nodes > TooLarge.MOST_NODES) {
            throw new TooLarge("its plan has more than " + TooLarge.MOST_NODES + " nodes");
        }
        TooLarge.check("operators and subqueries", ++depth, out.length());
        out.append("{\"n\":");
        String name = plan.getClass().getName();
        Scala.quote(out, name.substring(name.lastIndexOf('.') + 1));
        scala.Option gone = plan.getTagValue(Tags.SUBSTITUTED);
        if (gone.isDefined()) {
            out.append(",\"cache\":1");
            List before = (List) gone.get();
            for (int i = 0; i < before.size(); i++) {
                table((LogicalRelation) before.get(i), true);
            }
        }
        if (rows > 0) {
            out.append(",\"u\":").append(rows);
        }
        placed(plan);
        if (plan instanceof Project) {
            expressions.list(",\"p\":", ((Project) plan).projectList());
        } else if (plan instanceof Filter) {
            out.append(",\"p\":[");
            expressions.filter(((Filter) plan).condition());
            out.append(']');
        } else if (plan instanceof Join) {
            join((Join) plan);
        } else if (plan instanceof Aggregate) {
            expressions.list(",\"g\":", ((Aggregate) plan).groupingExpressions());
            expressions.list(",\"p\":", ((Aggregate) plan).aggregateExpressions());
        } else if (plan instanceof Expand) {
            expand((Expand) plan);
        } else if (plan instanceof Sort) {
            sort((Sort) plan);
        } else if (plan instanceof GlobalLimit) {
            count(((GlobalLimit) plan).limitExpr());
        } else if (plan instanceof LocalLimit) {
            count(((LocalLimit) plan).limitExpr());
        } else if (plan instanceof Offset) {
            count(((Offset) plan).offsetExpr());
        } else if (plan instanceof LogicalRelation) {
            out.append(",\"t\":").append(table((LogicalRelation) plan, false));
            expressions.list(",\"o\":", plan.output());
        }
        if (plan instanceof Subquery && ((Subquery) plan).correlated() && once == 2) {
            out.append(",\"b\":1");
        }
        if (plan instanceof Aggregate || plan instanceof Window || plan instanceof CollectMetrics) {
            boolean adds = Order.addsFloats(plan);
            boolean picks = Order.picksAmongEquals(plan);
            if (adds || picks) {
                out.append(adds && picks ? ",\"f\":[\"adds\",\"picks\"]" : adds ? ",\"f\":[\"adds\"]" : ",\"f\":[\"picks\"]");
            }
            expressions.ids(",\"w\":", Order.averaged(plan));
        }
        List children = Scala.list(plan.children());
        if (!children.isEmpty()) {
            out.append(",\"c\":[");
            for (int i = 0; i < children.size(); i++) {
                if (i > 0) {
                    out.append(',');
                }
                node((LogicalPlan) children.get(i), i == children.size() - 1 ? onceBelow(plan) : 0);
            }
            out.append(']');
        }
        out.append('}');
        depth--;
    }

    /** Whether the rows of a node's last child are wanted once each; see `setOnce`. */
    private int onceBelow(LogicalPlan plan) {
        if (plan instanceof Join) {
            JoinType kind = ((Join) plan).joinType();
            return kind instanceof LeftSemi$ || kind instanceof LeftAnti$ ? 1 : 0;
        }
        if (plan instanceof LocalLimit) {
            return "1".equals(((LocalLimit) plan).limitExpr().toString()) ? 1 : 0; // any row will do
        }
        return plan instanceof Subquery ? once : 0;
    }

    /** What in a node depends on the order and the partitions of the rows below it. */
    private void placed(LogicalPlan plan) {
        String found = plan instanceof Sample ? "a sample of rows"
            : plan instanceof AttachDistributedSequence ? "an index of the rows" : null;
        if (found == null && !plan.deterministic()) {
            List all = Scala.list(plan.expressions());
            for (int i = 0; i < all.size() && found == null; i++) {
                Expression part = ExprWriter.placed((Expression) all.get(i));
                found = part == null ? null : ExprWriter.shortened(part.sql());
            }
        }
        if (found != null) {
            out.append(",\"r\":");
            Scala.quote(out, found);
        }
    }

    private void join(Join join) {
        out.append(",\"j\":");
        Scala.quote(out, join.joinType().sql());
        out.append(",\"p\":[");
        if (join.condition().isDefined()) {
            expressions.write((Expression) join.condition().get());
        }
        out.append(']');
    }

    /** A sort of each partition alone says nothing of the whole: it is written without its keys. */
    private void sort(Sort sort) {
        if (!sort.global()) {
            return;
        }
        out.append(",\"s\":[");
        List keys = Scala.list(sort.order());
        for (int i = 0; i < keys.size(); i++) {
            SortOrder key = (SortOrder) keys.get(i);
            out.append(i > 0 ? ",[" : "[");
            expressions.write(key.child());
            out.append(key.direction().sql().equals("ASC") ? ",1" : ",0");
            out.append(key.nullOrdering().sql().equals("NULLS FIRST") ? ",1]" : ",0]");
        }
        out.append(']');
    }

    private void count(Expression rows) {
        if (rows instanceof Literal && ((Literal) rows).value() instanceof Integer) {
            out.append(",\"l\":").append(((Literal) rows).value());
        }
    }

    private void expand(Expand expand) {
        expressions.list(",\"o\":", expand.output());
        out.append(",\"e\":[");
        List rows = Scala.list(expand.projections());
        for (int i = 0; i < rows.size(); i++) {
            expressions.list(i == 0 ? "" : ",", rows.get(i));
        }
        out.append(']');
    }

    /** The tables of subqueries that were not written belong to the query as well: one moment a query. */
    private void subqueries(LogicalPlan plan) {
        List all = Scala.list(plan.subqueriesAll());
        for (int i = 0; i < all.size(); i++) {
            if (!written.contains(all.get(i))) {
                leaves((LogicalPlan) all.get(i));
            }
        }
    }

    private void leaves(LogicalPlan plan) {
        scala.Option gone = plan.getTagValue(Tags.SUBSTITUTED);
        if (gone.isDefined()) {
            List before = (List) gone.get();
            for (int i = 0; i < before.size(); i++) {
                table((LogicalRelation) before.get(i), true);
            }
            return;
        }
        if (plan instanceof LogicalRelation) {
            table((LogicalRelation) plan, true);
        }
        List children = Scala.list(plan.children());
        for (int i = 0; i < children.size(); i++) {
            leaves((LogicalPlan) children.get(i));
        }
    }

    private int table(LogicalRelation relation, boolean elsewhere) {
        String location = locationOf(relation);
        TahoeLogFileIndex delta = deltaIndex(relation);
        boolean pinned = delta != null && delta.isTimeTravelQuery();
        String kind = delta == null ? (location != null ? "files" : "other")
            : Commits.byCatalog(delta.protocol()) ? "managed" : "delta";
        String id = delta != null ? delta.metadata().id() : "";
        long version = -1L;
        Snapshot seen = null;
        boolean unseen = false;
        if (delta != null && (pinned || versioned == null || versioned.contains(location))) {
            Snapshot snapshot = (Snapshot) (pinned ? delta.getSnapshot() : moment.snapshots.get(location));
            if (snapshot == null && versioned == null) {
                snapshot = moment.at(location, delta);
            }
            if (snapshot == null) {
                later.put(location, delta);
                unseen = true;
            } else {
                version = snapshot.version();
                id = snapshot.metadata().id();
                seen = pinned ? null : snapshot;
            }
        }
        String key = location + "|" + version + "|" + pinned + "|" + elsewhere;
        Integer known = (Integer) numbers.get(key);
        if (known != null && location != null) {
            return known.intValue();
        }
        int number = numbers.size();
        numbers.put(location == null ? key + number : key, Integer.valueOf(number));
        if (number > 0) {
            tables.append(',');
        }
        tables.append("{\"name\":");
        Scala.quote(tables, nameOf(relation, location));
        tables.append(",\"location\":");
        Scala.quote(tables, location == null ? "" : location);
        tables.append(",\"table_id\":");
        Scala.quote(tables, id);
        tables.append(",\"version\":").append(version < 0 ? "null" : Long.toString(version));
        tables.append(",\"kind\":\"").append(kind).append("\",\"pinned\":").append(pinned);
        tables.append(",\"elsewhere\":").append(elsewhere);
        if (seen != null) {
            tables.append(",\"commit\":");
            Scala.quote(tables, Commits.identity(seen));
            tables.append(",\"committed_ms\":").append(seen.timestamp());
        }
        tables.append(unseen ? ",\"later\":true}" : "}");
        return number;
    }

    /** Looks up the tables that were written without a version; {location: [id, version, commit, time]} of them. */
    public String lookUp() {
        StringBuilder found = new StringBuilder("{");
        Iterator places = later.keySet().iterator();
        while (places.hasNext()) {
            String location = (String) places.next();
            Snapshot snapshot = moment.lookUp(location, (TahoeLogFileIndex) later.get(location));
            found.append(found.length() > 1 ? "," : "");
            Scala.quote(found, location);
            found.append(":[");
            Scala.quote(found, snapshot.metadata().id());
            found.append(',').append(snapshot.version()).append(',');
            Commits.state(found, snapshot);
            found.append(']');
        }
        return found.append('}').toString();
    }

    private static String nameOf(LogicalRelation relation, String location) {
        if (relation.catalogTable().isDefined()) {
            String name = ((org.apache.spark.sql.catalyst.catalog.CatalogTable) relation.catalogTable().get())
                .identifier().unquotedString();
            return name.startsWith("spark_catalog.") ? name.substring("spark_catalog.".length()) : name;
        }
        return location == null ? relation.relation().getClass().getSimpleName() : location;
    }

    public static TahoeLogFileIndex deltaIndex(LogicalRelation relation) {
        if (relation.relation() instanceof HadoopFsRelation) {
            FileIndex index = ((HadoopFsRelation) relation.relation()).location();
            if (index instanceof TahoeLogFileIndex) {
                TahoeLogFileIndex delta = (TahoeLogFileIndex) index;
                return delta.partitionFilters().isEmpty() ? delta : null;
            }
        }
        return null;
    }

    /** Where a file-based relation lies; null for anything that has no place, and for Delta's indexes over its own files. */
    public static String locationOf(LogicalRelation relation) {
        if (!(relation.relation() instanceof HadoopFsRelation)) {
            return null;
        }
        FileIndex index = ((HadoopFsRelation) relation.relation()).location();
        if (index instanceof TahoeLogFileIndex) {
            TahoeLogFileIndex delta = (TahoeLogFileIndex) index;
            // Filters on partitions inside the index make it another relation than the table.
            return delta.partitionFilters().isEmpty() ? Tables.location(delta.path()) : null;
        }
        if (index.getClass().getName().startsWith("org.apache.spark.sql.delta.")) {
            return null;
        }
        List roots = Scala.list(index.rootPaths());
        return roots.size() == 1 ? Tables.location((Path) roots.get(0)) : null;
    }

    /** True if some leaf of `plan` (subquery expressions aside) is a Delta table. */
    public static boolean readsDelta(LogicalPlan plan) {
        if (plan instanceof LogicalRelation) {
            return deltaIndex((LogicalRelation) plan) != null;
        }
        scala.collection.Iterator children = plan.children().iterator();
        while (children.hasNext()) {
            if (readsDelta((LogicalPlan) children.next())) {
                return true;
            }
        }
        return false;
    }

    /** True if some leaf of `plan` (subquery expressions aside) is one of the `known` places. */
    public static boolean reads(LogicalPlan plan, Set known) {
        if (plan instanceof LogicalRelation) {
            String location = locationOf((LogicalRelation) plan);
            return location != null && known.contains(location);
        }
        scala.collection.Iterator children = plan.children().iterator();
        while (children.hasNext()) {
            if (reads((LogicalPlan) children.next(), known)) {
                return true;
            }
        }
        return false;
    }
}
