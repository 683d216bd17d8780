package relationalcache.results;

import java.io.Closeable;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.NoSuchElementException;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.StructType;

import scala.Function1;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import scala.collection.immutable.Map;

import relationalcache.Scala;
import relationalcache.sidecar.StatementError;

/**
 * The rows of a result's files, in their order, read by Spark's own reader in the thread that fetches them: a row group at
 * a time, without a job for each piece, which would wait for others' and bring its rows to the driver all the same.
 */
final class FileRows extends AbstractIterator<InternalRow> implements Closeable {
    private static final Map<String, String> NO_OPTIONS = scala.collection.immutable.Map$.MODULE$.empty();
    /** What others may have set for their own files, as code that leaves out rows. */
    private static final String[] FILTERS = {"parquet.read.filter", "parquet.private.read.filter.predicate"};

    private final java.util.Iterator<PartitionedFile> left;
    private final Function1<PartitionedFile, Iterator<InternalRow>> reader;
    /** Into what the plan itself would have given: who takes a row apart looks at rows of a batch less closely. */
    private final UnsafeProjection plain;
    private Iterator<InternalRow> rows = null;
    private boolean closed = false;

    FileRows(SparkSession spark, StructType schema, Path folder, List<AddFile> files) {
        Configuration hadoop = spark.sessionState().newHadoopConf();
        for (String filter : FILTERS) {
            hadoop.unset(filter);
        }
        Map<String, String> options = (Map<String, String>) NO_OPTIONS.updated("returning_batch", "false");
        reader = new ResultFormat().buildReaderWithPartitionValues(
            spark, schema, new StructType(), schema, Scala.seq(List.of()), options, hadoop);
        plain = (UnsafeProjection) UnsafeProjection.create(schema);
        List<PartitionedFile> all = new ArrayList<>();
        for (AddFile file : files) {
            SparkPath path = SparkPath.fromPath(new Path(folder, file.path()));
            all.add(new PartitionedFile(
                InternalRow.empty(), path, 0, file.size(), new String[0], file.modificationTime(), file.size(),
                scala.collection.immutable.Map$.MODULE$.empty()));
        }
        left = all.iterator();
    }

    /** The columns as they stand in the files that hold a plan's rows. */
    static StructType schemaOf(SparkPlan plan) {
        StructType schema = new StructType();
        for (Object column : Scala.list(plan.output())) {
            schema = schema.add("c" + schema.size(), ((Attribute) column).dataType(), true);
        }
        return schema;
    }

    @Override
    public synchronized boolean hasNext() {
        try {
            while (rows == null || !rows.hasNext()) {
                release();
                if (closed || !left.hasNext()) {
                    return false;
                }
                rows = reader.apply(left.next());
            }
            return true;
        } catch (Exception error) { // Spark's own throw checked ones without saying so
            throw lost(error);
        }
    }

    @Override
    public synchronized InternalRow next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        try {
            return plain.apply(rows.next());
        } catch (Exception error) {
            throw lost(error);
        }
    }

    private static RuntimeException lost(Throwable cause) {
        Answers.LOG.warn("a file of a statement's result cannot be read", cause);
        return StatementError.of(
            "RESULT_FILES_LOST", "the files that hold this statement's rows cannot be read any more: run it again; the "
                + "server's log (relationalcache.Results) says which and why");
    }

    @Override
    public synchronized void close() {
        closed = true;
        release();
    }

    private void release() {
        if (rows instanceof Closeable) {
            try {
                ((Closeable) rows).close();
            } catch (IOException unread) {
                // nothing of it is wanted any more
            }
        }
        rows = null;
    }
}
