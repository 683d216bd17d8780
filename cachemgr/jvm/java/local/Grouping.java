package relationalcache.local;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.InterpretedUnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.DeclarativeAggregate;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;

import relationalcache.Scala;

/**
 * Groups rows and adds them up by the very expressions that Spark's aggregates are made of (DeclarativeAggregate), in the
 * order in which the rows come.
 */
final class Grouping {
    private static final InternalRow NO_ROW = new GenericInternalRow(new Object[0]);

    private final List<?> input;
    private final List<Expression> keys;
    private final boolean isGlobal;
    private final List<?> grouped;
    private final List<AggregateExpression> calls = new ArrayList<>();
    private final List<Step> steps = new ArrayList<>();
    private final List<Expression> results = new ArrayList<>();
    private int width = 0;
    private boolean growing = false;

    /** One aggregate of them. */
    private record Step(
        int start, List<Expression> initial, List<Expression> update, Expression filter, Expression result) {
    }

    /** @throws Bound.Refused something of it is not evaluated here */
    Grouping(Aggregate plan, List<?> input, Spent spent) {
        this.input = input;
        this.grouped = Scala.list(plan.groupingExpressions());
        this.isGlobal = grouped.isEmpty();
        this.keys = Bound.all(plan.groupingExpressions(), input);
        for (Expression key : keys) {
            if (!HeldTable.isKey(key.dataType())) {
                throw new Bound.Refused("GROUP BY " + key.dataType().sql());
            }
        }
        for (Object output : Scala.list(plan.aggregateExpressions())) {
            results.add(Bound.to(replaced((Expression) output), List.of()));
        }
        prepare();
        keys.forEach(spent::evaluates);
        steps.forEach(step -> step.update.forEach(spent::evaluates));
        steps.stream().filter(step -> step.filter != null).forEach(step -> spent.evaluates(step.filter));
    }

    /** An output over the row of the keys and of the aggregates' results. */
    private Expression replaced(Expression expression) {
        for (int i = 0; i < grouped.size(); i++) {
            Expression key = (Expression) grouped.get(i);
            if (key.semanticEquals(expression)) {
                return new BoundReference(i, key.dataType(), key.nullable());
            }
        }
        if (expression instanceof AggregateExpression call) {
            String refused = Allowed.refused(call);
            if (refused != null) {
                throw new Bound.Refused(refused);
            }
            return new BoundReference(grouped.size() + numberOf(call), call.dataType(), call.nullable());
        }
        if (expression instanceof Attribute attribute) {
            throw new Bound.Refused("column " + attribute.name() + " beside groups");
        }
        List<Object> children = new ArrayList<>();
        for (Object child : Scala.list(expression.children())) {
            children.add(replaced((Expression) child));
        }
        return Scala.over(expression, children);
    }

    private int numberOf(AggregateExpression call) {
        for (int i = 0; i < calls.size(); i++) {
            if (calls.get(i).semanticEquals(call)) {
                return i;
            }
        }
        calls.add(call);
        return calls.size() - 1;
    }

    private void prepare() {
        List<Object> buffers = new ArrayList<>();
        for (AggregateExpression call : calls) {
            buffers.addAll(Scala.list(call.aggregateFunction().aggBufferAttributes()));
        }
        List<Object> both = new ArrayList<>(buffers);
        both.addAll(input);
        for (AggregateExpression call : calls) {
            DeclarativeAggregate function = (DeclarativeAggregate) call.aggregateFunction();
            List<Expression> update = Bound.all(function.updateExpressions(), both);
            Expression filter = call.filter().isEmpty() ? null : Bound.to((Expression) call.filter().get(), input);
            steps.add(new Step(
                width, Bound.all(function.initialValues(), List.of()), update, filter,
                Bound.to(function.evaluateExpression(), buffers)));
            width += update.size();
            growing |= update.stream().anyMatch(each -> HeldTable.isBinaryString(each.dataType()));
        }
    }

    /** The groups of `rows`, in the order in which they are met; one row of none where there are no keys. */
    Rows of(Rows rows, Spent spent) {
        Map<UnsafeRow, Object[]> groups = new LinkedHashMap<>();
        UnsafeProjection key = InterpretedUnsafeProjection.createProjection(seq(keys));
        Object[] only = isGlobal ? started() : null;
        JoinedRow joined = new JoinedRow();
        for (InternalRow row = rows.next(); row != null; row = rows.next()) {
            Object[] buffer = only;
            if (!isGlobal) {
                UnsafeRow found = key.apply(row);
                buffer = groups.get(found);
                if (buffer == null) {
                    buffer = started();
                    groups.put(found.copy(), buffer);
                    spent.keeps(groups.size(), found.getSizeInBytes() + Spent.size(buffer));
                }
            }
            long before = growing ? Spent.size(buffer) : 0;
            update(buffer, joined, row);
            if (growing) {
                spent.takes(Spent.size(buffer) - before);
            }
        }
        if (isGlobal) {
            return Rows.over(List.of(result(null, only)));
        }
        Iterator<Map.Entry<UnsafeRow, Object[]>> all = groups.entrySet().iterator();
        return new Rows() {
            @Override
            InternalRow next() {
                if (!all.hasNext()) {
                    return null;
                }
                Map.Entry<UnsafeRow, Object[]> group = all.next();
                return result(group.getKey(), group.getValue());
            }
        };
    }

    private Object[] started() {
        Object[] buffer = new Object[width];
        for (Step step : steps) {
            for (int i = 0; i < step.initial.size(); i++) {
                buffer[step.start + i] = step.initial.get(i).eval(NO_ROW);
            }
        }
        return buffer;
    }

    private void update(Object[] buffer, JoinedRow joined, InternalRow row) {
        joined.apply(new GenericInternalRow(buffer), row);
        for (Step step : steps) {
            if (step.filter == null || Boolean.TRUE.equals(step.filter.eval(row))) {
                Object[] values = new Object[step.update.size()]; // each is computed of what stood there before
                for (int i = 0; i < values.length; i++) {
                    values[i] = step.update.get(i).eval(joined);
                }
                System.arraycopy(values, 0, buffer, step.start, values.length);
            }
        }
    }

    private InternalRow result(UnsafeRow group, Object[] buffer) {
        InternalRow all = new GenericInternalRow(buffer);
        Object[] computed = new Object[keys.size() + steps.size()];
        for (int i = 0; i < keys.size(); i++) {
            computed[i] = group.isNullAt(i) ? null : group.get(i, keys.get(i).dataType());
        }
        for (int i = 0; i < steps.size(); i++) {
            computed[keys.size() + i] = steps.get(i).result.eval(all);
        }
        InternalRow row = new GenericInternalRow(computed);
        Object[] values = new Object[results.size()];
        for (int i = 0; i < values.length; i++) {
            values[i] = results.get(i).eval(row);
        }
        return new GenericInternalRow(values);
    }

    @SuppressWarnings("unchecked")
    private static scala.collection.immutable.Seq<Expression> seq(List<Expression> items) {
        return (scala.collection.immutable.Seq<Expression>) Scala.seq(items);
    }
}
