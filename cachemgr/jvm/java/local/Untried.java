package relationalcache.local;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

import relationalcache.Scala;

/**
 * Queries whose evaluation raised an error or took more than it may a moment ago: those of the same shape, by the same
 * user, under the same settings are left to Spark for a while, so that nothing is computed in vain again and again.
 */
final class Untried {
    private static final long NANOS = 60_000_000_000L;
    private static final int MOST = 1_000;
    private static final Map<String, Long> UNTIL = new LinkedHashMap<>();

    private Untried() {
    }

    /** @param asker who asks under which settings */
    static void remember(String asker, LogicalPlan plan) {
        String key = key(asker, plan);
        synchronized (UNTIL) {
            UNTIL.remove(key); // the newest at the end
            UNTIL.put(key, Long.valueOf(System.nanoTime() + NANOS));
            if (UNTIL.size() > MOST) {
                UNTIL.remove(UNTIL.keySet().iterator().next());
            }
        }
    }

    /** Whether there are any at all, which is seldom so. */
    static boolean isEmpty() {
        long now = System.nanoTime();
        synchronized (UNTIL) {
            Iterator<Long> oldest = UNTIL.values().iterator();
            while (oldest.hasNext() && now - oldest.next().longValue() >= 0) {
                oldest.remove();
            }
            return UNTIL.isEmpty();
        }
    }

    static boolean has(String asker, LogicalPlan plan) {
        String key = key(asker, plan);
        synchronized (UNTIL) {
            return UNTIL.containsKey(key); // those of more than a minute ago are gone, see isEmpty
        }
    }

    /** A digest of who asks and of the operators and expressions of a plan, without its constants. */
    private static String key(String asker, LogicalPlan plan) {
        StringBuilder out = new StringBuilder(asker);
        shape(plan, out);
        try {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            return HexFormat.of().formatHex(digest.digest(out.toString().getBytes(StandardCharsets.UTF_8)));
        } catch (NoSuchAlgorithmException none) {
            throw new IllegalStateException(none); // each Java has it
        }
    }

    private static void shape(LogicalPlan plan, StringBuilder out) {
        out.append('\n').append(plan.nodeName()).append('(');
        for (Object expression : Scala.list(plan.expressions())) {
            shape((Expression) expression, out);
        }
        List<?> children = Scala.list(plan.children());
        if (children.isEmpty()) {
            out.append(Scala.list(plan.output()).size());
        }
        for (Object child : children) {
            shape((LogicalPlan) child, out);
        }
        out.append(')');
    }

    private static void shape(Expression expression, StringBuilder out) {
        out.append(' ').append(expression instanceof Attribute attribute ? attribute.name() : expression.nodeName());
        for (Object child : Scala.list(expression.children())) {
            out.append('(');
            shape((Expression) child, out);
            out.append(')');
        }
    }
}
