package relationalcache.sidecar;

import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.function.BiFunction;

import org.apache.spark.sql.Row;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.StructType;

import relationalcache.Hook;
import relationalcache.Who;

/**
 * Has statements carried out by the sidecar. They take as long as they take; he who cancels one stops waiting, and a refresh
 * goes on.
 */
final class Statements {
    private final BiFunction<Object, Object, Object> python;
    private final ExecutorService threads;

    Statements(BiFunction<Object, Object, Object> python, ExecutorService threads) {
        this.python = python;
        this.threads = threads;
    }

    /** The columns of a statement's rows; raises what is wrong with its text. */
    StructType columns(SparkSession spark, String text) {
        return StructType.fromDDL(carriedOut("columns", spark, text).columns);
    }

    /** The rows of a statement, which must have these columns. */
    List<Row> rows(SparkSession spark, String text, StructType columns) {
        StatementCall done = carriedOut("rows", spark, text);
        if (!done.rows.schema().asNullable().equals(columns.asNullable())) {
            throw StatementError.of(
                "INTERNAL_ERROR", "the statement's rows have other columns than its text was parsed with: run it again");
        }
        return (List<Row>) (List<?>) done.rows.collectAsList();
    }

    /** Tells of a query that failed, and does not wait. */
    void failed(String text) {
        threads.execute(() -> {
            Hook.enter();
            try {
                python.apply(null, "failed\n" + text);
            } finally {
                Hook.leave();
            }
        });
    }

    private StatementCall carriedOut(String wanted, SparkSession spark, String text) {
        StatementCall call = new StatementCall(spark, Who.asks(spark));
        Future<?> running = threads.submit(() -> {
            Hook.enter();
            org.apache.spark.sql.classic.SparkSession.setActiveSession(spark);
            try {
                python.apply(call, wanted + "\n" + text);
            } finally {
                org.apache.spark.sql.classic.SparkSession.clearActiveSession();
                Hook.leave();
            }
        });
        try {
            running.get();
        } catch (InterruptedException cancelled) {
            Thread.currentThread().interrupt();
            throw StatementError.of(
                "CANCELLED", "nobody waits for this statement any more; a refresh that has begun goes on");
        } catch (ExecutionException failed) {
            throw StatementError.of(
                "SIDECAR_LOST", "the process that carries statements out has ended meanwhile (" + failed.getCause().getMessage()
                    + "): it is started again; see what became of the statement, and run it once more");
        }
        if (call.error != null) {
            throw StatementError.raised(call.error);
        }
        return call;
    }

    void close() {
        threads.shutdownNow();
    }
}
