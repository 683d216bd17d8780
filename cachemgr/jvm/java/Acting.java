package relationalcache;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

import org.apache.spark.sql.catalyst.CurrentUserContext;
import org.apache.spark.sql.classic.SparkSession;

/** Sessions in which a service works for somebody else, whom it has authenticated: each of them for one. */
public final class Acting {
    private static final Map<String, String> FOR = new ConcurrentHashMap<>();

    /** What `spark` asks from here on, it asks for `principal`. */
    public static void begin(SparkSession spark, String principal) {
        FOR.put(spark.sessionUUID(), principal);
        CurrentUserContext.CURRENT_USER().set(principal); // of `current_user()`, in this thread
    }

    public static void end(SparkSession spark) {
        FOR.remove(spark.sessionUUID());
        CurrentUserContext.CURRENT_USER().remove();
    }

    /** For whom it asks; null for nobody else. */
    static String principal(SparkSession spark) {
        return FOR.get(spark.sessionUUID());
    }
}
