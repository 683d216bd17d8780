package relationalcache;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;

import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.QueryPlanningTracker;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry$;
import org.apache.spark.sql.catalyst.analysis.TableFunctionRegistry$;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableValuedFunction;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType$;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.commands.cdc.CDCReader;
import org.apache.spark.sql.delta.files.TahoeLogFileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * All that a query of a user's would read or reach, before it is analysed and after.
 *
 * Both looks let through what they know and name everything else, so that what a later Spark adds is refused until
 * somebody has judged it. Each find is [kind, parts, line, column], as Texts gives them.
 */
public final class Sources {
    private static final String SESSION = "spark_catalog";
    private static final String PLANS = "org.apache.spark.sql.catalyst.plans.logical.";
    private static final String ANALYSIS = "org.apache.spark.sql.catalyst.analysis.";
    private static final String EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions.";

    /** What both parsed and analysed queries are made of. */
    private static final Set QUERIES = names(PLANS, "Project Filter Aggregate Sort GlobalLimit LocalLimit Offset "
        + "Distinct Join LateralJoin SubqueryAlias Union Intersect Except Sample Generate RepartitionByExpression "
        + "OneRowRelation LocalRelation");
    private static final String PIPE = EXPRESSIONS + "PipeOperator";
    private static final Set PARSED = names(PLANS, "Pivot Unpivot UnresolvedHint UnresolvedWith WithWindowDefinition");
    private static final Set UNRESOLVED = names(ANALYSIS, "UnresolvedRelation UnresolvedHaving UnresolvedInlineTable "
        + "UnresolvedTableValuedFunction UnresolvedTVFAliases UnresolvedSubqueryColumnAliases RelationTimeTravel "
        + "UnresolvedQualify");
    private static final Set ANALYSED = names(PLANS, "View WithCTE CTERelationDef CTERelationRef UnionLoop "
        + "UnionLoopRef Window Expand Range ResolvedHint Repartition RebalancePartitions Deduplicate");
    /** Rows of VALUES that call now() or the like are computed by the optimiser, all at one moment. */
    private static final String ROWS = ANALYSIS + "ResolvedInlineTable";
    private static final Set CHANGES = new HashSet(Arrays.asList(
        new Object[] {"table_changes", "table_changes_by_path"}));

    /** Of Spark's own expressions, those that hold code of somebody's, call any class or read what a session holds. */
    private static final Set REACHING = names(EXPRESSIONS, "CallMethodViaReflection VariableReference PythonUDF PythonUDTF "
        + "PythonUDAF ScalaUDF UserDefinedGenerator");

    private static Set builtin;

    private final SparkSession spark;
    private final Set found = new LinkedHashSet();
    /** The one command that the whole text may be. */
    private LogicalPlan command;

    public Sources() {
        this(null);
    }

    Sources(SparkSession spark) {
        this.spark = spark;
    }

    /**
     * What a parsed plan holds, at any depth, as a JSON list. Kinds: TABLE (a table's or view's name; those of CTEs are
     * left out), FUNCTION (one of Spark's own), OTHER_FUNCTION, TABLE_FUNCTION, OPTION of a relation, STREAM, MARKER of
     * a parameter, IDENTIFIER (a name that is computed), TIME_TRAVEL (to a time that a subquery gives), NODE (all else).
     * Where the whole is a statement that writes, those of `Writes.parsed` come before what it holds.
     */
    public static String named(SparkSession spark, LogicalPlan parsed) {
        Sources sources = new Sources(spark);
        sources.command = Writes.command(parsed);
        sources.parsed(parsed, new HashSet());
        return sources.told();
    }

    /**
     * What an analysed plan reads, as a JSON list. Kinds: DELTA (a table's place, and the name of the outermost view or
     * else of the relation), RELATION (what is no Delta table, and a name as before), TEMP_VIEW, FUNCTION (the name of
     * an expression of Spark's own), EXPRESSION (any other, by its class), NODE (a plan that reads or does something
     * else). Of a command that writes, those of `Writes.analysed` as well.
     */
    public static String read(LogicalPlan analysed) {
        Sources sources = new Sources(null);
        if (Writes.isCommand(analysed)) {
            Writes.analysed(sources, analysed);
        } else {
            sources.analysed(analysed, "", false);
        }
        return sources.told();
    }

    /**
     * Where a name leads, nothing of it opened: [kind, place]. Kinds: DELTA, PATH (a folder that is read as a Delta table),
     * VIEW, OTHER (a table that is no Delta table; its place, where it has one), NONE (also what another catalog may have).
     */
    public static String lookedUp(SparkSession spark, List parts) throws Exception {
        StringBuilder out = new StringBuilder("[");
        String[] found = lookUp(spark, new ArrayList(parts));
        Scala.quote(out, found[0]);
        out.append(',');
        Scala.quote(out, found[1]);
        return out.append(']').toString();
    }

    /** A plan analysed and checked as a query is, and nothing of it carried out, were it a command. */
    public static LogicalPlan analyse(SparkSession spark, LogicalPlan parsed) {
        scala.Option before = SparkSession.getActiveSession();
        SparkSession.setActiveSession(spark);
        try {
            return spark.sessionState().analyzer().executeAndCheck(parsed, new QueryPlanningTracker(Scala.none()));
        } finally {
            if (before.isDefined()) {
                SparkSession.setActiveSession((SparkSession) before.get());
            } else {
                SparkSession.clearActiveSession();
            }
        }
    }

    /** The same of one name alone. */
    public static LogicalPlan analyseName(SparkSession spark, List parts) {
        return analyse(spark, new UnresolvedRelation(
            Scala.seq(parts), org.apache.spark.sql.util.CaseInsensitiveStringMap.empty(), false));
    }

    /** The rows of an analysed plan, of that plan itself. */
    public static Dataset rows(SparkSession spark, LogicalPlan analysed) {
        Dataset rows = Dataset.ofRows(spark, analysed);
        if (rows.queryExecution().analyzed() != analysed) {
            throw new IllegalStateException("Spark analysed a plan once more that was analysed and checked");
        }
        return rows;
    }

    // names

    private static String[] lookUp(SparkSession spark, List parts) throws Exception {
        if (!SESSION.equalsIgnoreCase(spark.sessionState().catalogManager().currentCatalog().name())
            && !(parts.size() == 3 && SESSION.equalsIgnoreCase((String) parts.get(0)))) {
            return none();
        }
        SessionCatalog catalog = spark.sessionState().catalog();
        if (catalog.isTempView(Scala.seq(parts))) {
            return none();
        }
        if (parts.size() == 3 && SESSION.equalsIgnoreCase((String) parts.get(0))) {
            parts.remove(0);
        } else if (parts.size() > 1 && isCatalog(spark, (String) parts.get(0))) {
            return none();
        }
        if (parts.size() > 2) {
            return none();
        }
        String schema = parts.size() == 2 ? (String) parts.get(0) : catalog.getCurrentDatabase();
        String name = (String) parts.get(parts.size() - 1);
        CatalogTable table;
        try {
            table = catalog.getTableMetadata(new TableIdentifier(name, Scala.some(schema)));
        } catch (Exception unknown) {
            if (!(unknown instanceof AnalysisException)) { // Scala's methods name only some of what they throw
                throw unknown;
            }
            return schema.equalsIgnoreCase("delta") ? atPath(spark, name) : none();
        }
        if (table.tableType().equals(CatalogTableType$.MODULE$.VIEW())) {
            return new String[] {"VIEW", ""};
        }
        boolean delta = table.provider().isDefined() && "delta".equalsIgnoreCase((String) table.provider().get());
        scala.Option uri = table.storage().locationUri();
        String place = uri.isDefined() ? place(spark, new Path((java.net.URI) uri.get())) : "";
        return new String[] {delta ? "DELTA" : "OTHER", place};
    }

    private static String[] none() {
        return new String[] {"NONE", ""};
    }

    private static boolean isCatalog(SparkSession spark, String name) {
        return name.equalsIgnoreCase(SESSION) || name.equalsIgnoreCase("system")
            || spark.sessionState().conf().contains("spark.sql.catalog." + name);
    }

    private static String[] atPath(SparkSession spark, String text) throws Exception {
        try {
            Path path = new Path(text);
            return path.isAbsolute() ? new String[] {"PATH", place(spark, path)} : none();
        } catch (IllegalArgumentException noPath) {
            return none();
        }
    }

    /** No file system is made for a scheme or a host of the user's choice: making one may ask that host. */
    private static String place(SparkSession spark, Path path) throws Exception {
        return path.toUri().getScheme() == null ? Tables.normalise(spark, path.toString()) : Tables.location(path);
    }

    // the parsed plan

    /** Every part of every node: a subquery, a CTE and a window stand in other fields than children. */
    void parsed(Object node, Set ctes) {
        if (node instanceof UnresolvedWith) {
            with((UnresolvedWith) node, ctes);
            return;
        }
        if (node == command && node != null) {
            Writes.parsed(this, command, ctes);
            return;
        }
        if (node instanceof LogicalPlan && !isParsedQuery((LogicalPlan) node)
            || node instanceof TreeNode && Immediate.is((TreeNode) node)) {
            TreeNode plan = (TreeNode) node;
            String name = plan.nodeName();
            add(name.equals("PlanWithUnresolvedIdentifier") ? "IDENTIFIER" : "NODE", one(name), plan.origin());
            return; // it is refused, whatever it holds
        }
        if (node instanceof TreeNode && !note((TreeNode) node, ctes)) {
            return;
        }
        scala.collection.Iterator parts = parts(node);
        while (parts != null && parts.hasNext()) {
            parsed(parts.next(), ctes);
        }
    }

    private static boolean isParsedQuery(LogicalPlan plan) {
        String name = className(plan);
        return QUERIES.contains(name) || PARSED.contains(name) || UNRESOLVED.contains(name) || PIPE.equals(name);
    }

    /** Notes what a node names; false where nothing below it is of interest. */
    private boolean note(TreeNode node, Set ctes) {
        String name = className(node);
        if (node instanceof UnresolvedRelation) {
            relation((UnresolvedRelation) node, ctes);
            return false;
        }
        if (node instanceof UnresolvedFunction) {
            List parts = Scala.list(((UnresolvedFunction) node).nameParts());
            String own = own(parts);
            add(own == null ? "OTHER_FUNCTION" : "FUNCTION", own == null ? parts : one(own), node.origin());
        } else if (node instanceof UnresolvedTableValuedFunction) {
            tableFunction((UnresolvedTableValuedFunction) node);
        } else if (name.equals(ANALYSIS + "NamedParameter") || name.equals(ANALYSIS + "PosParameter")) {
            add("MARKER", one(((Expression) node).sql()), node.origin());
        } else if (name.equals(ANALYSIS + "ExpressionWithUnresolvedIdentifier")) {
            add("IDENTIFIER", one("IDENTIFIER"), node.origin());
        } else if (name.equals(ANALYSIS + "RelationTimeTravel")
            && hasQuery(((scala.Product) node).productElement(1))) {
            add("TIME_TRAVEL", one("TIMESTAMP AS OF"), node.origin());
        }
        return true;
    }

    private void with(UnresolvedWith plan, Set outer) {
        Set ctes = new HashSet(outer);
        List relations = Scala.list(plan.cteRelations());
        for (int i = 0; i < relations.size(); i++) {
            // (name, query) in Spark 4.0; later (name, query, how deep it may call itself)
            scala.Product cte = (scala.Product) relations.get(i);
            String name = asFound((String) cte.productElement(0));
            Set seen = new HashSet(ctes);
            if (plan.allowRecursion()) {
                seen.add(name);
            }
            parsed(cte.productElement(1), seen);
            ctes.add(name);
        }
        parsed(plan.child(), ctes);
    }

    private String asFound(String name) {
        return spark.sessionState().conf().caseSensitiveAnalysis() ? name : name.toLowerCase(Locale.ROOT);
    }

    private void relation(UnresolvedRelation relation, Set ctes) {
        List parts = Scala.list(relation.multipartIdentifier());
        if (relation.isStreaming()) {
            add("STREAM", parts, relation.origin());
            return;
        }
        Iterator options = relation.options().keySet().iterator();
        while (options.hasNext()) {
            add("OPTION", one((String) options.next()), relation.origin());
        }
        if (parts.size() > 1 || !ctes.contains(asFound((String) parts.get(0)))) {
            add("TABLE", parts, relation.origin());
        }
    }

    /** Delta's own name their table by a text. */
    private void tableFunction(UnresolvedTableValuedFunction function) {
        List parts = Scala.list(function.name());
        List arguments = Scala.list(function.functionArgs());
        String name = ((String) parts.get(parts.size() - 1)).toLowerCase(Locale.ROOT);
        Object first = arguments.isEmpty() ? null : arguments.get(0);
        Object table = first instanceof Literal ? ((Literal) first).value() : null;
        if (parts.size() == 1 && CHANGES.contains(name) && table instanceof UTF8String) {
            List named = name.equals("table_changes") ? nameIn(table.toString())
                : Arrays.asList(new Object[] {"delta", table.toString()});
            if (named != null) {
                add("TABLE", named, function.origin());
                return;
            }
        }
        String own = own(parts);
        add("TABLE_FUNCTION", own == null ? parts : one(own), function.origin());
    }

    private List nameIn(String text) {
        try {
            return Scala.list(spark.sessionState().sqlParser().parseMultipartIdentifier(text));
        } catch (Exception noName) {
            return null;
        }
    }

    /** The name of a function of Spark's own in lower case; null if the text may mean another one. */
    private static String own(List parts) {
        int first = 0;
        if (parts.size() == 3 && "system".equalsIgnoreCase((String) parts.get(0))) {
            first = 1;
        }
        if (parts.size() - first == 2 && "builtin".equalsIgnoreCase((String) parts.get(first))) {
            first++;
        }
        String name = ((String) parts.get(parts.size() - 1)).toLowerCase(Locale.ROOT);
        return parts.size() - first == 1 && builtin().contains(name) ? name : null;
    }

    private static synchronized Set builtin() {
        if (builtin == null) {
            Set made = new HashSet();
            List known = Scala.list(FunctionRegistry$.MODULE$.functionSet());
            known.addAll(Scala.list(TableFunctionRegistry$.MODULE$.functionSet()));
            for (int i = 0; i < known.size(); i++) {
                made.add(((FunctionIdentifier) known.get(i)).funcName().toLowerCase(Locale.ROOT));
            }
            builtin = made;
        }
        return builtin;
    }

    private static boolean hasQuery(Object node) {
        boolean has = node instanceof PlanExpression;
        scala.collection.Iterator parts = has ? null : parts(node);
        while (parts != null && !has && parts.hasNext()) {
            has = hasQuery(parts.next());
        }
        return has;
    }

    // the analysed plan

    private void analysed(LogicalPlan plan, String name, boolean inView) {
        if (plan instanceof LogicalRelation) {
            leaf((LogicalRelation) plan, name);
            return;
        }
        if (plan instanceof View) {
            String view = ((View) plan).desc().identifier().unquotedString();
            if (((View) plan).isTempView()) {
                add("TEMP_VIEW", one(view), plan.origin());
            }
            name = inView ? name : view;
            inView = true;
        } else if (plan instanceof SubqueryAlias && !inView) {
            name = ((SubqueryAlias) plan).alias();
        }
        String kind = className(plan);
        if (!QUERIES.contains(kind) && !ANALYSED.contains(kind) && !PIPE.equals(kind) && !ROWS.equals(kind) || plan.children().isEmpty() && plan.isStreaming()) {
            add("NODE", one(plan.nodeName()), plan.origin());
        }
        List expressions = Scala.list(plan.expressions());
        for (int i = 0; i < expressions.size(); i++) {
            expression(expressions.get(i), name, inView);
        }
        List children = Scala.list(plan.children());
        for (int i = 0; i < children.size(); i++) {
            analysed((LogicalPlan) children.get(i), name, inView);
        }
    }

    private void leaf(LogicalRelation relation, String name) {
        Object source = relation.relation();
        if (source instanceof HadoopFsRelation) {
            Object index = ((HadoopFsRelation) source).location();
            if (index instanceof TahoeLogFileIndex && !relation.isStreaming()) {
                add("DELTA", two(Tables.location(((TahoeLogFileIndex) index).path()), name), relation.origin());
                return;
            }
            source = ((HadoopFsRelation) source).fileFormat();
        } else if (source instanceof CDCReader.DeltaCDFRelation) {
            Path path = ((CDCReader.DeltaCDFRelation) source).snapshotWithSchemaMode().snapshot().deltaLog().dataPath();
            add("DELTA", two(Tables.location(path), name), relation.origin());
            return;
        }
        add("RELATION", two(source.getClass().getSimpleName(), name), relation.origin());
    }

    void expression(Object node, String name, boolean inView) {
        if (node instanceof LogicalPlan) {
            analysed((LogicalPlan) node, inView ? name : "", inView);
            return;
        }
        if (node instanceof Expression) {
            Expression e = (Expression) node;
            if (isOwn(e)) {
                add("FUNCTION", one(e.prettyName().toLowerCase(Locale.ROOT)), null);
            } else {
                add("EXPRESSION", one(e.getClass().getSimpleName()), e.origin());
            }
        }
        scala.collection.Iterator parts = node instanceof Literal ? null : parts(node);
        while (parts != null && parts.hasNext()) {
            expression(parts.next(), name, inView);
        }
    }

    /** Spark calls methods of its own classes for many functions, and by the same nodes those of anybody's. */
    private static boolean isOwn(Expression e) {
        String kind = e.getClass().getName();
        if (Writes.isPart(kind)) {
            return true;
        }
        if (!kind.startsWith(EXPRESSIONS) || e instanceof UserDefinedExpression || REACHING.contains(kind)) {
            return false;
        }
        if (e instanceof StaticInvoke) {
            return isSparks(((StaticInvoke) e).staticObject());
        }
        if (e instanceof Invoke) {
            Expression target = ((Invoke) e).targetObject();
            return target instanceof Literal && ((Literal) target).value() != null
                && isSparks(((Literal) target).value().getClass());
        }
        return !kind.contains(".objects.");
    }

    private static boolean isSparks(Class kind) {
        return kind.getName().startsWith("org.apache.spark.sql.catalyst.")
            || kind.getName().startsWith("org.apache.spark.unsafe.");
    }

    // finds

    private static scala.collection.Iterator parts(Object node) {
        if (node instanceof scala.collection.Iterable) {
            return ((scala.collection.Iterable) node).iterator();
        }
        return node instanceof scala.Product ? ((scala.Product) node).productIterator() : null;
    }

    private static Set names(String prefix, String simple) {
        Set made = new HashSet();
        String[] each = simple.split(" ");
        for (int i = 0; i < each.length; i++) {
            made.add(prefix + each[i]);
        }
        return made;
    }

    private static String className(Object node) {
        String name = node.getClass().getName();
        return name.endsWith("$") ? name.substring(0, name.length() - 1) : name;
    }

    private static List one(String name) {
        return Arrays.asList(new Object[] {name});
    }

    private static List two(String first, String second) {
        return Arrays.asList(new Object[] {first, second});
    }

    /** Each once: the same function may be called a thousand times. */
    void add(String kind, List parts, Origin origin) {
        StringBuilder out = new StringBuilder("[");
        Scala.quote(out, kind);
        for (int i = 0; i < parts.size(); i++) {
            out.append(i > 0 ? "," : ",[");
            Scala.quote(out, (String) parts.get(i));
        }
        Object line = origin == null ? null : Scala.orNull(origin.line());
        Object column = origin == null ? null : Scala.orNull(origin.startPosition());
        out.append("],").append(line).append(',');
        // Spark counts columns from 0.
        out.append(column == null ? null : Integer.valueOf(((Integer) column).intValue() + 1)).append(']');
        found.add(out.toString());
    }

    String told() {
        return "[" + String.join(",", found) + "]";
    }
}
