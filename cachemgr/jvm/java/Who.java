package relationalcache;

import java.lang.reflect.Method;
import java.util.List;

import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.CurrentUserContext;
import org.apache.spark.sql.classic.SparkSession;

/**
 * Who asks, read where the plan is made; no setting of a session names or changes it. Local properties whose names begin
 * with `spark` are none to go by: Spark copies a session's settings into them while a statement runs.
 *
 * `name` is null for the process's own user, as in spark-sql, and empty where nobody can tell. `vouched`: somebody has
 * authenticated the name. In a Thrift server that authenticates nobody it is whatever the client says; in a Connect server
 * and in an engine of Kyuubi always.
 */
public record Who(String name, boolean vouched) {
    private static final String AUTHENTICATION = "hive.server2.authentication";
    /** Kyuubi's engine sets it on each of its operations. An engine may serve many users under one name of its own. */
    private static final String KYUUBI_USER = "kyuubi.session.user";
    private static final Server THRIFT = new Server("org.apache.spark.sql.hive.thriftserver.HiveThriftServer2$", "listener");
    private static final Server CONNECT = new Server("org.apache.spark.sql.connect.service.SparkConnectService$", "server");

    /** He who runs the query that this thread plans for `spark`. */
    public static Who asks(SparkSession spark) {
        String other = Acting.principal(spark);
        if (other != null) {
            return new Who(other, true);
        }
        boolean connects = CONNECT.runs();
        String remote = connects ? remoteUser(spark) : null;
        if (remote != null) {
            return new Who(remote, false);
        }
        SparkContext context = spark.sparkContext();
        String kyuubi = context.getLocalProperty(KYUUBI_USER);
        if (kyuubi != null) {
            return new Who(kyuubi, false);
        }
        String user = CurrentUserContext.CURRENT_USER().get();
        if (user != null) {
            return new Who(user, authenticates(context));
        }
        // where a server runs, a thread that is nobody's may work for anybody
        return connects || THRIFT.runs() ? new Who("", false) : new Who(null, true);
    }

    /** Whose session it is in the Connect server; null if it is none of its sessions. */
    private static String remoteUser(SparkSession spark) {
        try {
            Object sessions = call(call(CONNECT.object, "sessionManager"), "listActiveSessions");
            List infos = Scala.list(sessions);
            for (int i = 0; i < infos.size(); i++) {
                if (spark.sessionUUID().equals(call(infos.get(i), "serverSessionId"))) {
                    return String.valueOf(call(infos.get(i), "userId"));
                }
            }
            return null;
        } catch (ReflectiveOperationException | LinkageError error) {
            return "";
        }
    }

    private static boolean authenticates(SparkContext context) {
        String how = context.hadoopConfiguration().get(AUTHENTICATION, "NONE");
        return !"NONE".equalsIgnoreCase(how) && !"NOSASL".equalsIgnoreCase(how);
    }

    private static Object call(Object of, String name) throws ReflectiveOperationException {
        Method method = of.getClass().getMethod(name);
        return method.invoke(of);
    }

    /** A server of Spark's that may run in this JVM; Spark may have been built without it. `sign`: not null once it runs. */
    private record Server(Object object, String sign) {
        Server(String name, String sign) {
            this(find(name), sign);
        }

        private static Object find(String name) {
            try {
                return Class.forName(name).getField("MODULE$").get(null);
            } catch (ReflectiveOperationException | LinkageError withoutIt) {
                return null;
            }
        }

        boolean runs() {
            try {
                return object != null && call(object, sign) != null;
            } catch (ReflectiveOperationException | LinkageError error) {
                return true;
            }
        }
    }
}
