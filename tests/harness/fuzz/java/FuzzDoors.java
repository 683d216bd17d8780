package relationalcache.fuzz;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.SubExprUtils$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation$;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.StructType;

import relationalcache.Hook;

/**
 * Catalyst's plans of many queries over tables that have a place, columns with NOT NULL, and no file: what the hook
 * would see in a session, without a table on disk for each random schema.
 */
public final class FuzzDoors {
    static final String LINE = "\u0002";

    public FuzzDoors() {
    }

    /** A temporary view `name` over a table that lies at `place` and has no rows. */
    public void table(SparkSession session, String name, String place, StructType schema) {
        HadoopFsRelation relation = new HadoopFsRelation(
            new NoFiles(place), new StructType(), schema, scala.Option.empty(), new ParquetFileFormat(),
            (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty(), session);
        Dataset.ofRows(session, LogicalRelation$.MODULE$.apply(relation, false)).createOrReplaceTempView(name);
    }

    /**
     * One JSON list a query: its plan and those of its uncorrelated subquery expressions, which Spark optimises apart;
     * or a text that begins with "error".
     */
    public String capture(final SparkSession session, String queries, int threads) throws Exception {
        final String[] texts = queries.split(LINE);
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        try {
            List calls = new ArrayList();
            for (int i = 0; i < texts.length; i++) {
                final String text = texts[i];
                calls.add(new Callable() {
                    public Object call() {
                        return documents(session, text);
                    }
                });
            }
            List futures = pool.invokeAll(calls);
            StringBuilder out = new StringBuilder();
            for (int i = 0; i < futures.size(); i++) {
                out.append(i > 0 ? LINE : "").append(((Future) futures.get(i)).get());
            }
            return out.toString();
        } finally {
            pool.shutdown();
        }
    }

    private static String documents(SparkSession session, String text) {
        try {
            LogicalPlan analysed = ((Dataset) session.sql(text)).queryExecution().analyzed();
            StringBuilder out = new StringBuilder("[").append(Hook.capture(session, analysed));
            scala.collection.immutable.Seq inside = analysed.subqueriesAll();
            for (int i = 0; i < inside.length(); i++) {
                LogicalPlan plan = (LogicalPlan) inside.apply(i);
                if (!SubExprUtils$.MODULE$.hasOuterReferences(plan)) {
                    out.append(',').append(Hook.capture(session, plan));
                }
            }
            return out.append(']').toString();
        } catch (Throwable error) {
            String message = String.valueOf(error.getMessage());
            return "error " + message.substring(0, Math.min(message.length(), 300));
        }
    }

    /** A place with no file in it. */
    public static final class NoFiles implements FileIndex {
        private final Path place;

        public NoFiles(String place) {
            this.place = new Path(place);
        }

        public scala.collection.immutable.Seq rootPaths() {
            List paths = new ArrayList();
            paths.add(place);
            return ((scala.collection.Iterable) scala.jdk.javaapi.CollectionConverters.asScala(paths)).toSeq();
        }

        public scala.collection.immutable.Seq listFiles(
            scala.collection.immutable.Seq partitions, scala.collection.immutable.Seq data
        ) {
            return ((scala.collection.Iterable)
                scala.jdk.javaapi.CollectionConverters.asScala(new ArrayList())).toSeq();
        }

        public String[] inputFiles() {
            return new String[0];
        }

        public void refresh() {
        }

        public long sizeInBytes() {
            return 1L;
        }

        public StructType partitionSchema() {
            return new StructType();
        }

        public scala.Option metadataOpsTimeNs() {
            return scala.Option.empty();
        }
    }
}
