"""The part of ours that runs in Spark's JVM: its Java sources, compiled when Spark starts."""
