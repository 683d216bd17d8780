package relationalcache;

import java.util.ArrayList;
import java.util.List;

import scala.Option;
import scala.collection.Iterator;

import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** Small bridges between Scala's collections and Java's, and JSON text. */
public final class Scala {
    public Scala() {
    }

    public static List list(Object iterable) {
        ArrayList out = new ArrayList();
        Iterator it = ((scala.collection.Iterable) iterable).iterator();
        while (it.hasNext()) {
            out.add(it.next());
        }
        return out;
    }

    public static scala.collection.immutable.Seq seq(List items) {
        scala.collection.immutable.Seq out =
            (scala.collection.immutable.Seq) scala.collection.immutable.Nil$.MODULE$;
        for (int i = items.size() - 1; i >= 0; i--) {
            out = new scala.collection.immutable.$colon$colon(
                items.get(i), (scala.collection.immutable.List) out);
        }
        return out;
    }

    /** The plan over other children; the plan itself where they are the ones that it has. */
    public static LogicalPlan over(LogicalPlan plan, List children) {
        return same(list(plan.children()), children) ? plan : (LogicalPlan) plan.withNewChildren(seq(children));
    }

    /** The expression over other children; the expression itself where they are the ones that it has. */
    public static Expression over(Expression expression, List children) {
        return same(list(expression.children()), children)
            ? expression : (Expression) expression.withNewChildren(seq(children));
    }

    private static boolean same(List left, List right) {
        for (int i = 0; i < left.size(); i++) {
            if (left.get(i) != right.get(i)) {
                return false;
            }
        }
        return true;
    }

    public static Option some(Object value) {
        return new scala.Some(value);
    }

    public static Option none() {
        return (Option) scala.None$.MODULE$;
    }

    public static Object orNull(Option option) {
        return option.isDefined() ? option.get() : null;
    }

    /** Appends `text` as a JSON string. */
    public static void quote(StringBuilder out, String text) {
        if (text == null) {
            out.append("null");
            return;
        }
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < 0x20 || (c >= 0xD800 && c <= 0xDFFF) || c == 0x2028 || c == 0x2029) {
                String hex = Integer.toHexString(c);
                out.append("\\u").append("0000".substring(hex.length())).append(hex);
            } else {
                out.append(c);
            }
        }
        out.append('"');
    }
}
