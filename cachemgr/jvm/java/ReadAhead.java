package relationalcache;

import org.apache.spark.sql.classic.SparkSession;

/**
 * The state of a table's newest version, computed while others work. Delta asks for it before it writes under a
 * transaction number, and whoever is about to write has to plan the rows first.
 */
public final class ReadAhead implements Runnable {
    private final SparkSession spark;
    private final String location;

    private ReadAhead(SparkSession spark, String location) {
        this.spark = spark;
        this.location = location;
    }

    /** Starts, and does not wait. The jobs are the caller's: they carry its tags, and are cancelled with its own. */
    static void start(SparkSession spark, String location) {
        Thread thread = new Thread(new ReadAhead(spark, location), "relational-cache-read-ahead");
        thread.setDaemon(true);
        thread.start();
    }

    public void run() {
        try {
            // One job: under adaptive execution it would be three. In another session, as this one's settings are not ours
            // to change while somebody plans in it.
            SparkSession own = spark.cloneSession();
            own.conf().set("spark.sql.adaptive.enabled", "false");
            SparkSession.setActiveSession(own);
            Tables.head(Tables.log(own, location)).transactions();
        } catch (Throwable failed) {
            // whoever needs the state computes it, and tells what is wrong
        }
    }
}
