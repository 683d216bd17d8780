package relationalcache.local;

/**
 * What one evaluation may take.
 *
 * @param rows held rows that are looked at, those of blocks that a filter passes over left out
 * @param groups groups of one aggregation, and rows of a result
 * @param bytes of the rows that are kept meanwhile and at the end, and of the strings that are made, about
 * @param atOnce so many evaluations at the same time, this one with them; 0 for half of the processors, two at least
 */
public record Bounds(long rows, long groups, long bytes, int atOnce) {
    /** Evaluation gives up: the query runs as it would without it. */
    static final class Exceeded extends RuntimeException {
        Exceeded(String what) {
            super(what, null, false, false);
        }
    }

    /** Of four numbers, with commas between. */
    public static Bounds read(String text) {
        String[] parts = text.split(",");
        return new Bounds(
            Long.parseLong(parts[0]), Long.parseLong(parts[1]), Long.parseLong(parts[2]), Integer.parseInt(parts[3]));
    }

    int most() {
        return atOnce > 0 ? atOnce : Math.max(2, Runtime.getRuntime().availableProcessors() / 2);
    }
}
