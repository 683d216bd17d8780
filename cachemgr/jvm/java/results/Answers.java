package relationalcache.results;

import java.util.Set;

import org.apache.spark.SparkContext;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.CommandResult;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Offset;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Which statements of Thrift clients are answered by files. */
final class Answers {
    static final Logger LOG = LoggerFactory.getLogger("relationalcache.Results");
    private static final String PREFIX = "spark.cachemgr.results.";
    static final String LOCATION = PREFIX + "location";
    private static final String TO_FILES = PREFIX + "toFiles";
    private static final String PARTITION_BYTES = PREFIX + "partitionBytes";
    private static final String DEFAULT_PARTITION_BYTES = "4m";
    private static final long FEWEST_BYTES = 64 << 10;
    private static final long MOST_BYTES = 1 << 30;
    /** What a Thrift server is given is no rows that Spark would have to compute. */
    private static final Set<Class<?>> AT_HAND = Set.of(CommandResult.class, LocalRelation.class);

    private Answers() {
    }

    static boolean areOn(SparkSession spark) {
        String value = spark.sessionState().conf().getConfString(TO_FILES, "false");
        return "true".equalsIgnoreCase(value.trim());
    }

    /** For a query that this thread is about to plan; null where it is to run as ever. */
    static Answer begin(SparkSession spark, LogicalPlan query) {
        try {
            SparkContext context = spark.sparkContext();
            SQLConf conf = spark.sessionState().conf();
            boolean atHand = AT_HAND.contains(query.getClass()) || query instanceof Command || FewRows.proves(query);
            if (atHand || query.isStreaming() || !FileTypes.holdAll(query) || mayLoseItsOrder(query, conf)) {
                return null;
            }
            String statement = Operation.planned(context);
            Place place = statement == null ? null : Place.of(context);
            return place == null ? null : new Answer(spark, statement, place, partitionBytes(conf));
        } catch (RuntimeException | LinkageError error) {
            LOG.warn("a query of a Thrift client runs without files of its rows: {}", String.valueOf(error));
            return null;
        }
    }

    private static long partitionBytes(SQLConf conf) {
        String value = conf.getConfString(PARTITION_BYTES, DEFAULT_PARTITION_BYTES);
        try {
            return Math.max(FEWEST_BYTES, Math.min(MOST_BYTES, JavaUtils.byteStringAsBytes(value.trim())));
        } catch (NumberFormatException wrong) {
            LOG.warn("{} is '{}', which is not a size as 4m: {} counts", PARTITION_BYTES, value, DEFAULT_PARTITION_BYTES);
            return JavaUtils.byteStringAsBytes(DEFAULT_PARTITION_BYTES);
        }
    }

    /**
     * Spark takes the first rows of sorted ones, or passes over some, by a shuffle of which it does not say in which order
     * its parts come, unless it sorts them there. A server that collects them does not shuffle.
     */
    private static boolean mayLoseItsOrder(LogicalPlan query, SQLConf conf) {
        LogicalPlan below = query;
        boolean cuts = false;
        boolean passesOver = false;
        while (below instanceof Project || below instanceof GlobalLimit || below instanceof LocalLimit || below instanceof Offset) {
            cuts |= !(below instanceof Project);
            passesOver |= below instanceof Offset;
            below = below.children().head();
        }
        if (!cuts || !(below instanceof Sort)) {
            return false;
        }
        boolean sortsThere = query.maxRows().isDefined()
            && ((Number) query.maxRows().get()).longValue() < conf.topKSortFallbackThreshold();
        return passesOver || !sortsThere;
    }
}
