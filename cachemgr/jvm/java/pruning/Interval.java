package relationalcache.pruning;

/**
 * Values between two bounds, which belong to it: years, days since 1970, or microseconds. A bound that is null is none.
 */
record Interval(Long low, Long high) {
    static final Interval ALL = new Interval(null, null);

    static Interval of(long low, long high) {
        return new Interval(low, high);
    }

    boolean isAll() {
        return low == null && high == null;
    }

    /** Whether it is one value. */
    boolean isOne() {
        return low != null && low.equals(high);
    }

    Interval and(Interval other) {
        return new Interval(
            low == null ? other.low : other.low == null ? low : Long.valueOf(Math.max(low, other.low)),
            high == null ? other.high : other.high == null ? high : Long.valueOf(Math.min(high, other.high)));
    }

    /** The smallest that holds both. */
    Interval or(Interval other) {
        return new Interval(
            low == null || other.low == null ? null : Long.valueOf(Math.min(low, other.low)),
            high == null || other.high == null ? null : Long.valueOf(Math.max(high, other.high)));
    }
}
