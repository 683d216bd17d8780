package relationalcache.fuzz;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Pattern;

import org.apache.spark.Dependency;
import org.apache.spark.Partition;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkEnv;
import org.apache.spark.SparkThrowable;
import org.apache.spark.TaskContext$;
import org.apache.spark.TaskContextImpl;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.memory.TaskMemoryManager;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.execution.CoalesceExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;

/**
 * Runs pairs of queries and compares names, types and rows: one call for a whole batch, so that no row crosses to
 * Python. Rows are compared as text, which tells -0.0 from 0.0.
 */
public final class FuzzJudge {
    static final String FIELD = "\u0001";
    static final String LINE = "\u0002";

    // Far from the numbers of Spark's own tasks, whose memory is accounted by number.
    /** What an expression may be for some values: Spark works it out for all rows, and so must a rewrite. */
    private static final Pattern OF_A_VALUE = Pattern.compile("DIVIDE_BY_ZERO|CAST_INVALID_INPUT|REMAINDER_BY_ZERO");
    private static final AtomicLong TASKS = new AtomicLong(1L << 40);
    private final Map results = new ConcurrentHashMap();

    public FuzzJudge() {
    }

    /** Forget the originals' results: the tables are others now. */
    public void clear() {
        results.clear();
    }

    /**
     * One line a pair: original, rewritten, "o" where the order counts and "r" where a value of which the original is
     * an error must be one of the rewrite too, joined by FIELD and LINE. Answers one line a pair: "=" equal, "s"
     * skipped since the original fails, "!" with what differs.
     */
    public String judge(final SparkSession session, String pairs, int threads, final int digits) throws Exception {
        final String[] lines = pairs.split(LINE);
        List calls = new ArrayList();
        for (int i = 0; i < lines.length; i++) {
            final String line = lines[i];
            calls.add(new Callable() {
                public Object call() {
                    return one(session, line.split(FIELD, -1), digits);
                }
            });
        }
        return all(calls, threads);
    }

    /**
     * Temporary views over the rows that each text has now. One line a view: name and text; answers one line a view:
     * empty, or why its text fails.
     */
    public String keep(final SparkSession session, String views, int threads) throws Exception {
        final String[] lines = views.split(LINE);
        List calls = new ArrayList();
        for (int i = 0; i < lines.length; i++) {
            final String[] view = lines[i].split(FIELD, -1);
            calls.add(new Callable() {
                public Object call() {
                    return view(session, view[0], view[1]);
                }
            });
        }
        return all(calls, threads);
    }

    private static String all(List calls, int threads) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        try {
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

    private static String view(SparkSession session, String name, String text) {
        try {
            org.apache.spark.sql.classic.Dataset data = (org.apache.spark.sql.classic.Dataset) session.sql(text);
            List rows = new ArrayList();
            Throwable problem = here(session, data, rows);
            if (problem instanceof SparkThrowable) {
                throw problem;
            }
            if (problem != null) {
                data = (org.apache.spark.sql.classic.Dataset) session.sql(text);
                rows.addAll(Arrays.asList(data.queryExecution().executedPlan().executeCollect()));
            }
            LogicalPlan held = new LocalRelation(
                data.queryExecution().analyzed().output(),
                ((scala.collection.Iterable) scala.jdk.javaapi.CollectionConverters.asScala(rows)).toSeq(),
                false, scala.Option.empty());
            org.apache.spark.sql.classic.Dataset.ofRows((org.apache.spark.sql.classic.SparkSession) session, held)
                .createOrReplaceTempView(name);
            return "";
        } catch (Throwable error) {
            return first(error);
        }
    }

    private static String first(Throwable error) {
        String message = String.valueOf(error.getMessage());
        int end = message.indexOf('\n');
        return end > 0 ? message.substring(0, Math.min(end, 300)) : message;
    }

    /** The rows of a query as text, one a line, after a first line with names and types. */
    public String rows(SparkSession session, String text) {
        String[] found = run(session, text, 0, false);
        StringBuilder out = new StringBuilder();
        for (int i = 0; i < found.length; i++) {
            out.append(found[i]).append('\n');
        }
        return out.toString();
    }

    private String one(SparkSession session, String[] pair, int digits) {
        String key = digits + pair[0];
        String[] mine = (String[]) results.get(key);
        if (mine == null) {
            mine = run(session, pair[0], digits, true);
            results.put(key, mine);
        }
        boolean raises = mine[0].startsWith("error");
        if (raises && !(pair[2].contains("r") && OF_A_VALUE.matcher(mine[0]).find())) {
            return "s" + mine[0];
        }
        String[] theirs = run(session, pair[1], digits, false);
        if (raises && theirs[0].startsWith("error")) {
            return "s" + mine[0];
        }
        if (!mine[0].equals(theirs[0])) {
            return "!schema or error: " + mine[0] + " <> " + theirs[0];
        }
        if (pair[2].contains("o")) {
            return Arrays.equals(mine, theirs) ? "=" : "!order " + difference(mine, theirs);
        }
        String[] a = (String[]) mine.clone();
        String[] b = (String[]) theirs.clone();
        Arrays.sort(a);
        Arrays.sort(b);
        return Arrays.equals(a, b) ? "=" : "!rows " + difference(a, b);
    }

    private static String difference(String[] a, String[] b) {
        return Arrays.asList(a) + " <> " + Arrays.asList(b);
    }

    /**
     * First the names and types, then the rows; or one line that begins with "error". `quick`: an error of Spark's own
     * in this thread is taken as the query's; else the query is also run as a job before it counts as failed.
     */
    private static String[] run(SparkSession session, String text, int digits, boolean quick) {
        try {
            Dataset data = session.sql(text);
            StringBuilder schema = new StringBuilder();
            StructField[] fields = data.schema().fields();
            for (int i = 0; i < fields.length; i++) {
                schema.append(fields[i].name()).append(' ').append(fields[i].dataType().simpleString()).append(", ");
            }
            List lines = new ArrayList();
            lines.add(schema.toString());
            List rows = new ArrayList();
            Throwable problem = here(session, (org.apache.spark.sql.classic.Dataset) data, rows);
            if (problem instanceof SparkThrowable && quick) {
                throw problem;
            }
            if (problem != null) { // planned anew: what has run here once may not be sent to a task
                data = session.sql(text);
                rows.addAll(Arrays.asList(
                    ((org.apache.spark.sql.classic.Dataset) data).queryExecution().executedPlan().executeCollect()));
            }
            for (int i = 0; i < rows.size(); i++) {
                lines.add(text((InternalRow) rows.get(i), fields, digits));
            }
            return (String[]) lines.toArray(new String[0]);
        } catch (Throwable error) {
            return new String[] {"error " + first(error)};
        }
    }

    /**
     * Runs the physical plan in this thread: over a few rows in one partition a job costs ten times what its
     * operators do. Null if that went well, else, with no row added, what was in the way.
     */
    private static Throwable here(SparkSession session, org.apache.spark.sql.classic.Dataset data, List rows) {
        SparkSession.setActiveSession(session);
        long id = TASKS.incrementAndGet();
        TaskContextImpl context = new TaskContextImpl(
            0, 0, 0, id, 0, 1, new TaskMemoryManager(SparkEnv.get().memoryManager(), id), settings(session),
            SparkEnv.get().metricsSystem(), TaskMetrics.empty(), 1, TaskContext$.MODULE$.empty().resources());
        List found = new ArrayList();
        Throwable problem = null;
        try {
            RDD rdd = together(data.queryExecution().executedPlan()).execute();
            if (shuffles(rdd)) {
                problem = new IllegalStateException("a shuffle is left");
            } else {
                compute(rdd, context, found);
            }
        } catch (Throwable error) {
            problem = error;
        }
        free(context);
        if (problem == null) {
            rows.addAll(found);
        }
        return problem;
    }

    /** The session's settings as a task has them: without them its expressions would be compiled after all. */
    private static Properties settings(SparkSession session) {
        Properties found = new Properties();
        Iterator all = scala.jdk.javaapi.CollectionConverters.asJava(session.conf().getAll()).entrySet().iterator();
        while (all.hasNext()) {
            Map.Entry one = (Map.Entry) all.next();
            if (((String) one.getKey()).startsWith("spark.sql.")) {
                found.setProperty((String) one.getKey(), (String) one.getValue());
            }
        }
        return found;
    }

    /** The plan with each shuffle into one partition done by putting the partitions behind one another. */
    private static SparkPlan together(SparkPlan plan) {
        List children = new ArrayList();
        boolean changed = false;
        for (int i = 0; i < plan.children().length(); i++) {
            SparkPlan child = (SparkPlan) plan.children().apply(i);
            SparkPlan made = together(child);
            changed |= made != child;
            children.add(made);
        }
        if (plan instanceof ShuffleExchangeExec && ((ShuffleExchangeExec) plan).numPartitions() == 1) {
            return new CoalesceExec(1, (SparkPlan) children.get(0));
        }
        if (!changed) {
            return plan;
        }
        return (SparkPlan) plan.withNewChildren(
            ((scala.collection.Iterable) scala.jdk.javaapi.CollectionConverters.asScala(children)).toSeq());
    }

    /** True if a shuffle is left: in this thread it would be read as empty, since no stage has written it. */
    private static boolean shuffles(RDD rdd) {
        scala.collection.immutable.Seq parents = rdd.dependencies();
        for (int i = 0; i < parents.length(); i++) {
            if (parents.apply(i) instanceof ShuffleDependency || shuffles(((Dependency) parents.apply(i)).rdd())) {
                return true;
            }
        }
        return false;
    }

    private static void compute(RDD rdd, TaskContextImpl context, List found) {
        Partition[] parts = rdd.partitions();
        TaskContext$.MODULE$.setTaskContext(context);
        for (int i = 0; i < parts.length; i++) {
            scala.collection.Iterator rows = rdd.iterator(parts[i], context);
            while (rows.hasNext()) {
                found.add(((InternalRow) rows.next()).copy());
            }
        }
    }

    private static void free(TaskContextImpl context) {
        try {
            context.markTaskCompleted(scala.Option.empty());
            context.taskMemoryManager().cleanUpAllAllocatedMemory();
        } catch (Throwable error) {
            context = null;
        }
        TaskContext$.MODULE$.unset();
    }

    private static String text(InternalRow row, StructField[] fields, int digits) {
        StringBuilder out = new StringBuilder();
        for (int i = 0; i < fields.length; i++) {
            DataType type = fields[i].dataType();
            value(out, row.isNullAt(i) ? null : row.get(i, type), type, digits);
            out.append(',');
        }
        return out.toString();
    }

    private static void value(StringBuilder out, Object value, DataType type, int digits) {
        if (value instanceof ArrayData && type instanceof ArrayType) {
            DataType element = ((ArrayType) type).elementType();
            Object[] values = ((ArrayData) value).toObjectArray(element);
            out.append('[');
            for (int i = 0; i < values.length; i++) {
                value(out, values[i], element, digits);
                out.append(' ');
            }
            out.append(']');
            return;
        }
        boolean fraction = value instanceof Double || value instanceof Float;
        double number = fraction ? ((Number) value).doubleValue() : 0;
        if (digits > 0 && fraction && number == number && !Double.isInfinite(number)) {
            out.append(new java.math.BigDecimal(number).round(new java.math.MathContext(digits)).toPlainString());
        } else {
            out.append(value instanceof byte[] ? Arrays.toString((byte[]) value) : String.valueOf(value));
        }
    }
}
