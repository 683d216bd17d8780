package relationalcache;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.apache.spark.sql.SparkSessionExtensions;
import org.slf4j.LoggerFactory;

import relationalcache.sidecar.Parsers;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * For `spark.sql.extensions`: each session of the application hits, and takes our statements, with nothing else in its
 * configuration. A Python process beside the JVM decides, see `sidecar.Sidecar`.
 */
public final class Extension extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
    private static final Pattern BUILT_FOR = Pattern.compile("\"spark\":\\s*\"([^\"]+)\"");

    @Override
    public BoxedUnit apply(SparkSessionExtensions extensions) {
        String refusal = refusal();
        if (refusal != null) {
            LoggerFactory.getLogger("relationalcache.Extension").warn(refusal);
            return BoxedUnit.UNIT;
        }
        Hook.extend(extensions);
        extensions.injectParser(new Parsers());
        return BoxedUnit.UNIT;
    }

    /** Why nothing is done in this Spark; null if it is the one that the jar was built for. */
    private static String refusal() {
        String here = release(org.apache.spark.package$.MODULE$.SPARK_VERSION());
        try (InputStream build = Extension.class.getResourceAsStream("/relationalcache/build.json")) {
            Matcher told = BUILT_FOR.matcher(new String(build.readAllBytes(), StandardCharsets.UTF_8));
            String wanted = told.find() ? told.group(1) : "another one";
            if (!here.equals(wanted)) {
                return "relational caches are off: this is Spark " + here + ", and this jar is built for Spark " + wanted
                    + "; put the jar of the release for your Spark on spark.driver.extraClassPath (`cachemgr jar`)";
            }
            Class.forName("org.apache.spark.sql.delta.DeltaLog", false, Extension.class.getClassLoader());
            return null;
        } catch (ClassNotFoundException | NoClassDefFoundError error) {
            return "relational caches are off: Delta Lake is not on the class path that has their jar; put both on "
                + "spark.driver.extraClassPath, or both into $SPARK_HOME/jars (`cachemgr jar --conf` prints the lines)";
        } catch (IOException error) {
            return "relational caches are off: their jar cannot be read (" + error.getMessage() + ")";
        }
    }

    /** A version without what vendors add, as in 4.2.0-amzn-1. */
    private static String release(String version) {
        int dash = version.indexOf('-');
        return dash < 0 ? version : version.substring(0, dash);
    }
}
