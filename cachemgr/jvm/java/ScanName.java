package relationalcache;

import java.net.URI;
import java.util.List;

import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * What a scan of a cache is called in plans and in the UI: `Scan parquet relational_cache.sales_cube@v12`.
 *
 * Spark takes the name from the table that a relation has in a catalog. This one is in none, and nothing looks it up there.
 */
public final class ScanName {
    private ScanName() {
    }

    /** The plan with each relation over files that has no name in a catalog called `database.table`. */
    static LogicalPlan over(LogicalPlan plan, String name) {
        if (plan instanceof LogicalRelation) {
            LogicalRelation relation = (LogicalRelation) plan;
            if (relation.catalogTable().isDefined() || !(relation.relation() instanceof HadoopFsRelation)) {
                return plan;
            }
            HadoopFsRelation files = (HadoopFsRelation) relation.relation();
            return relation.copy(
                files, relation.output(), Scala.some(table(files, name)), relation.isStreaming(), relation.stream());
        }
        List children = Scala.list(plan.children());
        for (int i = 0; i < children.size(); i++) {
            children.set(i, over((LogicalPlan) children.get(i), name));
        }
        return Scala.over(plan, children);
    }

    private static CatalogTable table(HadoopFsRelation relation, String name) {
        int dot = name.indexOf('.');
        TableIdentifier called = new TableIdentifier(name.substring(dot + 1), Scala.some(name.substring(0, dot)));
        // listeners that tell where data comes from ask for the place
        URI place = ((org.apache.hadoop.fs.Path) relation.location().rootPaths().head()).toUri();
        return TableOfFiles.at(place, called, relation.schema());
    }
}
