package relationalcache.sidecar;

import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.classic.SparkSession;

/** The parser of a session. */
final class Parser extends AnyParser {
    Parser(SparkSession spark, ParserInterface delegate) {
        super(spark, delegate);
    }
}
