package relationalcache;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.apache.spark.sql.SparkSessionExtensions;
import org.slf4j.LoggerFactory;

import relationalcache.results.ToFilesStrategy;
import relationalcache.sidecar.Parsers;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * For `spark.sql.extensions`: each session of the application hits, and takes our statements, with nothing else in its
 * configuration. A Python process beside the JVM decides, see `sidecar.Sidecar`.
 */
public final class Extension extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
    @Override
    public BoxedUnit apply(SparkSessionExtensions extensions) {
        String refusal = refusal();
        if (refusal != null) {
            LoggerFactory.getLogger("relationalcache.Extension").warn(refusal);
            return BoxedUnit.UNIT;
        }
        Hook.extend(extensions);
        extensions.injectParser(new Parsers());
        extensions.injectPlannerStrategy(new ToFilesStrategy.Builder());
        return BoxedUnit.UNIT;
    }

    /** Why nothing is done in this Spark; null if it is of the minor that the jar was built for. */
    private static String refusal() {
        String here = org.apache.spark.package$.MODULE$.SPARK_VERSION();
        try (InputStream build = Extension.class.getResourceAsStream("/relationalcache/build.json")) {
            String told = new String(build.readAllBytes(), StandardCharsets.UTF_8);
            List wanted = read(told, "spark");
            if (!wanted.contains(minor(here))) {
                List minors = read(told, "minors");
                return "relational caches are off: this is Spark " + here + ", and this jar is for Spark "
                    + String.join(", ", wanted) + "; " + (minors.contains(minor(here))
                        ? "put relational-cache-" + minor(here) + ".jar on spark.driver.extraClassPath in its place "
                            + "(`cachemgr jar --spark " + minor(here) + "`)"
                        : "this release serves Spark " + String.join(", ", minors)
                            + ": take it off the class path, or start one of these");
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

    /** The versions at a key of what a jar was built from: a string, or a list of them. */
    private static List read(String build, String key) {
        List found = new ArrayList();
        Matcher value = Pattern.compile("\"" + key + "\":\\s*(\"[^\"]*\"|\\[[^\\]]*\\])").matcher(build);
        if (value.find()) {
            Matcher each = Pattern.compile("\"([^\"]+)\"").matcher(value.group(1));
            while (each.find()) {
                found.add(each.group(1));
            }
        }
        return found;
    }

    /** 4.2 of 4.2.1 and of what vendors make of it, as 4.2.0-amzn-1. */
    private static String minor(String version) {
        String[] parts = version.split("[.-]", 3);
        return parts.length < 2 ? version : parts[0] + "." + parts[1];
    }
}
