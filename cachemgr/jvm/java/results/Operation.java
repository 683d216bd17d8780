package relationalcache.results;

import java.util.Iterator;

import org.apache.spark.SparkContext;

/** The operation of a Thrift server whose statement this thread carries out. */
final class Operation {
    private static final String EXECUTES = "org.apache.spark.sql.hive.thriftserver.SparkExecuteStatementOperation";
    /** Below these a plan is another one than that whose rows the operation fetches: a command's, a subquery's, Delta's own. */
    private static final String[] INNER = {
        "org.apache.spark.sql.classic.Dataset", "org.apache.spark.sql.catalyst.rules.RuleExecutor",
        "org.apache.spark.sql.execution.PlanSubqueries", "org.apache.spark.sql.execution.adaptive.",
    };

    private Operation() {
    }

    /** The statement whose rows are about to be planned; null where it is anything else that is planned. */
    static String planned(SparkContext context) {
        boolean found = StackWalker.getInstance().walk(frames -> isPlanned(frames.iterator()));
        return found ? context.getLocalProperty("spark.jobGroup.id") : null;
    }

    private static boolean isPlanned(Iterator<StackWalker.StackFrame> frames) {
        while (frames.hasNext()) {
            StackWalker.StackFrame frame = frames.next();
            String name = frame.getClassName();
            if (name.startsWith(EXECUTES)) {
                return true;
            }
            if (frame.getMethodName().contains("prepareForExecution") || frame.getMethodName().contains("prepareExecutedPlan")) {
                return false;
            }
            for (String inner : INNER) {
                if (name.startsWith(inner)) {
                    return false;
                }
            }
        }
        return false;
    }
}
