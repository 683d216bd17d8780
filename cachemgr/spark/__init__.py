"""Everything of ours that runs on Spark: the Catalyst rule, tables and versions, sessions and pins."""
