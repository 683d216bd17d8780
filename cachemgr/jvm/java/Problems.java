package relationalcache;

import java.util.List;

import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.VariableReference;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Sample;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.delta.files.TahoeLogFileIndex;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * What a cache definition may not hold, looked for in the analysed plan: the optimiser puts today's date, the user's
 * name or a variable's value in as plain constants, and drops views. Each find is [construct, detail, line, column].
 */
public final class Problems {
    private static final String DYNAMIC = "|CurrentDate|CurrentTimestamp|Now|LocalTimestamp|CurrentTime|CurrentUser|"
        + "SessionUser|CurrentCatalog|CurrentDatabase|CurrentTimeZone|CurrentPath|CurrentBatchTimestamp|SparkVersion|"
        + "InputFileName|InputFileBlockStart|InputFileBlockLength|";

    private final StringBuilder out = new StringBuilder();

    public Problems() {
    }

    /** The finds in `plan` as a JSON list. */
    public static String find(LogicalPlan plan) {
        Problems problems = new Problems();
        problems.visit(plan, "");
        return "[" + problems.out + "]";
    }

    /** The output of `plan` as a JSON list of attributes. */
    public static String schema(LogicalPlan plan) {
        StringBuilder text = new StringBuilder("[");
        ExprWriter writer = new ExprWriter(text);
        List output = Scala.list(plan.output());
        for (int i = 0; i < output.size(); i++) {
            text.append(i > 0 ? "," : "");
            writer.attribute((org.apache.spark.sql.catalyst.expressions.Attribute) output.get(i));
        }
        return text.append(']').toString();
    }

    private void visit(LogicalPlan plan, String name) {
        String below = plan instanceof SubqueryAlias ? ((SubqueryAlias) plan).alias() : "";
        if (plan.isStreaming() && Scala.list(plan.children()).isEmpty()) {
            add("STREAMING", name, plan.origin());
        }
        if (plan instanceof View && ((View) plan).isTempView()) {
            add("TEMP_VIEW", ((View) plan).desc().identifier().unquotedString(), plan.origin());
        } else if (plan instanceof Sample) {
            add("TABLESAMPLE", "TABLESAMPLE", plan.origin());
        } else if (plan instanceof LogicalRelation) {
            TahoeLogFileIndex delta = PlanWriter.deltaIndex((LogicalRelation) plan);
            if (delta != null && delta.isTimeTravelQuery()) {
                add("TIME_TRAVEL", name, plan.origin());
            }
        } else if (Scala.list(plan.children()).isEmpty() && !plan.isStreaming()) {
            String kind = plan.nodeName();
            if (!kind.equals("OneRowRelation") && !kind.equals("CTERelationRef")) {
                add("RELATION", kind, plan.origin());
            }
        }
        List expressions = Scala.list(plan.expressions());
        for (int i = 0; i < expressions.size(); i++) {
            expression((Expression) expressions.get(i));
        }
        List children = Scala.list(plan.children());
        for (int i = 0; i < children.size(); i++) {
            visit((LogicalPlan) children.get(i), below);
        }
        List subqueries = Scala.list(plan.subqueries());
        for (int i = 0; i < subqueries.size(); i++) {
            visit((LogicalPlan) subqueries.get(i), "");
        }
    }

    private void expression(Expression e) {
        String name = e.getClass().getSimpleName();
        if (e instanceof AttributeReference) {
            AttributeReference a = (AttributeReference) e;
            if (a.metadata().contains("__metadata_col") || a.metadata().contains("__file_source_metadata_col")) {
                add("METADATA_COLUMN", a.name(), e.origin());
            }
            return;
        }
        String problem = ExprWriter.problem(e);
        if (e instanceof VariableReference) {
            add("SESSION_DEPENDENT", "the variable " + ((VariableReference) e).identifier().name(), e.origin());
        } else if (DYNAMIC.contains("|" + name + "|")) {
            add("SESSION_DEPENDENT", e.prettyName() + "()", e.origin());
        } else if ("GENERATOR".equals(problem)) {
            add("TABLE_FUNCTION", e.prettyName(), e.origin());
        } else if ("NON_DETERMINISTIC".equals(problem) || "UDF".equals(problem)) {
            add(problem, "UDF".equals(problem) ? udfName(e) : e.prettyName() + "()", e.origin());
        }
        List children = Scala.list(e.children());
        for (int i = 0; i < children.size(); i++) {
            expression((Expression) children.get(i));
        }
    }

    private static String udfName(Expression e) {
        String text = e.sql();
        int open = text.indexOf('(');
        return open > 0 ? text.substring(0, open) : text;
    }

    private void add(String construct, String detail, Origin origin) {
        if (out.length() > 0) {
            out.append(',');
        }
        out.append('[');
        Scala.quote(out, construct);
        out.append(',');
        Scala.quote(out, detail);
        out.append(',').append(Scala.orNull(origin.line()));
        // Spark counts columns from 0.
        Object column = Scala.orNull(origin.startPosition());
        out.append(',').append(column == null ? null : Integer.valueOf(((Integer) column).intValue() + 1));
        out.append(']');
    }
}
