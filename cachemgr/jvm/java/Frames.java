package relationalcache;

/** What the call stack tells about a plan that the plan itself does not. */
public final class Frames {
    // What is cached must follow the tables as Spark itself tracks them: CACHE TABLE, df.cache(), recaching.
    private static final String[] KEPT = {"org.apache.spark.sql.execution.CacheManager"};
    private static final String[] NEVER = {
        "org.apache.spark.sql.execution.streaming.",
        // Statistics are of the table as it is.
        "org.apache.spark.sql.execution.command.Analyze",
    };
    private static final String[] WRITES = {
        "org.apache.spark.sql.classic.DataFrameWriter",
        "org.apache.spark.sql.classic.MergeIntoWriter",
        "org.apache.spark.sql.delta.commands.",
        "org.apache.spark.sql.delta.sources.DeltaDataSource",
        "org.apache.spark.sql.execution.command.CreateDataSourceTableAsSelectCommand",
        "org.apache.spark.sql.execution.command.DataWritingCommand",
        "org.apache.spark.sql.execution.command.InsertIntoDataSourceDirCommand",
        "org.apache.spark.sql.execution.datasources.SaveIntoDataSourceCommand",
        "org.apache.spark.sql.execution.datasources.InsertInto",
        "org.apache.spark.sql.execution.datasources.v2.",
    };

    public Frames() {
    }

    public static boolean neverRewritten(StackTraceElement[] frames) {
        return any(frames, NEVER);
    }

    /** True if Spark is to keep the plan's rows and to compute lost ones again from it. */
    public static boolean areKept(StackTraceElement[] frames) {
        return any(frames, KEPT);
    }

    private static boolean any(StackTraceElement[] frames, String[] prefixes) {
        for (int i = 0; i < frames.length; i++) {
            if (startsWithAny(frames[i].getClassName(), prefixes)) {
                return true;
            }
        }
        return false;
    }

    /** True if the plan is optimised on behalf of something that writes its rows down. */
    public static boolean isWrite(StackTraceElement[] frames) {
        for (int i = 0; i < frames.length; i++) {
            String name = frames[i].getClassName();
            if (startsWithAny(name, WRITES) && (!name.startsWith("org.apache.spark.sql.execution.datasources.v2.")
                || isV2Write(name))) {
                return true;
            }
        }
        return false;
    }

    private static boolean isV2Write(String name) {
        return name.contains("Write") || name.contains("Append") || name.contains("Overwrite")
            || name.contains("AsSelect") || name.contains("Replace") || name.contains("Insert");
    }

    private static boolean startsWithAny(String name, String[] prefixes) {
        for (int i = 0; i < prefixes.length; i++) {
            if (name.startsWith(prefixes[i])) {
                return true;
            }
        }
        return false;
    }
}
