package relationalcache.sidecar;

import scala.Option;

/** Why a statement of ours was refused or failed, as an error of Spark's: the condition is our code. */
public final class StatementError extends ConditionError {
    private static final long serialVersionUID = 1L;

    StatementError(String code, String message, int line, int column) {
        super(
            "[" + code + "] " + message, position(line), position(line > 0 ? column - 1 : 0), code, "RC000");
    }

    /** To be thrown by what has no position in a text. Spark's own methods throw these without saying so. */
    public static RuntimeException of(String code, String message) {
        return raised(new StatementError(code, message, 0, 0));
    }

    static RuntimeException raised(StatementError error) {
        return StatementError.<RuntimeException>unchecked(error);
    }

    @SuppressWarnings("unchecked")
    private static <E extends Throwable> RuntimeException unchecked(Throwable error) throws E {
        throw (E) error;
    }

    private static Option<Object> position(int number) {
        return number > 0 ? Option.apply((Object) number) : Option.empty();
    }
}
