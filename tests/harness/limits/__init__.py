"""What a LIMIT reads: generated tables beside plain Spark, and the positions of docs/limit.md."""
