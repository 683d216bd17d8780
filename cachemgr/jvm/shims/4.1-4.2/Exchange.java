package relationalcache;

import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.exchange.REPARTITION_BY_NUM$;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;

/** A shuffle that was asked for, and whose partitions are left as they are. */
final class Exchange {
    private Exchange() {
    }

    static SparkPlan of(Partitioning partitioning, SparkPlan child) {
        return new ShuffleExchangeExec(partitioning, child, REPARTITION_BY_NUM$.MODULE$, Scala.none());
    }
}
