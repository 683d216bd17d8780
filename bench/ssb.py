"""A Spark session with the tables and the cube of the Star Schema Benchmark, small by default."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

import cachemgr
from cachemgr.demo.session import start_session
from cachemgr.demo.ssb_cube import CUBE_NAME, RECORD_PRESERVING_JOINS, cube_ddl
from cachemgr.demo.ssb_data import prepare

SCALE = 0.1
SEED = 42


@contextmanager
def ssb_session(scale: float, *, cube: bool) -> Iterator[SparkSession]:
    """An enabled session over the five tables, stopped at the end.

    Args:
        scale: SSB scale factor.
        cube: Whether the demo's cube is there, refreshed.
    """
    with tempfile.TemporaryDirectory() as name:
        spark = start_session(Path(name))
        try:
            prepare(spark, Path(name) / "data", scale, SEED)
            if cube:
                for statement in (*RECORD_PRESERVING_JOINS, cube_ddl()):
                    spark.sql(statement)
                spark.sql(f"REFRESH RELATIONAL CACHE {CUBE_NAME}").collect()
            yield spark
        finally:
            cachemgr.disable(spark)
            spark.stop()
