package relationalcache;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.CurrentUserContext;
import org.apache.spark.sql.classic.SparkSession;

/**
 * Who asks, read where the plan is made; no setting of a session names or changes it.
 *
 * `name` is null for the process's own user, as in spark-sql, and empty where nobody can tell. `vouched`: somebody has
 * authenticated the name. In a Thrift server that authenticates nobody it is whatever the client says; in a Connect server
 * and in an engine of Kyuubi always.
 */
public record Who(String name, boolean vouched) {
    private static final Pattern CONNECT_TAG = Pattern.compile(
        "(?:^|,)SparkConnect_OperationTag_User_(.*)_Session_[^,]*_Operation_[^,]*");
    private static final String AUTHENTICATION = "hive.server2.authentication";
    /** Kyuubi's engine sets it on each of its operations. An engine may serve many users under one name of its own. */
    private static final String KYUUBI_USER = "kyuubi.session.user";

    /** He who runs the query that this thread plans for `spark`. */
    public static Who asks(SparkSession spark) {
        SparkContext context = spark.sparkContext();
        String tags = context.getLocalProperty("spark.job.tags");
        Matcher connect = tags == null ? null : CONNECT_TAG.matcher(tags);
        if (connect != null && connect.find()) {
            return new Who(connect.group(1), false);
        }
        String kyuubi = context.getLocalProperty(KYUUBI_USER);
        if (kyuubi != null) {
            return new Who(kyuubi, false);
        }
        String user = CurrentUserContext.CURRENT_USER().get();
        if (user != null) {
            return new Who(user, authenticates(context));
        }
        return servesThrift() ? new Who("", false) : new Who(null, true);
    }

    /** Whether a Thrift server runs in this JVM: then a thread without a user is not the process's own. */
    private static boolean servesThrift() {
        try {
            return Thrift.SERVER != null && Thrift.SERVER.getClass().getMethod("listener").invoke(Thrift.SERVER) != null;
        } catch (ReflectiveOperationException | LinkageError error) {
            return true;
        }
    }

    /** Spark may have been built without its Thrift server. */
    private static final class Thrift {
        static final Object SERVER = find();

        private static Object find() {
            try {
                Class<?> server = Class.forName("org.apache.spark.sql.hive.thriftserver.HiveThriftServer2$");
                return server.getField("MODULE$").get(null);
            } catch (ReflectiveOperationException | LinkageError withoutIt) {
                return null;
            }
        }
    }

    private static boolean authenticates(SparkContext context) {
        String how = context.hadoopConfiguration().get(AUTHENTICATION, "NONE");
        return !"NONE".equalsIgnoreCase(how) && !"NOSASL".equalsIgnoreCase(how);
    }
}
