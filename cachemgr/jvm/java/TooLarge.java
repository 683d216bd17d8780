package relationalcache;

/** A plan that is too long or too deep to be written: reading it would cost more than a decision may. */
final class TooLarge extends RuntimeException {
    static final int MOST_NODES = 5000;
    static final int MOST_DEPTH = 150;
    static final int MOST_CHARS = 1500000;

    TooLarge(String what) {
        super(what, null, false, false);
    }

    /** Refuses what is nested too deeply or has become too long. */
    static void check(String what, int depth, int length) {
        if (depth > MOST_DEPTH) {
            throw new TooLarge("its " + what + " are nested more than " + MOST_DEPTH + " deep");
        }
        if (length > MOST_CHARS) {
            throw new TooLarge("its plan takes more than " + MOST_CHARS + " characters to write down");
        }
    }
}
