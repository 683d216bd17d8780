package relationalcache.results;

import java.util.Map;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapreduce.Job;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.StructType;

/**
 * Parquet whose values come out as they went in, whatever the session that writes says of its own files, and whose row
 * groups take in memory what they take in the file: a reader holds one, so nothing is compressed. It stays in the driver:
 * what is sent to executors is Spark's own.
 */
final class ResultFormat extends ParquetFileFormat {
    private static final long serialVersionUID = 1L;
    private static final Map<String, String> OF_JOB = Map.of(
        "spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS",
        "spark.sql.parquet.writeLegacyFormat", "false",
        "spark.sql.parquet.fieldId.write.enabled", "false",
        // rows may be large: Parquet looks at the size of a row group after so many, at first
        "parquet.page.size.row.check.min", "10",
        "parquet.block.size.row.check.min", "10");
    /** Tasks read these of the session whose query they run. */
    static final Map<String, String> OF_TASKS = Map.of(
        "spark.sql.parquet.datetimeRebaseModeInWrite", "CORRECTED",
        "spark.sql.parquet.int96RebaseModeInWrite", "CORRECTED");

    @Override
    public OutputWriterFactory prepareWrite(
        org.apache.spark.sql.SparkSession spark, Job job, scala.collection.immutable.Map<String, String> options,
        StructType schema) {
        OutputWriterFactory made = super.prepareWrite(
            spark, job, (scala.collection.immutable.Map<String, String>) options.updated("compression", "uncompressed"), schema);
        Configuration hadoop = job.getConfiguration();
        OF_JOB.forEach(hadoop::set);
        return made;
    }
}
