"""Everything of ours that runs on Spark: the Catalyst rule, tables, versions, sessions, pins."""
