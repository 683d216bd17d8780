package relationalcache;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.CurrentUserContext;
import org.apache.spark.sql.classic.SparkSession;

/**
 * Who asks, read where the plan is made; no setting of a session names or changes it.
 *
 * `name` is null for the process's own user, as in spark-sql. `vouched`: somebody has authenticated the name. In a Thrift
 * server that authenticates nobody it is whatever the client says, and in a Connect server always.
 */
public record Who(String name, boolean vouched) {
    private static final Pattern CONNECT_TAG = Pattern.compile(
        "(?:^|,)SparkConnect_OperationTag_User_(.*)_Session_[^,]*_Operation_[^,]*");
    private static final String AUTHENTICATION = "hive.server2.authentication";

    /** He who runs the query that this thread plans for `spark`. */
    public static Who asks(SparkSession spark) {
        SparkContext context = spark.sparkContext();
        String tags = context.getLocalProperty("spark.job.tags");
        Matcher connect = tags == null ? null : CONNECT_TAG.matcher(tags);
        if (connect != null && connect.find()) {
            return new Who(connect.group(1), false);
        }
        String user = CurrentUserContext.CURRENT_USER().get();
        return user == null ? new Who(null, true) : new Who(user, authenticates(context));
    }

    private static boolean authenticates(SparkContext context) {
        String how = context.hadoopConfiguration().get(AUTHENTICATION, "NONE");
        return !"NONE".equalsIgnoreCase(how) && !"NOSASL".equalsIgnoreCase(how);
    }
}
