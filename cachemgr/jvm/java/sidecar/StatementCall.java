package relationalcache.sidecar;

import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;

import relationalcache.Who;

/** What the sidecar is told of a statement, and where it puts what becomes of it. */
public final class StatementCall {
    private final SparkSession spark;
    private final Who who;
    String columns = null;
    Dataset<?> rows = null;
    StatementError error = null;

    StatementCall(SparkSession spark, Who who) {
        this.spark = spark;
        this.who = who;
    }

    /** The session that asks. */
    public SparkSession session() {
        return spark;
    }

    /** Who asks; null for the process's own user. */
    public String user() {
        return who.name();
    }

    /** Whether somebody has authenticated that name. */
    public boolean vouched() {
        return who.vouched();
    }

    /** The columns of its rows, as Spark writes a schema. */
    public void columns(String ddl) {
        columns = ddl;
    }

    public void rows(Dataset<?> found) {
        rows = found;
    }

    /** What is wrong; `line` and `column` count from 1, 0 where it has none. */
    public void failed(String code, String message, int line, int column) {
        error = new StatementError(code, message, line, column);
    }
}
