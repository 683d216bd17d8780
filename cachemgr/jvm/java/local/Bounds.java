package relationalcache.local;

/**
 * What one evaluation may take.
 *
 * @param rows held rows that are looked at, those of blocks that a filter passes over left out
 * @param groups groups of one aggregation, and rows of a result
 * @param bytes of the rows that are kept meanwhile and at the end, and of the strings that are made, about
 * @param atOnce so many evaluations at the same time, this one with them; 0 for four a processor, less where the results
 *     of so many might take more than an eighth of the heap
 */
public record Bounds(long rows, long groups, long bytes, int atOnce) {
    private static final int SHARE_OF_HEAP = 8;

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
        if (atOnce > 0) {
            return atOnce;
        }
        // A Spark job in place of a refused one costs the same processors ten times as much, so that few permits are no
        // protection: with one a processor a fifth of the hits of sixteen threads was refused.
        Runtime runtime = Runtime.getRuntime();
        long fit = runtime.maxMemory() / SHARE_OF_HEAP / Math.max(1, bytes);
        return (int) Math.max(2, Math.min(4L * runtime.availableProcessors(), fit));
    }
}
