package relationalcache.results;

import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.execution.SparkPlan;

import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

import relationalcache.ResultFiles;

/** The rows of one statement: written once, when they are asked for, and read as often as its client likes. */
public final class Answer {
    final String statement;
    private final SparkSession spark;
    private final Place place;
    private final long partitionBytes;
    /** Whether its session has asked for incremental collect itself. */
    private final boolean incremental;
    private boolean begun = false;
    private boolean few = false;
    private InternalRow[] collected = null;
    private List<AddFile> files = null;
    private Path folder = null;
    private volatile FileRows open = null;

    Answer(SparkSession spark, String statement, Place place, long partitionBytes) {
        this.spark = spark;
        this.statement = statement;
        this.place = place;
        this.partitionBytes = partitionBytes;
        place.keep(this);
        this.incremental = Incremental.begin(spark.sessionState().conf(), statement);
    }

    /** The server has decided how it fetches the rows. */
    void isAsked() {
        Incremental.end(statement);
    }

    /** All rows of a plan, in its order. The first call returns once they are computed. */
    synchronized Iterator<InternalRow> rows(SparkPlan plan) {
        isAsked();
        close();
        if (!begun) {
            begun = true;
            few = FewRows.proves(plan);
            files = few ? null : written(plan);
        }
        if (files != null) {
            open = new FileRows(spark, FileRows.schemaOf(plan), folder, files);
            return open;
        }
        if (incremental && !few) {
            return plan.executeToIterator();
        }
        if (collected == null) {
            collected = plan.executeCollect();
        }
        return CollectionConverters.asScala(Arrays.asList(collected).iterator());
    }

    /** Null where the files cannot be written, so that the query is to run as ever. */
    private List<AddFile> written(SparkPlan plan) {
        try {
            folder = place.folder(statement);
            List<AddFile> found = withExactDates(
                () -> ResultFiles.written(spark, plan, folder.toString(), partitionBytes, new ResultFormat()));
            place.shut(folder, found);
            return found;
        } catch (Throwable error) {
            place.end(statement);
            Throwable raised = WriteErrors.ofQuery(error);
            if (raised != null) {
                throw WriteErrors.raised(raised);
            }
            Answers.LOG.warn("the rows of statement {} cannot be written to {}, so it runs without files", statement, folder, error);
            return null;
        }
    }

    /** Tasks see the settings of the session as properties of the thread that runs their job. */
    private List<AddFile> withExactDates(Supplier<List<AddFile>> job) {
        SparkContext context = spark.sparkContext();
        Map<String, String> before = new HashMap<>();
        ResultFormat.OF_TASKS.forEach((key, value) -> {
            before.put(key, context.getLocalProperty(key));
            context.setLocalProperty(key, value);
        });
        try {
            return job.get();
        } finally {
            before.forEach(context::setLocalProperty);
        }
    }

    /** Ends reading. It does not wait for rows that are being written. */
    void close() {
        FileRows found = open;
        if (found != null) {
            found.close();
        }
    }
}
