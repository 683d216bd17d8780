package relationalcache;

import java.util.HashMap;
import java.util.List;
import java.util.TreeSet;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Exists;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Generator;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.InSubquery;
import org.apache.spark.sql.catalyst.expressions.ListQuery;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.OuterReference;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.expressions.ScalarSubquery;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.catalyst.expressions.WindowExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Expressions as nested JSON lists. What each class means is decided in Python; here only shapes are told apart:
 * ["a", id, name, type, nullable] attribute, ["l", value, type] literal, ["as", id, name, e] alias,
 * ["g", class, prettyName, args, type, nullable, distinct, filter, params] aggregate, ["x", code, text] what no block may hold, ["x", code, text, args] what may stand above one,
 * ["q", "SUBQUERY", text, values, plan, conditions] EXISTS (values is null) or IN with a query, in a filter,
 * ["f", class, prettyName, args, type, nullable, params] all else.
 * Ids are numbers in the order of writing, so that the same query asked again is the same text but for its literals.
 */
public final class ExprWriter {
    private final StringBuilder out;
    private final Plans plans;
    private final HashMap ids = new HashMap();
    private boolean inFilter = false;
    private int depth = 0;

    /** Writes the plans of subqueries. */
    public interface Plans {
        void write(LogicalPlan plan);
    }

    public ExprWriter(StringBuilder out) {
        this(out, null);
    }

    /** `plans` writes the queries of EXISTS and IN in what `filter` is given. */
    public ExprWriter(StringBuilder out, Plans plans) {
        this.out = out;
        this.plans = plans;
    }

    /** A filter's condition: where EXISTS and IN may become joins, so that their queries are written as well. */
    public void filter(Expression condition) {
        boolean before = inFilter;
        inFilter = plans != null;
        write(condition);
        inFilter = before;
    }

    public void list(String prefix, Object expressions) {
        out.append(prefix).append('[');
        List items = Scala.list(expressions);
        for (int i = 0; i < items.size(); i++) {
            if (i > 0) {
                out.append(',');
            }
            write((Expression) items.get(i));
        }
        out.append(']');
    }

    /** The numbers of attributes, -1 for null; nothing where there are none. */
    public void ids(String prefix, List found) {
        if (found.isEmpty()) {
            return;
        }
        TreeSet numbers = new TreeSet();
        for (int i = 0; i < found.size(); i++) {
            numbers.add(found.get(i) == null ? Integer.valueOf(-1) : number((ExprId) found.get(i)));
        }
        out.append(prefix).append(numbers);
    }

    public void write(Expression e) {
        TooLarge.check("expressions", ++depth, out.length());
        writeAt(e);
        depth--;
    }

    private void writeAt(Expression e) {
        if (e instanceof AttributeReference) {
            if (((AttributeReference) e).metadata().contains("__metadata_col")
                || ((AttributeReference) e).metadata().contains("__file_source_metadata_col")) {
                refuse("METADATA_COLUMN", ((AttributeReference) e).name());
            } else {
                attribute((Attribute) e);
            }
        } else if (e instanceof Literal) {
            literal((Literal) e);
        } else if (e instanceof Alias) {
            Alias alias = (Alias) e;
            out.append("[\"as\",").append(number(alias.exprId())).append(',');
            Scala.quote(out, alias.name());
            out.append(',');
            write(alias.child());
            out.append(']');
        } else if (e instanceof AggregateExpression) {
            aggregate((AggregateExpression) e);
        } else if (inFilter && e instanceof InSubquery) {
            InSubquery in = (InSubquery) e;
            ListQuery query = in.query();
            subquery(e, in.values(), query.plan(), query.joinCond());
        } else if (inFilter && e instanceof Exists) {
            subquery(e, null, ((Exists) e).plan(), ((Exists) e).joinCond());
        } else {
            String problem = problem(e);
            if (problem != null) {
                refuse(problem, e);
            } else if (e instanceof InSet) {
                inSet((InSet) e);
            } else if (e instanceof GetStructField && isUnique((GetStructField) e)) {
                field((GetStructField) e);
            } else {
                call(e);
            }
        }
    }

    /** The construct that makes `e` no part of any block, or null. Children are looked at on their own. */
    public static String problem(Expression e) {
        if (e instanceof PythonUDF || e instanceof UserDefinedExpression) {
            return "UDF";
        }
        if (e instanceof PlanExpression) {
            return "SUBQUERY";
        }
        if (e instanceof OuterReference) {
            return "OUTER_REFERENCE";
        }
        if (e instanceof org.apache.spark.sql.catalyst.expressions.StructFieldsOperation) {
            return "STRUCT_FIELD"; // it has no type of its own
        }
        if (e instanceof WindowExpression) {
            return "WINDOW";
        }
        if (e instanceof Generator) {
            return "GENERATOR";
        }
        String name = e.getClass().getName();
        if (name.endsWith("UDF") || name.endsWith("UDAF") || name.contains(".objects.") && !replaced(name)) {
            return "UDF";
        }
        return nonDeterministic(e) ? "NON_DETERMINISTIC" : null;
    }

    /**
     * The part of `e` whose value depends on where a row stands, not on what is in it: rand(0), an id, the file read.
     * Null if there is none. Aggregates such as first() take any row; a subquery is a plan of its own.
     */
    public static Expression placed(Expression e) {
        if (e.deterministic() || e instanceof PlanExpression) {
            return null;
        }
        if (!(e instanceof AggregateFunction) && nonDeterministic(e)) {
            return e;
        }
        List children = Scala.list(e.children());
        for (int i = 0; i < children.size(); i++) {
            Expression found = placed((Expression) children.get(i));
            if (found != null) {
                return found;
            }
        }
        return null;
    }

    /** True if `e` itself, and not just something below it, may give another value for the same input. */
    private static boolean nonDeterministic(Expression e) {
        if (e.deterministic()) {
            return false;
        }
        List children = Scala.list(e.children());
        for (int i = 0; i < children.size(); i++) {
            if (!((Expression) children.get(i)).deterministic()) {
                return false;
            }
        }
        return true;
    }

    /** StaticInvoke and Invoke are what many of Spark's own functions become. */
    private static boolean replaced(String name) {
        return name.endsWith(".StaticInvoke") || name.endsWith(".Invoke");
    }

    /** The conditions are those that Spark has pulled out of the query, about columns of it and of the query around it. */
    private void subquery(Expression e, Object values, LogicalPlan plan, Object conditions) {
        out.append("[\"q\",\"SUBQUERY\",");
        Scala.quote(out, shortened(e.sql()));
        if (values == null) {
            out.append(",null");
        } else {
            list(",", values);
        }
        out.append(',');
        inFilter = false; // of that plan its own filters alone
        plans.write(plan);
        inFilter = true;
        list(",", conditions);
        out.append(']');
    }

    public static String shortened(String text) {
        return text.length() > 200 ? text.substring(0, 200) : text;
    }

    private void refuse(String code, String text) {
        refused(code, text);
        out.append(']');
    }

    /** Where it may stand above rows of ours, what is below it is written as well. */
    private void refuse(String code, Expression e) {
        refused(code, e.sql());
        boolean query = e instanceof ScalarSubquery && e.children().isEmpty();
        if (query || e instanceof UserDefinedExpression && !(e instanceof Generator) && !(e instanceof AggregateFunction)) {
            list(",", e.children());
        }
        out.append(']');
    }

    private void refused(String code, String text) {
        out.append("[\"x\",\"").append(code).append("\",");
        Scala.quote(out, shortened(text));
    }

    public void attribute(Attribute a) {
        out.append("[\"a\",").append(number(a.exprId())).append(',');
        Scala.quote(out, a.name());
        out.append(',');
        type(a.dataType());
        out.append(a.nullable() ? ",1]" : ",0]");
    }

    private Integer number(ExprId id) {
        Integer known = (Integer) ids.get(id);
        if (known == null) {
            known = Integer.valueOf(ids.size());
            ids.put(id, known);
        }
        return known;
    }

    private void aggregate(AggregateExpression e) {
        Expression function = (Expression) e.aggregateFunction();
        String problem = problem(function);
        // first() and the like: any value that Spark itself may return is right, so no reason to refuse a query.
        problem = "NON_DETERMINISTIC".equals(problem) ? null : problem;
        if (problem != null) {
            refuse(problem, e.sql());
            return;
        }
        out.append("[\"g\",");
        Scala.quote(out, simpleName(function));
        out.append(',');
        Scala.quote(out, function.prettyName());
        list(",", function.children());
        out.append(',');
        type(function.dataType());
        out.append(function.nullable() ? ",1" : ",0").append(e.isDistinct() ? ",1," : ",0,");
        if (e.filter().isDefined()) {
            write((Expression) e.filter().get());
        } else {
            out.append("null");
        }
        params(function);
        out.append(']');
    }

    private void call(Expression e) {
        out.append("[\"f\",");
        Scala.quote(out, simpleName(e));
        out.append(',');
        Scala.quote(out, e.prettyName());
        list(",", e.children());
        out.append(',');
        type(e.dataType());
        out.append(e.nullable() ? ",1" : ",0");
        params(e);
        out.append(']');
    }

    /** SQL finds a field by its name in any case. */
    private static boolean isUnique(GetStructField e) {
        String name = e.childSchema().fields()[e.ordinal()].name();
        int found = 0;
        for (int i = 0; i < e.childSchema().size(); i++) {
            found += e.childSchema().fields()[i].name().equalsIgnoreCase(name) ? 1 : 0;
        }
        return found == 1;
    }

    private void field(GetStructField e) {
        out.append("[\"f\",\"Field\",\"field\",[");
        write(e.child());
        out.append("],");
        type(e.dataType());
        out.append(e.nullable() ? ",1,[" : ",0,[");
        Scala.quote(out, e.childSchema().fields()[e.ordinal()].name());
        out.append("]]");
    }

    private void inSet(InSet e) {
        out.append("[\"f\",\"In\",\"in\",[");
        write(e.child());
        scala.collection.Iterator values = e.hset().iterator();
        while (values.hasNext()) {
            out.append(',');
            literal(new Literal(values.next(), e.child().dataType()));
        }
        out.append("],\"boolean\",").append(e.nullable() ? "1" : "0").append(",[]]");
    }

    /** The arguments of a node that are not expressions, as text. */
    private void params(Expression e) {
        out.append(",[");
        boolean first = true;
        if (e instanceof scala.Product) {
            scala.Product product = (scala.Product) e;
            for (int i = 0; i < product.productArity(); i++) {
                Object part = product.productElement(i);
                if (isExpression(part) || part instanceof DataType && part.equals(e.dataType())) {
                    continue;
                }
                if (e instanceof Cast && part instanceof scala.Option && !usesTimeZone((Cast) e)) {
                    continue;
                }
                if (!first) {
                    out.append(',');
                }
                first = false;
                Scala.quote(out, text(part));
            }
        }
        out.append(']');
    }

    /** A struct, array or map as text needs no zone by Spark's rule, yet its times are written in it. */
    private static boolean usesTimeZone(Cast e) {
        return e.needsTimeZone() || hasNestedTime(e.child().dataType()) || hasNestedTime(e.dataType());
    }

    private static boolean hasNestedTime(DataType type) {
        return !(type instanceof TimestampType) && type.existsRecursively(part -> part instanceof TimestampType);
    }

    private static String text(Object part) {
        if (part instanceof Class) {
            return ((Class) part).getName();
        }
        return String.valueOf(part);
    }

    private static boolean isExpression(Object part) {
        if (part instanceof Expression) {
            return true;
        }
        if (part instanceof scala.Option) {
            scala.Option option = (scala.Option) part;
            return option.isDefined() && isExpression(option.get());
        }
        if (part instanceof scala.collection.Seq) {
            scala.collection.Seq seq = (scala.collection.Seq) part;
            return seq.isEmpty() || isExpression(seq.head());
        }
        if (part instanceof scala.Tuple2) {
            return isExpression(((scala.Tuple2) part)._1());
        }
        return false;
    }

    private void literal(Literal l) {
        Object value = l.value();
        DataType type = l.dataType();
        boolean plain = value == null || value instanceof Boolean || value instanceof Number
            || value instanceof UTF8String && ((UTF8String) value).isValid() // else its text is another one's
            || value instanceof org.apache.spark.sql.types.Decimal
            || type instanceof BinaryType;
        if (value instanceof InternalRow && type instanceof StructType) {
            struct((InternalRow) value, (StructType) type);
            return;
        }
        if (!plain) {
            // Arrays, maps, calendar intervals and bytes that are no text: comparable by what is written, never rendered.
            out.append("[\"f\",\"Literal\",\"literal\",[],");
            type(type);
            out.append(",0,[");
            Scala.quote(out, value instanceof UTF8String ? hex(((UTF8String) value).getBytes()) : l.sql());
            out.append("]]");
            return;
        }
        out.append("[\"l\",");
        if (value == null || value instanceof Boolean) {
            out.append(value);
        } else if (value instanceof Float || value instanceof Double) {
            out.append("{\"f\":");
            Scala.quote(out, value.toString());
            out.append('}');
        } else if (value instanceof org.apache.spark.sql.types.Decimal) {
            out.append("{\"d\":");
            Scala.quote(out, ((org.apache.spark.sql.types.Decimal) value).toJavaBigDecimal().toPlainString());
            out.append('}');
        } else if (value instanceof Number) {
            out.append(((Number) value).longValue());
        } else if (type instanceof BinaryType) {
            out.append("{\"b\":");
            Scala.quote(out, hex((byte[]) value));
            out.append('}');
        } else {
            Scala.quote(out, value.toString());
        }
        out.append(',');
        type(type);
        out.append(']');
    }

    /** A constant struct as the CreateNamedStruct of its fields, which it was before it was worked out. */
    private void struct(InternalRow row, StructType type) {
        out.append("[\"f\",\"CreateNamedStruct\",\"named_struct\",[");
        for (int i = 0; i < type.size(); i++) {
            DataType kind = type.fields()[i].dataType();
            if (i > 0) {
                out.append(',');
            }
            out.append("[\"l\",");
            Scala.quote(out, type.fields()[i].name());
            out.append(",\"string\"],");
            literal(new Literal(row.isNullAt(i) ? null : row.get(i, kind), kind));
        }
        out.append("],");
        type(type);
        out.append(",0,[]]");
    }

    private void type(DataType type) {
        // The catalog spelling leaves a collation out, which decides what is equal.
        Scala.quote(out, type instanceof StringType ? type.typeName() : type.catalogString());
    }

    private static String simpleName(Object node) {
        String name = node.getClass().getName();
        // Another package's class keeps its whole name: it may be called like one of Spark's and mean something else.
        if (name.startsWith("org.apache.spark.sql.catalyst.expressions.")) {
            name = name.substring(name.lastIndexOf('.') + 1);
        }
        return name.endsWith("$") ? name.substring(0, name.length() - 1) : name;
    }

    private static String hex(byte[] bytes) {
        StringBuilder text = new StringBuilder(bytes.length * 2);
        for (int i = 0; i < bytes.length; i++) {
            text.append(Character.forDigit((bytes[i] >> 4) & 15, 16)).append(Character.forDigit(bytes[i] & 15, 16));
        }
        return text.toString();
    }
}
