package relationalcache.sidecar;

import java.util.List;

import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.command.LeafRunnableCommand;
import org.apache.spark.sql.types.StructType;

import scala.Enumeration;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * One of our statements: parsed once, and run once however often its rows are asked for. The sidecar carries it out in the
 * session that asks.
 */
public final class Statement extends LogicalPlan implements LeafRunnableCommand {
    private final String text;
    private final Seq<Attribute> output;
    private Seq<Enumeration.Value> nodePatterns;

    /** Spark copies the node by this. */
    public Statement(String text, Seq<Attribute> output) {
        Command.$init$(this);
        this.text = text;
        this.output = output;
    }

    /** Raises what is wrong with the text, with its line and column. */
    static Statement parsed(SparkSession spark, String text) {
        StructType columns = Sidecar.statements(spark).columns(spark, text);
        return new Statement(text, (Seq<Attribute>) (Seq<?>) DataTypeUtils.toAttributes(columns));
    }

    @Override
    public Seq<Attribute> output() {
        return output;
    }

    @Override
    public Seq<Row> run(org.apache.spark.sql.SparkSession session) {
        SparkSession spark = (SparkSession) session;
        List<Row> rows = Sidecar.statements(spark).rows(spark, text, DataTypeUtils.fromAttributes(output));
        return CollectionConverters.asScala(rows).toSeq();
    }

    @Override
    public Seq<Enumeration.Value> nodePatterns() {
        return nodePatterns;
    }

    @Override
    public void org$apache$spark$sql$catalyst$plans$logical$Command$_setter_$nodePatterns_$eq(Seq<Enumeration.Value> value) {
        nodePatterns = value;
    }

    @Override
    public AttributeSet producedAttributes() {
        return outputSet();
    }

    @Override
    public Seq<LogicalPlan> children() {
        return (Seq<LogicalPlan>) (Seq<?>) scala.collection.immutable.Nil$.MODULE$;
    }

    @Override
    public LogicalPlan withNewChildrenInternal(IndexedSeq<LogicalPlan> none) {
        return this;
    }

    /** Its text may hold what a log must not. */
    @Override
    public String simpleString(int most) {
        return "RelationalCacheStatement";
    }

    @Override
    public int productArity() {
        return 2;
    }

    @Override
    public Object productElement(int number) {
        return number == 0 ? text : output;
    }

    @Override
    public boolean canEqual(Object other) {
        return other instanceof Statement;
    }

    @Override
    public boolean equals(Object other) {
        return this == other;
    }

    @Override
    public int hashCode() {
        return System.identityHashCode(this);
    }
}
