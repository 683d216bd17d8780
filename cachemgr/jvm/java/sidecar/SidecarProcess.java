package relationalcache.sidecar;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

import org.apache.spark.SparkConf;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import py4j.ClientServer;

/** One Python process beside the driver, and the gateway by which it reaches this JVM: loopback, with a secret. */
final class SidecarProcess {
    static final int START_SECONDS = 60;
    private static final Logger LOG = LoggerFactory.getLogger("relationalcache.Sidecar");
    private static final String PYTHON = "spark.cachemgr.sidecar.python";
    /** They make PySpark something else than the classic one in this JVM. */
    private static final List<String> NOT_OURS = List.of(
        "SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_API_MODE", "SPARK_TESTING",
        "PYSPARK_SUBMIT_ARGS", "PYTHONSTARTUP");
    private static final int WORDS = 20;

    private final Process process;
    private final ClientServer gateway;
    private final long start = System.nanoTime();
    private final ArrayDeque<String> words = new ArrayDeque<>();

    private SidecarProcess(Process process, ClientServer gateway) {
        this.process = process;
        this.gateway = gateway;
    }

    static SidecarProcess start(SparkConf conf) throws IOException {
        byte[] random = new byte[32];
        new SecureRandom().nextBytes(random);
        String secret = HexFormat.of().formatHex(random);
        ClientServer gateway = new ClientServer.ClientServerBuilder().authToken(secret).javaPort(0)
            .javaAddress(InetAddress.getLoopbackAddress()).build();
        gateway.startServer();
        ProcessBuilder builder = new ProcessBuilder(python(conf), "-m", "cachemgr", "sidecar").redirectErrorStream(true);
        Map<String, String> environment = builder.environment();
        environment.keySet().removeAll(NOT_OURS);
        environment.put("PYSPARK_GATEWAY_PORT", String.valueOf(gateway.getJavaServer().getListeningPort()));
        environment.put("PYSPARK_GATEWAY_SECRET", secret);
        environment.put("PYSPARK_PIN_THREAD", "true");
        environment.put("PYTHONUNBUFFERED", "1");
        environment.put("PYTHONPATH", path(environment.get("PYTHONPATH")));
        try {
            SidecarProcess started = new SidecarProcess(builder.start(), gateway);
            Sidecar.clean("relational-cache-sidecar-log", started::log).start();
            return started;
        } catch (IOException error) {
            gateway.shutdown();
            throw new IOException(error.getMessage() + "; set " + PYTHON + " to a Python that has relational-cache[spark]");
        }
    }

    /** The one that is named, else the one that the jar is installed for, else PySpark's. */
    private static String python(SparkConf conf) {
        String named = conf.get(PYTHON, "").trim();
        if (!named.isEmpty()) {
            return named;
        }
        Path packages = packages();
        Path library = packages == null ? null : packages.getParent();
        if (library != null && packages.endsWith("site-packages")) {
            Path beside = library.getParent().resolveSibling("bin").resolve(library.getFileName());
            if (Files.isExecutable(beside)) {
                return beside.toString();
            }
        }
        String theirs = conf.get("spark.pyspark.python", System.getenv().getOrDefault("PYSPARK_PYTHON", ""));
        return theirs.isBlank() ? "python3" : theirs;
    }

    /** Where the Python package lies that the jar is a part of; null where the jar was copied away from it. */
    private static Path packages() {
        try {
            Path jar = Path.of(SidecarProcess.class.getProtectionDomain().getCodeSource().getLocation().toURI());
            Path cachemgr = jar.getParent().getParent();
            return Files.exists(cachemgr.resolve("__init__.py")) ? cachemgr.getParent() : null;
        } catch (URISyntaxException | NullPointerException error) {
            return null;
        }
    }

    /** Ours first; Spark's own PySpark last, for a Python that has none. */
    private static String path(String theirs) throws IOException {
        List<String> found = new ArrayList<>();
        Path packages = packages();
        if (packages != null && !packages.endsWith("site-packages")) {
            found.add(packages.toString());
        }
        if (theirs != null && !theirs.isEmpty()) {
            found.add(theirs);
        }
        String home = System.getenv("SPARK_HOME");
        if (home != null) {
            File[] zips = new File(home, "python/lib").listFiles((folder, name) -> name.endsWith(".zip"));
            for (File zip : zips == null ? new File[0] : zips) {
                found.add(zip.toString());
            }
        }
        return String.join(File.pathSeparator, found);
    }

    private void log() {
        try (BufferedReader lines = new BufferedReader(
            new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                LOG.info("{}", line);
                synchronized (words) {
                    words.add(line);
                    if (words.size() > WORDS) {
                        words.remove();
                    }
                }
            }
        } catch (IOException ended) {
            // so did the process
        }
    }

    String lastWords() {
        synchronized (words) {
            return words.isEmpty() ? "none" : words.getLast();
        }
    }

    /** Whether it ends within so many milliseconds. */
    boolean ended(long millis) throws InterruptedException {
        return process.waitFor(millis, TimeUnit.MILLISECONDS);
    }

    int exitCode() {
        return process.exitValue();
    }

    long ageMillis() {
        return TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start);
    }

    boolean isLate() {
        return ageMillis() > TimeUnit.SECONDS.toMillis(START_SECONDS);
    }

    void kill() {
        process.destroyForcibly();
        gateway.shutdown();
    }
}
