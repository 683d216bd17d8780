"""Processes that hold a Spark of ours: the shell, the one beside a driver, what `doctor` asks, and
what is known of a Spark that did not start."""
