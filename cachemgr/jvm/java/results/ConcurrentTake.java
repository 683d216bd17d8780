package relationalcache.results;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;

import org.apache.spark.SparkContext;
import org.apache.spark.rdd.PartitionPruningRDD;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.LocalLimitExec;
import org.apache.spark.sql.execution.RDDScanExec;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.SparkPlan;

import relationalcache.Scala;

/**
 * The first rows of a plan, by some jobs at once, each over the next few partitions, until there are enough. Spark's own
 * take waits for each job before it begins a larger one, and what sends rows as Arrow or writes them runs all partitions.
 * The rows are those of the first partitions, in order, as take has them.
 */
final class ConcurrentTake {
    private static final long MOST_ROWS_OF_JOB = 200_000;
    /** A job that takes less is mostly Spark's own work for a job: the next ones grow as those of Spark's take do. */
    private static final long QUICK_NANOS = 50_000_000;
    private static final double QUICK_GROWTH = 4;

    private final SparkSession spark;
    private final SparkContext context;
    private final SparkPlan plan;
    private final RDD<InternalRow> partitions;
    private final int limit;
    private final int jobs;
    private final double growth;
    private final String tag = "preview-" + UUID.randomUUID();
    private final List<CompletableFuture<InternalRow[]>> begun = new ArrayList<>();
    private final BlockingQueue<Integer> ended = new LinkedBlockingQueue<>();
    private int next = 0;
    private double size = 1;
    private volatile boolean quick = false;

    ConcurrentTake(SparkSession spark, SparkPlan plan, RDD<InternalRow> partitions, int limit, int jobs, double growth) {
        this.spark = spark;
        this.context = spark.sparkContext();
        this.plan = plan;
        this.partitions = partitions;
        this.limit = limit;
        this.jobs = jobs;
        this.growth = growth;
    }

    List<InternalRow> rows() {
        ExecutorService threads = Executors.newFixedThreadPool(jobs);
        try {
            for (int running = 0, computed = 0; ; running--) {
                while (running < jobs && next < partitions.getNumPartitions() && computed < limit) {
                    begin(threads);
                    running++;
                }
                List<InternalRow> first = first();
                if (first.size() == limit || running == 0) {
                    return first;
                }
                CompletableFuture<InternalRow[]> end = begun.get(ended.take());
                computed += end.isCompletedExceptionally() ? 0 : end.join().length;
            }
        } catch (InterruptedException interrupted) {
            throw new CancellationException("the thread of a preview was interrupted");
        } finally {
            context.cancelJobsWithTag(tag);
            threads.shutdownNow();
        }
    }

    private void begin(ExecutorService threads) {
        int number = begun.size();
        if (number > 0 && number % jobs == 0) {
            double factor = quick ? Math.max(growth, QUICK_GROWTH) : growth;
            size = Math.min(size * factor, Math.max(1, MOST_ROWS_OF_JOB / limit));
        }
        CompletableFuture<InternalRow[]> future = SQLExecution.withThreadLocalCaptured(
            spark, threads, new Collected(portion()));
        begun.add(future);
        future.whenComplete((rows, error) -> ended.add(number));
    }

    /** The next partitions. */
    private SparkPlan portion() {
        int until = (int) Math.min(partitions.getNumPartitions(), next + Math.ceil(size));
        long[] mask = new long[(until + Long.SIZE - 1) / Long.SIZE];
        for (int from = next; from < until; from++) {
            mask[from / Long.SIZE] |= 1L << (from % Long.SIZE);
        }
        // a set is a function, and goes to executors, which know no class of ours
        scala.Function1 wanted = scala.collection.immutable.BitSet$.MODULE$.fromBitMaskNoCopy(mask);
        RDD<InternalRow> some = PartitionPruningRDD.create(partitions, wanted);
        UnknownPartitioning partitioning = new UnknownPartitioning(until - next);
        next = until;
        return new LocalLimitExec(
            limit,
            new RDDScanExec(plan.output(), some, "Preview", partitioning, Scala.seq(List.of()), Scala.none()));
    }

    /**
     * The rows that are known to come first. A job that failed counts once all before it have ended: its rows may not be
     * wanted, and take would not have begun it.
     */
    private List<InternalRow> first() {
        List<InternalRow> found = new ArrayList<>();
        for (CompletableFuture<InternalRow[]> each : begun) {
            if (!each.isDone() || found.size() == limit) {
                break;
            }
            List<InternalRow> rows = Arrays.asList(rowsOf(each));
            found.addAll(rows.subList(0, Math.min(rows.size(), limit - found.size())));
        }
        return found;
    }

    private static InternalRow[] rowsOf(CompletableFuture<InternalRow[]> ended) {
        try {
            return ended.join();
        } catch (CompletionException error) {
            throw WriteErrors.raised(error.getCause() == null ? error : error.getCause());
        }
    }

    /** A job, in a thread of its own. */
    private final class Collected extends scala.runtime.AbstractFunction0<InternalRow[]> {
        private final SparkPlan some;

        Collected(SparkPlan some) {
            this.some = some;
        }

        @Override
        public InternalRow[] apply() {
            context.addJobTag(tag); // of this thread's copy of the properties
            long began = System.nanoTime();
            InternalRow[] rows = some.executeCollect();
            quick = System.nanoTime() - began < QUICK_NANOS;
            return rows;
        }
    }
}
