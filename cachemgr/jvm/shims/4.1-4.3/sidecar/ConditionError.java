package relationalcache.sidecar;

import org.apache.spark.QueryContext;
import org.apache.spark.sql.AnalysisException;

import scala.Option;
import scala.collection.immutable.Map$;

/** An error of Spark's with a condition and a place in a text. */
abstract class ConditionError extends AnalysisException {
    private static final long serialVersionUID = 1L;

    ConditionError(String message, Option<Object> line, Option<Object> column, String condition, String state) {
        super(
            message, line, column, Option.empty(), Option.apply(condition), Map$.MODULE$.<String, String>empty(),
            new QueryContext[0], Option.apply(state), Option.empty());
    }
}
