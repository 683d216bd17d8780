package relationalcache.results;

import java.io.IOException;

import org.apache.spark.SparkThrowable;

/** Why rows were not written: because of their query, which fails without us as well, or because of the place. */
final class WriteErrors {
    private static final String WRITER = "org.apache.spark.sql.execution.datasources.";
    private static final int MOST_CAUSES = 20;

    private WriteErrors() {
    }

    /** What the query raises where its rows are not written; null where it may run without that error. */
    static Throwable ofQuery(Throwable error) {
        if (error instanceof IOException) {
            return null; // the folder, since tasks' errors come as Spark's own
        }
        Throwable task = failedTask(error);
        if (task == null || task.getCause() == null) {
            return error;
        }
        return isOfWriter(task.getCause()) ? null : task.getCause();
    }

    /** Spark's error of a task that writes, around what made it fail. */
    private static Throwable failedTask(Throwable error) {
        Throwable found = error;
        for (int i = 0; found != null && i < MOST_CAUSES; i++) {
            if (found instanceof SparkThrowable && "TASK_WRITE_FAILED".equals(((SparkThrowable) found).getCondition())) {
                return found;
            }
            found = found.getCause();
        }
        return null;
    }

    /** Whether a task failed where it wrote a row or ended a file, and not where it computed the next row. */
    private static boolean isOfWriter(Throwable error) {
        for (StackTraceElement frame : error.getStackTrace()) {
            String name = frame.getClassName();
            if (name.startsWith(WRITER) && name.endsWith("DataWriter") && !frame.getMethodName().startsWith("writeWithIterator")) {
                return true;
            }
        }
        return false;
    }

    static RuntimeException raised(Throwable error) {
        return WriteErrors.<RuntimeException>unchecked(error);
    }

    @SuppressWarnings("unchecked")
    private static <E extends Throwable> RuntimeException unchecked(Throwable error) throws E {
        throw (E) error;
    }
}
