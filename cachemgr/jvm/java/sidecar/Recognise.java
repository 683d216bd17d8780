package relationalcache.sidecar;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.regex.Pattern;

/** Whether a text is ours, by the expression of `cachemgr/ddl/recognise.py`, which the jar brings along. */
final class Recognise {
    private static final Pattern OURS = Pattern.compile(
        expression(), Pattern.CASE_INSENSITIVE | Pattern.UNICODE_CASE | Pattern.UNICODE_CHARACTER_CLASS);

    private Recognise() {
    }

    static boolean isOurs(String text) {
        return OURS.matcher(text).lookingAt();
    }

    private static String expression() {
        try (InputStream found = Recognise.class.getResourceAsStream("/relationalcache/recognise.txt")) {
            return new String(found.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
