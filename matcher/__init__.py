"""Plans in, rewrites out. Pure: no I/O, no Spark, no database, no clock."""
