package relationalcache;

import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.catalog.DeltaTableV2;
import org.apache.spark.sql.delta.files.TahoeFileIndex;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;

/**
 * Statements that change the rows of one Delta table: what they name and where they write, before they are analysed and
 * after, and how the very plan that was looked through is carried out.
 *
 * Of each command those fields are known that are understood here, so that what a later Spark adds to one is refused
 * until somebody has judged it.
 */
public final class Writes {
    private static final String PLANS = "org.apache.spark.sql.catalyst.plans.logical.";
    private static final String DELTA = "org.apache.spark.sql.delta.";
    private static final String INSERT = "writeOptions:OPTIONS isByName:PLAIN withSchemaEvolution:NOTHING write:NOTHING ";

    /** Class to its fields: TARGET is the table, PART is looked through, PLAIN changes no rights, NOTHING is to be empty. */
    private static final Map PARSED = new HashMap();
    private static final Map ANALYSED = new HashMap();

    static {
        known(PARSED, PLANS + "InsertIntoStatement", "table:TARGET partitionSpec:PLAIN userSpecifiedCols:PLAIN query:PART "
            + "overwrite:PLAIN ifPartitionNotExists:PLAIN byName:PLAIN replaceCriteriaOpt:NOTHING withSchemaEvolution:NOTHING");
        // INSERT INTO … REPLACE WHERE
        known(PARSED, PLANS + "OverwriteByExpression", "table:TARGET deleteExpr:PART query:PART analyzedQuery:NOTHING " + INSERT);
        known(PARSED, PLANS + "DeleteFromTable", "table:TARGET condition:PART");
        known(PARSED, PLANS + "UpdateTable", "table:TARGET assignments:PART condition:PART");
        known(PARSED, PLANS + "MergeIntoTable", "targetTable:TARGET sourceTable:PART mergeCondition:PART matchedActions:PART "
            + "notMatchedActions:PART notMatchedBySourceActions:PART withSchemaEvolution:NOTHING");
        known(ANALYSED, PLANS + "AppendData", "table:TARGET query:PART analyzedQuery:PART " + INSERT);
        known(ANALYSED, PLANS + "OverwriteByExpression",
            "table:TARGET deleteExpr:PART query:PART analyzedQuery:PART " + INSERT);
        known(ANALYSED, DELTA + "DeltaDynamicPartitionOverwriteCommand",
            "table:TARGET deltaTable:TARGET query:PART analyzedQuery:PART " + INSERT);
        known(ANALYSED, DELTA + "commands.DeleteCommand",
            "deltaLog:TARGET catalogTable:PLAIN target:PART condition:PART");
        known(ANALYSED, DELTA + "commands.UpdateCommand",
            "tahoeFileIndex:TARGET catalogTable:PLAIN target:PART updateExpressions:PART condition:PART");
        // migratedSchema is the table's own as long as no schema may evolve
        known(ANALYSED, DELTA + "commands.MergeIntoCommand", "source:PART target:PART catalogTable:PLAIN "
            + "targetFileIndex:TARGET condition:PART matchedClauses:PART notMatchedClauses:PART "
            + "notMatchedBySourceClauses:PART migratedSchema:PLAIN trackHighWaterMarks:PLAIN schemaEvolutionEnabled:NOTHING");
    }

    /** What Delta makes of clauses and values of a command. */
    private static final Set EXPRESSIONS = new HashSet(Arrays.asList(new Object[] {
        PLANS + "DeltaMergeAction", PLANS + "DeltaMergeIntoMatchedUpdateClause", PLANS + "DeltaMergeIntoMatchedDeleteClause",
        PLANS + "DeltaMergeIntoNotMatchedInsertClause", PLANS + "DeltaMergeIntoNotMatchedBySourceUpdateClause",
        PLANS + "DeltaMergeIntoNotMatchedBySourceDeleteClause", DELTA + "CheckOverflowInTableWrite",
        DELTA + "GenerateIdentityValues"}));

    public Writes() {
    }

    private static void known(Map commands, String name, String fields) {
        Map roles = new HashMap();
        String[] each = fields.trim().split(" ");
        for (int i = 0; i < each.length; i++) {
            roles.put(each[i].substring(0, each[i].indexOf(':')), each[i].substring(each[i].indexOf(':') + 1));
        }
        commands.put(name, roles);
    }

    /** The command that a parsed text is as a whole, if it is one that is known here. */
    static LogicalPlan command(LogicalPlan parsed) {
        LogicalPlan plan = parsed;
        while (plan instanceof UnresolvedWith) {
            plan = ((UnresolvedWith) plan).child();
        }
        return PARSED.containsKey(plan.getClass().getName()) ? plan : null;
    }

    static boolean isCommand(LogicalPlan analysed) {
        return ANALYSED.containsKey(analysed.getClass().getName());
    }

    static boolean isPart(String expression) {
        return EXPRESSIONS.contains(expression);
    }

    /** Notes WRITE (the command), TARGET (the table's name), FIELD (what is not understood), and all that its parts hold. */
    static void parsed(Sources sources, LogicalPlan command, Set ctes) {
        sources.add("WRITE", one(command.nodeName()), command.origin());
        Fields fields = new Fields(command, PARSED);
        while (fields.next()) {
            if (fields.role.equals("TARGET")) {
                target(sources, fields.value);
            } else if (fields.role.equals("PART")) {
                sources.parsed(fields.value, ctes);
            } else {
                fields.note(sources);
            }
        }
    }

    private static void target(Sources sources, Object node) {
        Object table = node;
        while (table instanceof SubqueryAlias) {
            table = ((SubqueryAlias) table).child();
        }
        if (!(table instanceof UnresolvedRelation)) {
            String name = ((TreeNode) table).nodeName();
            sources.add(name.equals("PlanWithUnresolvedIdentifier") ? "IDENTIFIER" : "NODE", one(name), ((TreeNode) table).origin());
            return;
        }
        UnresolvedRelation relation = (UnresolvedRelation) table;
        Iterator options = relation.options().keySet().iterator();
        while (options.hasNext()) {
            option(sources, (String) options.next());
        }
        if (relation.isStreaming()) {
            sources.add("STREAM", Scala.list(relation.multipartIdentifier()), relation.origin());
        }
        sources.add("TARGET", Scala.list(relation.multipartIdentifier()), relation.origin());
    }

    /** Spark itself notes there what the command will do to the table. */
    private static void option(Sources sources, String name) {
        if (!name.equalsIgnoreCase("__required_write_privileges__")) {
            sources.add("WRITE_OPTION", one(name), null);
        }
    }

    /** Notes WRITES (the place of the table), FIELD, and all that its parts read or reach. */
    static void analysed(Sources sources, LogicalPlan command) {
        Fields fields = new Fields(command, ANALYSED);
        while (fields.next()) {
            if (fields.role.equals("TARGET")) {
                place(sources, fields);
            } else if (fields.role.equals("PART")) {
                sources.expression(fields.value, "", false);
            } else {
                fields.note(sources);
            }
        }
    }

    private static void place(Sources sources, Fields fields) {
        Object table = fields.value;
        if (table instanceof DataSourceV2Relation) {
            Iterator options = ((DataSourceV2Relation) table).options().keySet().iterator();
            while (options.hasNext()) {
                option(sources, (String) options.next());
            }
            table = ((DataSourceV2Relation) table).table();
        }
        if (table instanceof DeltaTableV2) {
            DeltaTableV2 delta = (DeltaTableV2) table;
            if (delta.timeTravelOpt().isDefined() || delta.hasPartitionFilters() || delta.catalogTable().isEmpty()) {
                fields.add(sources);
            }
            table = delta.deltaLog();
        }
        if (table instanceof DeltaLog) {
            sources.add("WRITES", one(Tables.location(((DeltaLog) table).dataPath())), null);
        } else if (table instanceof TahoeFileIndex) {
            sources.add("WRITES", one(Tables.location(((TahoeFileIndex) table).path())), null);
        } else {
            fields.add(sources);
        }
    }

    /** The fields of a command one after the other. */
    private static final class Fields {
        private final LogicalPlan command;
        private final Map roles;
        private final scala.collection.Iterator names;
        private final scala.collection.Iterator values;
        private String name;
        private Object value;
        private String role;

        Fields(LogicalPlan command, Map commands) {
            this.command = command;
            this.roles = (Map) commands.get(command.getClass().getName());
            this.names = ((scala.Product) command).productElementNames();
            this.values = ((scala.Product) command).productIterator();
        }

        boolean next() {
            if (!names.hasNext()) {
                return false;
            }
            name = (String) names.next();
            value = values.next();
            role = roles.containsKey(name) ? (String) roles.get(name) : "NOTHING";
            return true;
        }

        /** What is neither the table nor a part: it says nothing that counts, or should. */
        void note(Sources sources) {
            if (role.equals("OPTIONS")) {
                List pairs = Scala.list(value);
                for (int i = 0; i < pairs.size(); i++) {
                    option(sources, (String) ((scala.Tuple2) pairs.get(i))._1());
                }
            } else if (role.equals("NOTHING") && !isNothing(value)) {
                add(sources);
            }
        }

        void add(Sources sources) {
            sources.add("FIELD", Arrays.asList(new Object[] {command.nodeName(), name}), command.origin());
        }

        private static boolean isNothing(Object value) {
            return value == null || Boolean.FALSE.equals(value) || value instanceof scala.Option && ((scala.Option) value).isEmpty();
        }
    }

    /**
     * How a table stands that is to be written to, as [version, whether its commits go to a catalog, finds]: the finds are
     * of the expressions that a write of it computes besides the statement's own, as `Sources.named` tells them.
     */
    public static String state(SparkSession spark, String place) throws Exception {
        Snapshot head = Tables.head(Tables.log(spark, place));
        Sources sources = new Sources(spark);
        scala.collection.Iterator settings = head.metadata().configuration().iterator();
        while (settings.hasNext()) {
            scala.Tuple2 setting = (scala.Tuple2) settings.next();
            if (((String) setting._1()).toLowerCase(java.util.Locale.ROOT).startsWith("delta.constraints.")) {
                expression(spark, sources, (String) setting._2());
            }
        }
        StructField[] columns = head.metadata().schema().fields();
        for (int i = 0; i < columns.length; i++) {
            Metadata said = columns[i].metadata();
            String[] keys = {"delta.generationExpression", "CURRENT_DEFAULT", "EXISTS_DEFAULT"};
            for (int k = 0; k < keys.length; k++) {
                if (said.contains(keys[k])) {
                    expression(spark, sources, said.getString(keys[k]));
                }
            }
            if (said.contains("delta.invariants")) { // as old releases of Delta wrote a constraint
                JsonNode held = (JsonNode) new ObjectMapper().readTree(said.getString("delta.invariants"));
                expression(spark, sources, held.path("expression").path("expression").asText());
            }
        }
        return "[" + head.version() + "," + Commits.byCatalog(head.protocol()) + "," + sources.told() + "]";
    }

    private static void expression(SparkSession spark, Sources sources, String text) throws Exception {
        sources.parsed(spark.sessionState().sqlParser().parseExpression(text), new HashSet());
    }

    /** Carries a command out that was analysed and looked through, that very plan; the rows that Spark gives for it. */
    public static Dataset run(SparkSession spark, LogicalPlan analysed) {
        if (!analysed.analyzed()) {
            throw new IllegalStateException("Spark would analyse a command once more that was analysed and checked");
        }
        Dataset rows = Sources.rows(spark, analysed);
        return spark.createDataFrame(rows.collectAsList(), rows.schema());
    }

    /**
     * The version of the first commit after a version whose userMetadata is `mark`, in a table's log as it is now; -1 if
     * there is none. Fails where the log does not tell.
     */
    public static long committed(SparkSession spark, String place, long after, String mark) throws IOException {
        DeltaLog log = Tables.log(spark, place);
        long head = Tables.head(log).version();
        if (head < after) {
            throw new IOException("the table stands at version " + head + ", and stood at " + after + " before");
        }
        for (long version = after + 1L; version <= head; version++) {
            if (mark.equals(Commits.userMetadata(log, version))) {
                return version;
            }
        }
        return -1L;
    }

    private static List one(String name) {
        return Arrays.asList(new Object[] {name});
    }
}
