package relationalcache;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.KnownNotNull;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;

/**
 * Parts of a node's outputs that are replaced by columns, while what stands above them stays as it is: the very
 * expressions of Spark's, their names and ids. `Grafter` puts this over the rows that hold the columns.
 */
public final class Split {
    private final List outputs;
    private final int[][] places;

    /** `places`: for each part the number of an output, then child numbers ("0.0,1.0.2"). */
    public Split(LogicalPlan node, String places) {
        this.outputs = Scala.list(node instanceof Aggregate
            ? ((Aggregate) node).aggregateExpressions() : ((Project) node).projectList());
        String[] each = places.split(",");
        this.places = new int[each.length][];
        for (int i = 0; i < each.length; i++) {
            this.places[i] = steps(each[i]);
        }
    }

    /** The parts, in order: expressions. */
    public List parts() {
        ArrayList parts = new ArrayList();
        for (int i = 0; i < places.length; i++) {
            Expression part = (Expression) outputs.get(places[i][0]);
            for (int k = 1; k < places[i].length; k++) {
                part = (Expression) part.children().apply(places[i][k]);
            }
            parts.add(part);
        }
        return parts;
    }

    /** A name for each column that stands for a part: an alias with an id of its own. */
    public List columns(List given) {
        List parts = parts();
        ArrayList columns = new ArrayList();
        for (int i = 0; i < parts.size(); i++) {
            Object part = parts.get(i);
            columns.add(new Alias(
                (Attribute) given.get(i), part instanceof Attribute ? ((Attribute) part).name() : "part" + i,
                NamedExpression$.MODULE$.newExprId(), Scala.seq(new ArrayList()),
                part instanceof Attribute ? Scala.some(((Attribute) part).metadata()) : Scala.none(),
                Scala.seq(new ArrayList())));
        }
        return columns;
    }

    /** The outputs over rows that hold the columns. */
    public Project over(List columns, LogicalPlan rows) {
        List parts = parts();
        ArrayList result = new ArrayList(outputs);
        for (int i = 0; i < places.length; i++) {
            Expression column = (Expression) ((Alias) columns.get(i)).toAttribute();
            if (column.nullable() && !((Expression) parts.get(i)).nullable()) {
                column = new KnownNotNull(column); // a struct of it keeps its type
            }
            Expression whole = (Expression) result.get(places[i][0]);
            result.set(places[i][0], places[i].length == 1
                ? renamed((Attribute) whole, column) : put(whole, places[i], 1, column));
        }
        Project project = new Project(Scala.seq(result), rows);
        check(result, columns);
        return project;
    }

    private static Expression renamed(Attribute a, Expression column) {
        return new Alias(
            column, a.name(), a.exprId(), a.qualifier(), Scala.some(a.metadata()), Scala.seq(new ArrayList()));
    }

    private static Expression put(Expression expression, int[] place, int depth, Expression column) {
        if (depth == place.length) {
            return column;
        }
        List children = Scala.list(expression.children());
        children.set(place[depth], put((Expression) children.get(place[depth]), place, depth + 1, column));
        return Scala.over(expression, children);
    }

    /** Nothing that is left may be of the node that is gone. */
    private void check(List result, List columns) {
        Set ids = new HashSet();
        for (int i = 0; i < columns.size(); i++) {
            ids.add(((Alias) columns.get(i)).exprId());
        }
        for (int i = 0; i < result.size(); i++) {
            Expression output = (Expression) result.get(i);
            Expression before = (Expression) outputs.get(i);
            List references = Scala.list(output.references());
            for (int k = 0; k < references.size(); k++) {
                if (!ids.contains(((Attribute) references.get(k)).exprId())) {
                    throw new IllegalStateException("output " + before.sql() + " reads more than its parts");
                }
            }
            if (aggregates(output) || !output.dataType().equals(before.dataType())) {
                throw new IllegalStateException("output " + before.sql() + " cannot be computed from its parts");
            }
        }
    }

    private static boolean aggregates(Expression expression) {
        if (expression instanceof AggregateExpression) {
            return true;
        }
        List children = Scala.list(expression.children());
        for (int i = 0; i < children.size(); i++) {
            if (aggregates((Expression) children.get(i))) {
                return true;
            }
        }
        return false;
    }

    /** Child numbers ("0.1"). */
    public static int[] steps(String path) {
        String[] parts = path.length() == 0 ? new String[0] : path.split("\\.");
        int[] steps = new int[parts.length];
        for (int i = 0; i < parts.length; i++) {
            steps[i] = Integer.parseInt(parts[i]);
        }
        return steps;
    }
}
