package relationalcache.local;

import java.util.ArrayList;
import java.util.List;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;

import relationalcache.Scala;

/** Expressions over rows by the number of their column, in place of attributes: copies that one evaluation owns. */
final class Bound {
    /** What an evaluation does not do; the plan stays as it is. */
    static final class Refused extends RuntimeException {
        Refused(String what) {
            super(what, null, false, false);
        }
    }

    private Bound() {
    }

    /** @throws Refused something in it is not evaluated here, or reads what `input` has not */
    static Expression to(Expression expression, List<?> input) {
        String refused = Allowed.refused(expression);
        if (refused != null) {
            throw new Refused(refused);
        }
        if (!expression.deterministic()) {
            throw new Refused("not deterministic");
        }
        return bound(expression, input);
    }

    static List<Expression> all(Object expressions, List<?> input) {
        List<Expression> found = new ArrayList<>();
        for (Object each : Scala.list(expressions)) {
            found.add(to((Expression) each, input));
        }
        return found;
    }

    private static Expression bound(Expression expression, List<?> input) {
        if (expression instanceof Attribute attribute) {
            for (int i = 0; i < input.size(); i++) {
                Attribute given = (Attribute) input.get(i);
                if (given.exprId().equals(attribute.exprId())) {
                    return new BoundReference(i, given.dataType(), given.nullable());
                }
            }
            throw new Refused("column " + attribute.name() + " from elsewhere");
        }
        List<Object> children = new ArrayList<>();
        for (Object child : Scala.list(expression.children())) {
            children.add(bound((Expression) child, input));
        }
        return Scala.over(expression, children);
    }
}
