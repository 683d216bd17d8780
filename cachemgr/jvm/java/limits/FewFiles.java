package relationalcache.limits;

import java.util.List;
import java.util.Set;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.DeltaTableUtils;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.OptimisticTransaction$;
import org.apache.spark.sql.delta.commands.DeletionVectorUtils$;
import org.apache.spark.sql.delta.stats.DeltaDataSkippingType$;
import org.apache.spark.sql.delta.stats.DeltaScan;
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import relationalcache.EachQuery;
import relationalcache.Hook;
import relationalcache.Scala;

/**
 * Has a LIMIT over a Delta table read the files that have as many rows, where Delta alone reads all of them.
 *
 * Delta picks such files by `numRecords`, less the rows that deletion vectors have deleted. Of a table with deletion vectors
 * it then lists the files anew, by the filter that leaves deleted rows out, and forgets which it had picked: they are kept.
 * Of a table without `numRecords` it picks none: rows are counted by the footers of its files.
 *
 * It stands behind Delta's own rule, and only where that has found that a LIMIT is over columns of a table, with filters of
 * partitions alone. What is read is of the very version that Delta has chosen.
 *
 * Delta: org.apache.spark.sql.delta.stats.PrepareDeltaScan, org.apache.spark.sql.delta.ScanWithDeletionVectors.
 */
public final class FewFiles extends Rule<LogicalPlan> {
    /** What a LIMIT reads and runs is left to Spark where it is false. */
    static final String SETTING = "spark.cachemgr.limits.enabled";
    private static final Logger LOG = LoggerFactory.getLogger("relationalcache.FewFiles");

    private final SparkSession spark;

    private FewFiles(SparkSession spark) {
        this.spark = spark;
    }

    /** For a session's extensions, behind Delta's. */
    public static final class Builder extends scala.runtime.AbstractFunction1 {
        @Override
        public Object apply(Object session) {
            return new FewFiles((SparkSession) session);
        }
    }

    @Override
    public String ruleName() {
        return "relationalcache.FewFiles";
    }

    @Override
    public LogicalPlan apply(LogicalPlan plan) {
        if (plan instanceof Subquery || !plan.containsPattern(TreePattern.LIMIT()) || plan.isStreaming() || Hook.guarded()
            || !Hook.allows(spark, SETTING) || !mayPick()) {
            return plan;
        }
        try {
            return applied(plan);
        } catch (Exception | LinkageError | StackOverflowError | AssertionError error) {
            LOG.warn("a LIMIT reads the files that Delta lists for it: {}", error.toString());
            return plan;
        }
    }

    /** A file that Spark is told to pass over where it cannot be read has no rows that could be counted on. */
    private boolean mayPick() {
        SQLConf conf = spark.sessionState().conf();
        return !conf.ignoreCorruptFiles() && !conf.ignoreMissingFiles();
    }

    private LogicalPlan applied(LogicalPlan plan) {
        if (!plan.containsPattern(TreePattern.LIMIT())) {
            return plan;
        }
        if (plan instanceof LocalLimit limit && limit.limitExpr() instanceof Literal literal
            && literal.value() instanceof Integer rows && rows > 0) {
            LogicalPlan made = reading(limit.child(), rows);
            if (made != null) {
                return EachQuery.over(plan, List.of(made));
            }
        }
        return EachQuery.below(plan, this::applied);
    }

    /** What is below a LIMIT, over fewer files; null where nothing is to be gained or it is not what Delta has picked files for. */
    private LogicalPlan reading(LogicalPlan plan, int rows) {
        if (plan instanceof Project || plan instanceof Filter) {
            LogicalPlan child = reading((LogicalPlan) plan.children().head(), rows);
            return child == null || plan instanceof Filter filter && !isOfPartitions(filter.condition(), child)
                ? null : EachQuery.over(plan, List.of(child));
        }
        if (!(plan instanceof LogicalRelation relation && relation.relation() instanceof HadoopFsRelation read
            && read.location().getClass() == PreparedDeltaFileIndex.class)) {
            return null;
        }
        PreparedDeltaFileIndex index = (PreparedDeltaFileIndex) read.location();
        DeltaScan scan = picked(index, rows);
        return scan == null
            ? null : DeltaTableUtils.replaceFileIndex(relation, (FileIndex) new PickedFileIndex(index, scan));
    }

    /** Whether a filter tells files from each other, not rows. */
    private static boolean isOfPartitions(Expression condition, LogicalPlan below) {
        LogicalPlan leaf = below;
        while (!(leaf instanceof LogicalRelation)) {
            leaf = (LogicalPlan) leaf.children().head();
        }
        HadoopFsRelation read = (HadoopFsRelation) ((LogicalRelation) leaf).relation();
        Set<String> partitions = Set.of(read.partitionSchema().fieldNames());
        return condition.deterministic() && !condition.containsPattern(TreePattern.PLAN_EXPRESSION())
            && condition.references().forall(each -> partitions.contains(((Attribute) each).name()));
    }

    private DeltaScan picked(PreparedDeltaFileIndex index, int rows) {
        DeltaScan scan = index.preparedScan();
        boolean isByLimit = DeltaDataSkippingType$.MODULE$.filteredLimit().equals(scan.dataSkippingType());
        if (!isByLimit || isBeingWritten(index)) {
            return null;
        }
        boolean mayListAnew = DeletionVectorUtils$.MODULE$.deletionVectorsReadable(index.protocol(), index.metadata());
        if (scan.scanned().logicalRows().isEmpty()) {
            return Footers.picked(index, rows);
        }
        return mayListAnew ? PickedFileIndex.scan(scan, scan.files(), scan.scanned().bytesCompressed().get()) : null;
    }

    /** A transaction keeps what it has read of the table that it writes to. */
    private static boolean isBeingWritten(PreparedDeltaFileIndex index) {
        OptimisticTransaction writing = (OptimisticTransaction) Scala.orNull(OptimisticTransaction$.MODULE$.getActive());
        return writing != null && writing.deltaLog().isSameLogAs(index.deltaLog());
    }
}
