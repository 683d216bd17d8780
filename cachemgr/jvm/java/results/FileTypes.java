package relationalcache.results;

import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DayTimeIntervalType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.types.YearMonthIntervalType;

import relationalcache.Scala;

/** The types whose values come out of a Parquet file as they went in. What is not listed is held by no file. */
final class FileTypes {
    private static final List<Class<?>> EXACT = List.of(
        BooleanType.class, ByteType.class, ShortType.class, IntegerType.class, LongType.class, FloatType.class,
        DoubleType.class, DecimalType.class, StringType.class, BinaryType.class, DateType.class, TimestampType.class,
        TimestampNTZType.class, DayTimeIntervalType.class, YearMonthIntervalType.class);

    private FileTypes() {
    }

    static boolean holdAll(LogicalPlan query) {
        List<?> output = Scala.list(query.output());
        for (Object column : output) {
            if (!hold(((Attribute) column).dataType())) {
                return false;
            }
        }
        return !output.isEmpty();
    }

    private static boolean hold(DataType type) {
        if (type instanceof ArrayType) {
            return hold(((ArrayType) type).elementType());
        }
        if (type instanceof MapType) {
            return hold(((MapType) type).keyType()) && hold(((MapType) type).valueType());
        }
        if (type instanceof StructType) {
            return holdFields(((StructType) type).fields());
        }
        for (Class<?> exact : EXACT) {
            if (exact.isInstance(type)) {
                return true;
            }
        }
        return false;
    }

    /** A Parquet file needs a field, and Spark finds fields by their names, whose case may not count. */
    private static boolean holdFields(StructField[] fields) {
        Set<String> names = new HashSet<>();
        for (StructField field : fields) {
            String name = field.name();
            if (name.isEmpty() || !names.add(name.toLowerCase(Locale.ROOT)) || !hold(field.dataType())) {
                return false;
            }
        }
        return fields.length > 0;
    }
}
