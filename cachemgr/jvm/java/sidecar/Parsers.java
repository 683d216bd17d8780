package relationalcache.sidecar;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.parser.ParserInterface;

import scala.runtime.AbstractFunction2;

/** Makes the parser of each session; the first one starts the sidecar. */
public final class Parsers extends AbstractFunction2<SparkSession, ParserInterface, ParserInterface> {
    @Override
    public ParserInterface apply(SparkSession session, ParserInterface delegate) {
        org.apache.spark.sql.classic.SparkSession spark = (org.apache.spark.sql.classic.SparkSession) session;
        Sidecar.begin(spark);
        return new Parser(spark, delegate);
    }
}
