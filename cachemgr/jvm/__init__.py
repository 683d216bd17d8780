"""The part of ours that runs in Spark's JVM: its Java sources, and the jar of them in
the wheel."""
