package relationalcache.limits;

import java.util.Arrays;
import java.util.List;

import org.apache.spark.SparkException;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.SQLExecution$;
import org.apache.spark.sql.execution.SparkPlan;

import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction0;

import relationalcache.Scala;

/**
 * What stands below the LIMIT at the root of a query. Where rows are collected, Spark takes them from one partition after
 * another, more at a time, until it has enough. Where they are iterated over, or it is asked whether there are any, it runs
 * all partitions and shuffles the first rows of each: here they are taken too, and what is iterated over is the rows that
 * `collect` returns.
 *
 * Executors need no class of ours: tasks are given the plan below in place of this node.
 *
 * Spark: org.apache.spark.sql.execution.CollectLimitExec.
 */
public final class TakenRowsExec extends SparkPlan {
    private static final long serialVersionUID = 1L;
    /** Rows that travel with a task. */
    private static final long MOST_BYTES = 8 << 20;

    private final SparkPlan child;
    private final int rows;

    /** Spark copies the node by this. */
    public TakenRowsExec(SparkPlan child, int rows) {
        this.child = child;
        this.rows = rows;
    }

    @Override
    public InternalRow[] executeCollect() {
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
        RDD<InternalRow> all = child.execute();
        InternalRow[] taken = all.getNumPartitions() <= 1 ? null : taken();
        if (taken == null || bytes(taken) > MOST_BYTES) {
            return all;
        }
        return sparkContext().parallelize(
            CollectionConverters.asScala(Arrays.asList(taken)).toSeq(), 1, ClassTag$.MODULE$.apply(InternalRow.class));
    }

    /** Null where they are more than the driver may be given. */
    private InternalRow[] taken() {
        try {
            return SQLExecution$.MODULE$.withSQLConfPropagated(session(), new AbstractFunction0<InternalRow[]>() {
                @Override
                public InternalRow[] apply() {
                    return child.executeTake(rows);
                }
            });
        } catch (Exception error) {
            if (error instanceof SparkException && String.valueOf(error.getMessage()).contains("maxResultSize")) {
                return null;
            }
            throw error;
        }
    }

    private static long bytes(InternalRow[] taken) {
        long found = 0;
        for (InternalRow row : taken) {
            found += ((UnsafeRow) row).getSizeInBytes();
        }
        return found;
    }

    private Object writeReplace() {
        return child;
    }

    @Override
    public Seq<Attribute> output() {
        return child.output();
    }

    @Override
    public Seq<SparkPlan> children() {
        return Scala.seq(List.of(child));
    }

    @Override
    public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> children) {
        return new TakenRowsExec(children.head(), rows);
    }

    @Override
    public String nodeName() {
        return "TakenRows";
    }

    @Override
    public int productArity() {
        return 2;
    }

    @Override
    public Object productElement(int number) {
        return number == 0 ? child : (Object) rows;
    }

    @Override
    public boolean canEqual(Object other) {
        return other instanceof TakenRowsExec;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof TakenRowsExec taken && taken.rows == rows && taken.child.equals(child);
    }

    @Override
    public int hashCode() {
        return 31 * child.hashCode() + rows;
    }
}
