package relationalcache.results;

import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.Map;

import org.apache.spark.sql.internal.SQLConf;

/**
 * Has a Thrift server iterate over the rows of one statement. It reads the session's setting after it has planned the
 * statement and before it asks for rows, in one go; for so long the setting is true, then again what it was.
 */
final class Incremental {
    private static final String KEY = "spark.sql.thriftServer.incrementalCollect";
    private static final Map<String, Incremental> STATEMENTS = new HashMap<>();
    private static final Map<SQLConf, Incremental> SESSIONS = new IdentityHashMap<>();

    private final SQLConf conf;
    /** The session's own value; null where it has none. */
    private final String own;
    private int statements = 0;

    private Incremental(SQLConf conf) {
        this.conf = conf;
        this.own = conf.getConfString(KEY, null);
    }

    /** Until `end` of the statement. Returns whether the session wants it for all its statements. */
    static synchronized boolean begin(SQLConf conf, String statement) {
        Incremental held = SESSIONS.get(conf);
        if (held == null) {
            held = new Incremental(conf);
        }
        boolean wanted = held.own != null && Boolean.parseBoolean(held.own.trim());
        if (!wanted && !STATEMENTS.containsKey(statement)) {
            held.statements++;
            STATEMENTS.put(statement, held);
            SESSIONS.put(conf, held);
            conf.setConfString(KEY, "true");
        }
        return wanted;
    }

    static synchronized void end(String statement) {
        Incremental held = STATEMENTS.remove(statement);
        if (held == null || --held.statements > 0) {
            return;
        }
        SESSIONS.remove(held.conf);
        if (!"true".equals(held.conf.getConfString(KEY, null))) {
            return; // somebody has set it meanwhile
        }
        if (held.own == null) {
            held.conf.unsetConf(KEY);
        } else {
            held.conf.setConfString(KEY, held.own);
        }
    }
}
