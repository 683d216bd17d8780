package relationalcache;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

import org.apache.spark.sql.catalyst.AliasIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;

/** The relations that a definition names, and plans in place of those that are caches, as a view's is put in. */
public final class Nested {
    private final StringBuilder found = new StringBuilder();
    private final Map plans;

    public Nested() {
        this(null);
    }

    private Nested(Map plans) {
        this.plans = plans;
    }

    /** The names of the FROM clauses as a JSON list of lists of parts; those of CTEs are left out. */
    public static String names(SparkSession spark, String text) throws Exception {
        Nested nested = new Nested(null);
        nested.visit(Texts.parsed(spark, text), new HashSet());
        return "[" + nested.found + "]";
    }

    /** `text`, analysed with analysed plans in place of the names that `plans` has (their parts, joined by a NUL). */
    public static Dataset select(SparkSession spark, String text, Map plans) throws Exception {
        return Dataset.ofRows(spark, new Nested(plans).visit(Texts.parsed(spark, text), new HashSet()));
    }

    private LogicalPlan visit(LogicalPlan plan, Set ctes) {
        if (plan instanceof UnresolvedRelation) {
            return relation((UnresolvedRelation) plan, ctes);
        }
        if (plan instanceof UnresolvedWith) {
            return with((UnresolvedWith) plan, ctes);
        }
        List children = Scala.list(plan.children());
        for (int i = 0; i < children.size(); i++) {
            children.set(i, visit((LogicalPlan) children.get(i), ctes));
        }
        return Scala.over(plan, children);
    }

    /** A CTE sees those before it. */
    private LogicalPlan with(UnresolvedWith plan, Set outer) {
        Set ctes = new HashSet(outer);
        List relations = Scala.list(plan.cteRelations());
        ArrayList fresh = new ArrayList();
        for (int i = 0; i < relations.size(); i++) {
            // (name, query) in Spark 4.0; later (name, query, how deep it may call itself)
            scala.Product cte = (scala.Product) relations.get(i);
            LogicalPlan query = visit((LogicalPlan) cte.productElement(1), ctes);
            fresh.add(cte.productArity() == 2 ? new scala.Tuple2(cte.productElement(0), query)
                : new scala.Tuple3(cte.productElement(0), query, cte.productElement(2)));
            ctes.add(((String) cte.productElement(0)).toLowerCase(Locale.ROOT));
        }
        return new UnresolvedWith(visit(plan.child(), ctes), Scala.seq(fresh), plan.allowRecursion());
    }

    private LogicalPlan relation(UnresolvedRelation plan, Set ctes) {
        List parts = Scala.list(plan.multipartIdentifier());
        String last = (String) parts.get(parts.size() - 1);
        if (plan.isStreaming() || (parts.size() == 1 && ctes.contains(last.toLowerCase(Locale.ROOT)))) {
            return plan;
        }
        StringBuilder key = new StringBuilder();
        found.append(found.length() > 0 ? ",[" : "[");
        for (int i = 0; i < parts.size(); i++) {
            key.append(i > 0 ? "\u0000" : "").append((String) parts.get(i));
            found.append(i > 0 ? "," : "");
            Scala.quote(found, (String) parts.get(i));
        }
        found.append(']');
        Object given = plans == null ? null : plans.get(key.toString());
        if (given == null) {
            return plan;
        }
        AliasIdentifier alias = new AliasIdentifier(last, Scala.seq(parts.subList(0, parts.size() - 1)));
        return new SubqueryAlias(alias, (LogicalPlan) given);
    }
}
