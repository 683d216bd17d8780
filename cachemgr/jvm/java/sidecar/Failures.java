package relationalcache.sidecar;

import java.util.function.Consumer;

import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;

/**
 * Hears of queries that failed, of all sessions: one that could not read a file of a cache must not fail a second time.
 * Where Python drives the application, `cachemgr.spark.failures` sees them.
 */
final class Failures extends SparkListener {
    private static final int MOST_CAUSES = 10;
    private final Consumer<String> told;

    /** `told` must return at once: this is the thread of all listeners. */
    Failures(Consumer<String> told) {
        this.told = told;
    }

    @Override
    public void onOtherEvent(SparkListenerEvent event) {
        if (event instanceof SparkListenerSQLExecutionEnd) {
            scala.Option<Throwable> failure = ((SparkListenerSQLExecutionEnd) event).executionFailure();
            if (failure.isDefined()) {
                told.accept(text(failure.get()));
            }
        }
    }

    private static String text(Throwable failure) {
        StringBuilder found = new StringBuilder();
        Throwable cause = failure;
        for (int i = 0; cause != null && i < MOST_CAUSES; i++) {
            found.append(cause.getClass().getName()).append(": ").append(cause.getMessage()).append('\n');
            cause = cause.getCause();
        }
        return found.toString();
    }
}
