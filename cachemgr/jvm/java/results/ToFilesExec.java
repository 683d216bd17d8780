package relationalcache.results;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.v2.V2CommandExec;

import scala.collection.Iterator;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

import relationalcache.Scala;

/**
 * The root of a query's plan. Who iterates over its rows, as a Thrift server does for incremental collect, is given them
 * once all are written; in all else it is what stands below it.
 *
 * A plan that Spark adapts while it runs has no say in how its rows are iterated over. It stands below a command of this
 * kind as a whole, so that this is one by its class.
 *
 * Spark: org.apache.spark.sql.execution.adaptive.InsertAdaptiveSparkPlan.
 */
public final class ToFilesExec extends V2CommandExec {
    private static final long serialVersionUID = 1L;

    private final SparkPlan child;
    /** Shared by the copies that Spark makes of a plan. */
    private final transient Answer answer;

    /** Spark copies the node by this. */
    public ToFilesExec(SparkPlan child, Answer answer) {
        this.child = child;
        this.answer = answer;
    }

    @Override
    public Iterator<InternalRow> executeToIterator() {
        return answer.rows(child);
    }

    @Override
    public InternalRow[] executeCollect() {
        answer.isAsked();
        return child.executeCollect();
    }

    @Override
    public InternalRow[] executeTake(int number) {
        return child.executeTake(number);
    }

    @Override
    public InternalRow[] executeTail(int number) {
        return child.executeTail(number);
    }

    @Override
    public RDD<InternalRow> doExecute() {
        return child.execute();
    }

    @Override
    public Seq<InternalRow> run() {
        return CollectionConverters.asScala(java.util.Arrays.asList(executeCollect())).toSeq();
    }

    @Override
    public Seq<Attribute> output() {
        return child.output();
    }

    @Override
    public Seq<SparkPlan> children() {
        return Scala.seq(java.util.List.of(child));
    }

    @Override
    public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> children) {
        return new ToFilesExec(children.head(), answer);
    }

    @Override
    public Seq<Object> otherCopyArgs() {
        return Scala.seq(java.util.List.of(answer));
    }

    @Override
    public String nodeName() {
        return "ResultFiles";
    }

    @Override
    public int productArity() {
        return 1;
    }

    @Override
    public Object productElement(int number) {
        return child;
    }

    @Override
    public boolean canEqual(Object other) {
        return other instanceof ToFilesExec;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof ToFilesExec && ((ToFilesExec) other).answer == answer
            && ((ToFilesExec) other).child.equals(child);
    }

    @Override
    public int hashCode() {
        return child.hashCode();
    }
}
