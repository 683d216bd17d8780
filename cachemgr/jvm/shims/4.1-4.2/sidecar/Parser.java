package relationalcache.sidecar;

import org.apache.spark.sql.catalyst.parser.ParameterContext;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;

/** The parser of a session. */
final class Parser extends AnyParser {
    Parser(SparkSession spark, ParserInterface delegate) {
        super(spark, delegate);
    }

    /** The trait's own drops the parameters. */
    @Override
    public LogicalPlan parsePlanWithParameters(String text, ParameterContext parameters) throws ParseException {
        return isOurs(text) ? statement(text) : delegate.parsePlanWithParameters(text, parameters);
    }
}
