"""Results of statements: files that are computed once, and read piece by piece.

Nothing here needs Spark. A result is a folder with the Parquet files of one job, whose columns are
called `c0`, `c1`, …, and a manifest that names the files, their order and the columns as the query
has them. The manifest is written last: a folder without one is none.
"""
