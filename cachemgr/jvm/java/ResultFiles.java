package relationalcache;

import java.util.ArrayList;
import java.util.List;

import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.files.DelayedCommitProtocol;
import org.apache.spark.sql.delta.files.DeltaFileFormatWriter$;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.FileFormatWriter.OutputSpec;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;

/**
 * Writes the rows of a query into Parquet files, by Delta's own writer, which is the same in all minors of Spark.
 *
 * The query is no command's: it is decided and planned as one whose rows are wanted. Files are written where they stay, as
 * Delta's are, by its commit protocol: each attempt of a task under names of its own. What is told are those of the one
 * attempt of each task that the job has committed, so that what a killed or second attempt leaves is in no result.
 */
public final class ResultFiles {
    /**
     * The names of the files in the order of the rows, one a line.
     *
     * @param folder of the files, which is there and empty
     * @param groupBytes of a row group, about
     */
    public static String write(Dataset rows, String folder, long groupBytes) {
        QueryExecution execution = rows.queryExecution();
        Write write = new Write(rows.sparkSession(), execution, folder, groupBytes);
        return (String) SQLExecution.withNewExecutionId(execution, Scala.some("statement"), write);
    }

    /** In the execution that Spark's listeners see. */
    public static final class Write extends scala.runtime.AbstractFunction0 {
        private final SparkSession spark;
        private final QueryExecution execution;
        private final String folder;
        private final long groupBytes;

        Write(SparkSession spark, QueryExecution execution, String folder, long groupBytes) {
            this.spark = spark;
            this.execution = execution;
            this.folder = folder;
            this.groupBytes = groupBytes;
        }

        @Override
        public Object apply() {
            List<String> names = new ArrayList<>();
            for (AddFile file : written(spark, execution.executedPlan(), folder, groupBytes, new ParquetFileFormat())) {
                names.add(file.path());
            }
            return String.join("\n", names);
        }
    }

    /** The files of the rows of a plan, which runs in an execution of Spark's already, in the order of the rows. */
    public static List<AddFile> written(
        SparkSession spark, SparkPlan plan, String folder, long groupBytes, ParquetFileFormat format) {
        List<Attribute> output = new ArrayList<>();
        for (Object attribute : Scala.list(plan.output())) {
            output.add(((Attribute) attribute).withName("c" + output.size()));
        }
        Configuration hadoop = spark.sessionState().newHadoopConf();
        hadoop.setLong("parquet.block.size", groupBytes);
        // a reader is to know from the size of a row group what its rows take in memory
        hadoop.setBoolean("parquet.enable.dictionary", false);
        DelayedCommitProtocol committer = new DelayedCommitProtocol("statement", folder, Scala.none(), Scala.none());
        scala.collection.immutable.Map none = scala.collection.immutable.Map$.MODULE$.empty();
        scala.collection.immutable.Seq nothing = Scala.seq(List.of());
        DeltaFileFormatWriter$.MODULE$.write(
            spark, plan, format, committer, new OutputSpec(folder, none, Scala.seq(output)), hadoop, nothing, Scala.none(),
            nothing, none, 0);
        return Scala.list(committer.addedStatuses());
    }
}
