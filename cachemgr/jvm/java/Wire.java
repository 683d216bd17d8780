package relationalcache;

import java.lang.reflect.Proxy;
import java.net.SocketException;
import java.util.function.BiFunction;

import py4j.ClientServerConnection;
import py4j.Gateway;
import py4j.Py4JPythonClientPerThread;

/**
 * The connection by which a thread of the JVM asks Python. py4j writes what is longer than its buffer of 8 KB in two
 * parts, and TCP holds the second back until Python's side confirms the first, which it does after 40 ms (Nagle's
 * algorithm and delayed acknowledgements): a plan of many columns would wait that long for nothing.
 */
public final class Wire {
    private static final int BUFFER = 8000;
    private static volatile Gateway gateway = null;

    public Wire() {
    }

    public static void use(Gateway ours) {
        gateway = ours;
    }

    /** As `decider.apply`, and nothing waits. A decider of Java's own sees to that itself. */
    public static Object ask(BiFunction decider, Object request, String question) {
        if (!Proxy.isProxyClass(decider.getClass())) {
            return decider.apply(request, question);
        }
        if (!sendAtOnce() && question.length() > BUFFER) {
            decider.apply(null, ""); // opens the thread's connection
            sendAtOnce();
        }
        return decider.apply(request, question);
    }

    /** False where this thread has no connection yet. */
    private static boolean sendAtOnce() {
        Gateway ours = gateway;
        Object client = ours == null ? null : ours.getCallbackClient();
        if (!(client instanceof Py4JPythonClientPerThread)) {
            return true; // PYSPARK_PIN_THREAD=false: a pool of connections, which it keeps to itself
        }
        ClientServerConnection connection = ((Py4JPythonClientPerThread) client).getPerThreadConnection();
        if (connection == null) {
            return false;
        }
        try {
            connection.getSocket().setTcpNoDelay(true);
        } catch (SocketException e) {
            // closed: what is sent next says so, and connects anew
        }
        return true;
    }
}
