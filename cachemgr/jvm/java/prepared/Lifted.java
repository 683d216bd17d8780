package relationalcache.prepared;

import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StringType$;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A plan document, its constants taken out, as `matcher.catalyst.templates` does it: documents that differ in constants
 * of the same types alone have the same shape.
 *
 * @param shape what stands between the constants, with their types
 * @param constants as written
 * @param types of each constant
 */
record Lifted(String shape, List<String> constants, List<String> types) {
    private static final String BEGIN = "[\"l\",";
    private static final List<String> TYPES =
        List.of("string", "int", "bigint", "smallint", "tinyint", "date", "timestamp", "timestamp_ntz");
    private static final ObjectMapper JSON = new ObjectMapper();

    /** A quote in a string is written with a backslash, so that `BEGIN` is never part of one. */
    static Lifted of(String document) {
        StringBuilder shape = new StringBuilder(document.length());
        List<String> constants = new ArrayList<>();
        List<String> types = new ArrayList<>();
        int copied = 0;
        for (int at = document.indexOf(BEGIN); at >= 0; at = document.indexOf(BEGIN, at + 1)) {
            int start = at + BEGIN.length();
            int end = endOfConstant(document, start);
            String type = end < 0 ? null : typeAt(document, end);
            if (type != null) {
                shape.append(document, copied, at).append('\0').append(type).append('\0');
                constants.add(document.substring(start, end));
                types.add(type);
                copied = end + type.length() + 4;
            }
        }
        return new Lifted(shape.append(document, copied, document.length()).toString(), constants, types);
    }

    /** Behind a whole number or a string; -1 where there is none. */
    private static int endOfConstant(String text, int start) {
        int at = start;
        if (text.charAt(at) == '"') {
            for (at++; text.charAt(at) != '"'; at++) {
                at += text.charAt(at) == '\\' ? 1 : 0;
            }
            return at + 1;
        }
        at += text.charAt(at) == '-' ? 1 : 0;
        int digits = at;
        while (text.charAt(at) >= '0' && text.charAt(at) <= '9') {
            at++;
        }
        return at > digits ? at : -1;
    }

    private static String typeAt(String text, int end) {
        for (String type : TYPES) {
            if (text.startsWith(",\"" + type + "\"]", end)) {
                return type;
            }
        }
        return null;
    }

    /** The constant of a place as Spark has it. */
    Literal literal(int place) {
        return literal(types.get(place), constants.get(place));
    }

    /** A constant of a type; `written` as in a document. */
    static Literal literal(String type, String written) {
        return switch (type) {
            case "string" -> new Literal(UTF8String.fromString(unquoted(written)), StringType$.MODULE$);
            case "int" -> new Literal(Integer.valueOf(written), DataTypes.IntegerType);
            case "bigint" -> new Literal(Long.valueOf(written), DataTypes.LongType);
            case "date" -> new Literal(Integer.valueOf(written), DataTypes.DateType);
            case "timestamp" -> new Literal(Long.valueOf(written), DataTypes.TimestampType);
            case "timestamp_ntz" -> new Literal(Long.valueOf(written), DataTypes.TimestampNTZType);
            default -> throw new IllegalArgumentException("constants of " + type + " belong to the shape");
        };
    }

    private static String unquoted(String written) {
        if (written.indexOf('\\') < 0) {
            return written.substring(1, written.length() - 1);
        }
        try {
            return JSON.readValue(written, String.class);
        } catch (JsonProcessingException broken) {
            throw new UncheckedIOException(broken);
        }
    }
}
