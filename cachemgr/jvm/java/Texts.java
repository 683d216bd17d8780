package relationalcache;

import java.util.ArrayList;
import java.util.List;

import scala.collection.Iterator;

import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableValuedFunction;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.CompoundPlanStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ParsedStatement;
import org.apache.spark.sql.catalyst.plans.logical.ScriptTransformation;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.VariableSubstitution;

/**
 * Texts of queries as a session's own parser reads them under its settings, but never substituted, and what such a text
 * names before anything of it is looked up: analysis alone carries statements out, loads classes and opens files.
 */
public final class Texts {
    private final StringBuilder out = new StringBuilder();

    public Texts() {
    }

    /** The plan of `text`, names not looked up. */
    public static LogicalPlan parsed(SparkSession spark, String text) throws Exception {
        SQLConf conf = spark.sessionState().conf().clone();
        conf.setConfString("spark.sql.variable.substitute", "false");
        Parse parse = new Parse(spark, text);
        LogicalPlan found = (LogicalPlan) under(conf, parse);
        if (parse.failed != null) {
            throw parse.failed;
        }
        return found;
    }

    /** `text`, analysed; no job is run. */
    public static Dataset analysed(SparkSession spark, String text) throws Exception {
        return Dataset.ofRows(spark, parsed(spark, text));
    }

    /** `text` as Spark would put settings, system properties and environment variables into it in this session. */
    public static String substituted(SparkSession spark, String text) {
        return (String) under(spark.sessionState().conf(), new Substitute(text));
    }

    /**
     * What a parsed plan names, subqueries and CTEs included, as a JSON list of [kind, parts, line, column]. Kinds:
     * STATEMENT (what is carried out rather than read), SCRIPT, FUNCTION, RELATION.
     */
    public static String named(LogicalPlan parsed) {
        Texts texts = new Texts();
        texts.visit(parsed);
        return "[" + texts.out + "]";
    }

    private static Object under(SQLConf conf, scala.runtime.AbstractFunction0 work) {
        return org.apache.spark.sql.internal.SQLConf$.MODULE$.withExistingConf(conf, work);
    }

    public static final class Parse extends scala.runtime.AbstractFunction0 {
        private final SparkSession spark;
        private final String text;
        private Exception failed;

        public Parse(SparkSession spark, String text) {
            this.spark = spark;
            this.text = text;
        }

        public Object apply() {
            try {
                return spark.sessionState().sqlParser().parsePlan(text);
            } catch (Exception error) { // a function of Scala's may throw none that is checked
                failed = error;
                return null;
            }
        }
    }

    public static final class Substitute extends scala.runtime.AbstractFunction0 {
        private final String text;

        public Substitute(String text) {
            this.text = text;
        }

        public Object apply() {
            return new VariableSubstitution().substitute(text);
        }
    }

    /** Every part of every node: a subquery, a CTE and a window stand in other fields than children. */
    private void visit(Object node) {
        if (node instanceof TreeNode) {
            note((TreeNode) node);
        }
        Iterator parts = null;
        if (node instanceof scala.collection.Iterable) {
            parts = ((scala.collection.Iterable) node).iterator();
        } else if (node instanceof scala.Product) {
            parts = ((scala.Product) node).productIterator();
        }
        while (parts != null && parts.hasNext()) {
            visit(parts.next());
        }
    }

    private void note(TreeNode node) {
        if (node instanceof Command || node instanceof ParsedStatement || node instanceof CompoundPlanStatement
            || Immediate.is(node)) {
            add("STATEMENT", one(node.nodeName()), node.origin());
        } else if (node instanceof ScriptTransformation) {
            add("SCRIPT", one("TRANSFORM"), node.origin());
        } else if (node instanceof UnresolvedFunction) {
            add("FUNCTION", Scala.list(((UnresolvedFunction) node).nameParts()), node.origin());
        } else if (node instanceof UnresolvedTableValuedFunction) {
            add("FUNCTION", Scala.list(((UnresolvedTableValuedFunction) node).name()), node.origin());
        } else if (node instanceof UnresolvedRelation) {
            add("RELATION", Scala.list(((UnresolvedRelation) node).multipartIdentifier()), node.origin());
        }
    }

    private static List one(String name) {
        ArrayList parts = new ArrayList();
        parts.add(name);
        return parts;
    }

    private void add(String kind, List parts, Origin origin) {
        out.append(out.length() > 0 ? ",[" : "[");
        Scala.quote(out, kind);
        for (int i = 0; i < parts.size(); i++) {
            out.append(i > 0 ? "," : ",[");
            Scala.quote(out, (String) parts.get(i));
        }
        out.append("],").append(Scala.orNull(origin.line()));
        // Spark counts columns from 0.
        Object column = Scala.orNull(origin.startPosition());
        out.append(',').append(column == null ? null : Integer.valueOf(((Integer) column).intValue() + 1));
        out.append(']');
    }
}
