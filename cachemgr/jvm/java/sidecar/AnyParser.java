package relationalcache.sidecar;

import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.VariableSubstitution;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

import scala.collection.immutable.Seq;

/**
 * Takes our statements, and leaves all else to the parser that was there. `Parser` adds what only some Sparks ask of one.
 */
abstract class AnyParser implements ParserInterface {
    private final SparkSession spark;
    final ParserInterface delegate;

    AnyParser(SparkSession spark, ParserInterface delegate) {
        this.spark = spark;
        this.delegate = delegate;
    }

    @Override
    public LogicalPlan parsePlan(String text) throws ParseException {
        return isOurs(text) ? statement(text) : delegate.parsePlan(text);
    }

    /** Some Sparks put variables into a text before they parse it, others leave that to their parser. */
    static boolean isOurs(String text) {
        return Recognise.isOurs(text)
            || text.contains("${") && Recognise.isOurs(new VariableSubstitution().substitute(text));
    }

    final LogicalPlan statement(String text) {
        return Statement.parsed(spark, new VariableSubstitution().substitute(text));
    }

    @Override
    public LogicalPlan parseQuery(String text) throws ParseException {
        return delegate.parseQuery(text);
    }

    @Override
    public Expression parseExpression(String text) throws ParseException {
        return delegate.parseExpression(text);
    }

    @Override
    public TableIdentifier parseTableIdentifier(String text) throws ParseException {
        return delegate.parseTableIdentifier(text);
    }

    @Override
    public FunctionIdentifier parseFunctionIdentifier(String text) throws ParseException {
        return delegate.parseFunctionIdentifier(text);
    }

    @Override
    public Seq<String> parseMultipartIdentifier(String text) throws ParseException {
        return delegate.parseMultipartIdentifier(text);
    }

    @Override
    public StructType parseRoutineParam(String text) throws ParseException {
        return delegate.parseRoutineParam(text);
    }

    @Override
    public StructType parseTableSchema(String text) throws ParseException {
        return delegate.parseTableSchema(text);
    }

    @Override
    public DataType parseDataType(String text) throws ParseException {
        return delegate.parseDataType(text);
    }
}
