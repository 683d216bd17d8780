"""What a refresh by the change alone costs, as a share of a full one of the same cache: after
appends, after updates in one partition and after scattered ones.

The fact of the Star Schema Benchmark in 31 partitions; caches of few groups, of many, and a cube.
Each change is made anew for each round, once for all caches; the first round warms up, and the
median of the others counts. Appended rows are read from the first version of the fact: read from
the grown one, each append would come in more files than the one before. After each kind of change a
full refresh is measured, over the table as the changes have left it (small files make both dearer),
and the table is put back. What is known so far is printed meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Final

from pyspark.sql import Row, SparkSession

from bench.results import Figure, table
from bench.ssb import SCALE, ssb_session

_ROUNDS: Final = 3
# The shares are of full refreshes of so many seconds: of a shorter one what each refresh costs,
# however little changed, is too much, and it may only not be dearer.
_LONG: Final = 20.0
_NEVER_MORE: Final = 1.1
FACT: Final = "facts"
CACHES: Final = {
    "few groups": "SELECT d_year, lo_discount, lo_quantity, SUM(lo_revenue) AS r, COUNT(*) AS n "
    f"FROM {FACT} JOIN dates ON lo_orderdate = d_datekey "
    "GROUP BY d_year, lo_discount, lo_quantity",
    "many groups": "SELECT lo_custkey, lo_orderdate, SUM(lo_revenue) AS r, COUNT(*) AS n "
    f"FROM {FACT} GROUP BY lo_custkey, lo_orderdate",
    "a cube": "SELECT d_year, d_yearmonthnum, lo_discount, lo_quantity, SUM(lo_revenue) AS r, "
    f"COUNT(*) AS n FROM {FACT} JOIN dates ON lo_orderdate = d_datekey GROUP BY GROUPING SETS ("
    "(d_year, lo_discount, lo_quantity), (d_yearmonthnum, lo_discount), (d_year), ())",
}


@dataclass(frozen=True)
class _Change:
    """What is done to the fact, and the share of a long full refresh that may be taken."""

    name: str
    sql: str
    most: float


_SOME: Final = "pmod(hash(lo_orderkey, lo_linenumber, {round}), {one_in}) = 0"
_APPEND: Final = f"INSERT INTO {FACT} SELECT * FROM {FACT} VERSION AS OF {{first}}"
_CHANGES: Final = (
    _Change(
        "a 0.1 % append",
        f"{_APPEND} WHERE {_SOME.replace('{one_in}', '1000')}",
        0.10,
    ),
    _Change(
        "a 1 % append",
        f"{_APPEND} WHERE {_SOME.replace('{one_in}', '100')}",
        0.10,
    ),
    _Change(
        "1 % updated in one partition",
        # one day of the month, of 31
        f"UPDATE {FACT} SET lo_revenue = lo_revenue + 1 WHERE part = {{round}} + 1 AND "
        f"{_SOME.replace('{one_in}', '3')}",
        0.15,
    ),
    _Change(
        "1 % updated all over",
        f"UPDATE {FACT} SET lo_revenue = lo_revenue + 1 WHERE {_SOME.replace('{one_in}', '100')}",
        0.25,
    ),
)


def run(scale: float = SCALE) -> list[Figure]:
    """All figures of this module.

    Args:
        scale: SSB scale factor.
    """
    with ssb_session(scale, cube=False) as spark:
        create_fact(spark)
        names = {f"i{number}": name for number, name in enumerate(CACHES)}
        for cache, name in names.items():
            spark.sql(f"CREATE RELATIONAL CACHE {cache} AS {CACHES[name]}")
            _refresh(spark, cache, "FULL")
        first = fact_version(spark)
        return [figure for change in _CHANGES for figure in _changed(spark, names, change, first)]


def create_fact(spark: SparkSession) -> None:
    """The fact: that of SSB, with a feed, in 31 partitions: the days of the month, as dates are
    numbers like 19980731.

    Args:
        spark: A session with the tables of SSB.
    """
    spark.sql(
        f"CREATE TABLE {FACT} USING delta PARTITIONED BY (part) "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', "
        "'delta.enableChangeDataFeed' = 'true') AS "
        "SELECT *, CAST(pmod(lo_orderdate, 50) AS INT) AS part FROM lineorder"
    )


def _changed(
    spark: SparkSession, names: Mapping[str, str], change: _Change, first: int
) -> list[Figure]:
    """What all caches cost after one kind of change: it is made once a round for all of them."""
    taken: dict[str, list[tuple[float, Row]]] = {cache: [] for cache in names}
    for number in range(_ROUNDS + 1):
        spark.sql(change.sql.format(round=number, first=first))
        for cache in names:
            taken[cache].append(_refresh(spark, cache, "INCREMENTAL"))
    spark.sql(change.sql.format(round=_ROUNDS + 1, first=first))
    figures = []
    for cache, name in names.items():
        chosen = _refresh(spark, cache, "AUTO")[1]["mode"]
        full = median(_refresh(spark, cache, "FULL")[0] for _ in range(_ROUNDS))
        ways = sorted({str(row["mode"]) for _, row in taken[cache]})
        told = f"{name} after {change.name} ({'/'.join(ways)}; AUTO takes {chosen})"
        share = median(seconds for seconds, _ in taken[cache][1:]) / full
        figures += [
            Figure(f"seconds of a full refresh of {name} after {change.name}", full, "s"),
            Figure(
                f"a refresh of {told}", share, "x", change.most if full >= _LONG else _NEVER_MORE
            ),
        ]
    print(table(figures), flush=True)
    spark.sql(f"RESTORE TABLE {FACT} TO VERSION AS OF {first}")
    for cache in names:
        _refresh(spark, cache, "FULL")
    return figures


def fact_version(spark: SparkSession) -> int:
    """The newest version of the fact.

    Args:
        spark: A session with it.
    """
    (row,) = spark.sql(f"DESCRIBE HISTORY {FACT} LIMIT 1").collect()
    return int(row["version"])


def _refresh(spark: SparkSession, cache: str, mode: str) -> tuple[float, Row]:
    start = time.perf_counter()
    row = spark.sql(f"REFRESH RELATIONAL CACHE {cache} {mode}").collect()[0]
    return time.perf_counter() - start, row
