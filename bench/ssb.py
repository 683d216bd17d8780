"""A Spark session with the tables and the cube of the Star Schema Benchmark, small by default, and
its queries with constants that nobody asked for before."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from string import Template

from pyspark.sql import SparkSession

import cachemgr
from cachemgr.demo.session import start_session
from cachemgr.demo.ssb_cube import CUBE_NAME, RECORD_PRESERVING_JOINS, cube_ddl
from cachemgr.demo.ssb_data import prepare
from cachemgr.demo.ssb_queries import QUERIES, SsbQuery

SCALE = 0.1
SEED = 42
# their sets have too many rows to be pinned without settings such as the demo's session has
_TOO_LARGE = ("Q3.4", "Q4.3")


@contextmanager
def ssb_session(scale: float, *, cube: bool, folder: Path | None = None) -> Iterator[SparkSession]:
    """An enabled session over the five tables, stopped at the end.

    Args:
        scale: SSB scale factor.
        cube: Whether the demo's cube is there, refreshed.
        folder: Where tables and caches go; one that is deleted at the end without it.
    """
    with tempfile.TemporaryDirectory() as name:
        place = folder or Path(name)
        spark = start_session(place)
        try:
            prepare(spark, place / "data", scale, SEED)
            if cube:
                for statement in (*RECORD_PRESERVING_JOINS, cube_ddl()):
                    spark.sql(statement)
                spark.sql(f"REFRESH RELATIONAL CACHE {CUBE_NAME}").collect()
            yield spark
        finally:
            cachemgr.disable(spark)
            spark.stop()


def held_queries() -> list[SsbQuery]:
    """Those that sets in memory answer whatever the settings."""
    return [query for query in QUERIES if query.name not in _TOO_LARGE]


def drawn(query: SsbQuery, numbers: random.Random) -> str:
    """The text of a query with a mixture of its parameters.

    Args:
        query: One of the thirteen.
        numbers: Draws them.
    """
    one = {name: numbers.choice(query.parameters)[name] for name in query.parameters[0]}
    together = [{"low", "high"}, {"few", "many"}, {"since", "until"}, {"region", "nation"}]
    for names in together:  # else most of the answers would be empty
        if names <= one.keys():
            one |= {k: v for k, v in numbers.choice(query.parameters).items() if k in names}
    return Template(query.template).substitute(one)
