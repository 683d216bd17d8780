package relationalcache.results;

import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.scheduler.SparkListenerEvent;

/** Hears when operations of a Thrift server end, which are closed with their sessions at the latest. */
final class Ends extends SparkListener {
    private static final String OPERATION = "org.apache.spark.sql.hive.thriftserver.ui.SparkListenerThriftServerOperation";
    private final Place place;

    Ends(Place place) {
        this.place = place;
    }

    @Override
    public void onOtherEvent(SparkListenerEvent event) {
        String name = event.getClass().getName();
        if (!name.startsWith(OPERATION)) {
            return;
        }
        switch (name.substring(OPERATION.length())) {
            case "Finish":
                Incremental.end(statement(event));
                break;
            case "Canceled":
            case "Error":
            case "Timeout":
                place.end(statement(event));
                break;
            case "Closed":
                place.close(statement(event));
                break;
            default:
                break;
        }
    }

    /** Spark may have been built without these classes. */
    private static String statement(SparkListenerEvent event) {
        try {
            return (String) event.getClass().getMethod("id").invoke(event);
        } catch (ReflectiveOperationException changed) {
            return "";
        }
    }

    @Override
    public void onApplicationEnd(SparkListenerApplicationEnd event) {
        place.end();
    }
}
