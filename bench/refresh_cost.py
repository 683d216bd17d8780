"""What a full refresh costs beside the CTAS of the same SELECT: Spark jobs, and seconds as a ratio;
and what the least costs: a refresh after 100 appended rows, and one after which nothing changed.

Full ones are of a table of 100 rows, of a plain aggregate over the fact of the Star Schema
Benchmark, and of three cubes over it: of four sets; of 64, whose finest has about as many groups as
the fact has rows; and of 32 with some thousand groups. One row is appended before each round; both
sides run by turns, the first rounds warm Spark up, and the median of the others counts.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median
from typing import Any

from pyspark.sql import SparkSession

from bench.results import Figure
from bench.ssb import SCALE, ssb_session
from cachemgr.config.session_settings import MODE

_WARM_UP, _ROUNDS = 3, 5
_MOST_JOBS, _MOST_SECONDS = 5.0, 1.0
# what a refresh by the change, and one without a change, may take
_MOST_JOBS_BY_CHANGE, _MOST_SECONDS_BY_CHANGE, _MOST_SECONDS_UNCHANGED = 6.0, 1.5, 0.2


@dataclass(frozen=True)
class _Case:
    name: str
    select: str
    append: str
    partitioned: str = ""
    most_of_ctas: float | None = None


# The cache's own is hidden; last, as Delta wants a partition column where a table is replaced.
_NUMBER = ", GROUPING_ID() AS gid"
_FACT = "lineorder JOIN dates ON lo_orderdate = d_datekey"
_APPEND = "INSERT INTO lineorder SELECT * FROM lineorder LIMIT 1"
_CASES = (
    _Case(
        "100 rows",
        "SELECT g, SUM(v) AS s, COUNT(*) AS n FROM tiny GROUP BY g",
        "INSERT INTO tiny VALUES (1, 1)",
    ),
    _Case(
        "a plain aggregate",
        "SELECT d_year, lo_discount, lo_quantity, SUM(lo_revenue) AS r, COUNT(*) AS n "
        f"FROM {_FACT} GROUP BY d_year, lo_discount, lo_quantity",
        _APPEND,
        most_of_ctas=1.1,
    ),
    _Case(
        "a cube",
        "SELECT d_year, d_yearmonthnum, lo_discount, lo_quantity, "
        f"SUM(lo_revenue) AS r, COUNT(*) AS n{_NUMBER} FROM {_FACT} GROUP BY GROUPING SETS ("
        "(d_year, lo_discount, lo_quantity), (d_yearmonthnum, lo_discount), (d_year), ())",
        _APPEND,
        "PARTITIONED BY (gid) ",
        1.05,
    ),
    _Case(
        "a deep cube",
        "SELECT d_yearmonthnum, lo_discount, lo_quantity, lo_shipmode, lo_orderpriority, lo_tax, "
        f"SUM(lo_revenue) AS r, COUNT(*) AS n{_NUMBER} FROM {_FACT} GROUP BY CUBE "
        "(d_yearmonthnum, lo_discount, lo_quantity, lo_shipmode, lo_orderpriority, lo_tax)",
        _APPEND,
        "PARTITIONED BY (gid) ",
        0.5,
    ),
    _Case(
        "a deep cube of few groups",
        "SELECT d_year, lo_discount, lo_shipmode, lo_orderpriority, lo_tax, "
        f"SUM(lo_revenue) AS r, COUNT(*) AS n{_NUMBER} FROM {_FACT} GROUP BY CUBE "
        "(d_year, lo_discount, lo_shipmode, lo_orderpriority, lo_tax)",
        _APPEND,
        "PARTITIONED BY (gid) ",
        0.5,
    ),
)
# of which the least that a refresh costs is measured as well
_OF_LEAST = (1, 2)


def run(scale: float = SCALE) -> list[Figure]:
    """All figures of this module.

    Args:
        scale: SSB scale factor.
    """
    with ssb_session(scale, cube=False) as spark:
        spark.sql("CREATE TABLE tiny USING delta AS SELECT id % 7 AS g, id AS v FROM range(100)")
        figures = [_case(spark, case, number) for number, case in enumerate(_CASES)]
        figures += [_least(spark, _CASES[number], number) for number in _OF_LEAST]
        return [figure for found in figures for figure in found]


def _least(spark: SparkSession, case: _Case, number: int) -> list[Figure]:
    rounds = []
    for _ in range(_WARM_UP + _ROUNDS):
        spark.sql(case.append.replace("LIMIT 1", "LIMIT 100"))
        by_change = _measured(spark, f"REFRESH RELATIONAL CACHE c{number} INCREMENTAL")
        rounds.append((by_change, _measured(spark, f"REFRESH RELATIONAL CACHE c{number}")))
    (jobs, seconds), (idle_jobs, idle_seconds) = (
        (float(max(side[0] for side in sides)), median(side[1] for side in sides))
        for sides in zip(*rounds[_WARM_UP:], strict=True)
    )
    told = f"{case.name} after 100 appended rows"
    return [
        Figure(f"jobs of a refresh of {told}", jobs, "jobs", _MOST_JOBS_BY_CHANGE),
        Figure(f"seconds of a refresh of {told}", seconds, "s", _MOST_SECONDS_BY_CHANGE),
        Figure(f"jobs of a refresh of {case.name} without a change", idle_jobs, "jobs", 0.0),
        Figure(
            f"seconds of a refresh of {case.name} without a change",
            idle_seconds,
            "s",
            _MOST_SECONDS_UNCHANGED,
        ),
    ]


def _case(spark: SparkSession, case: _Case, number: int) -> list[Figure]:
    stored = case.select.replace(_NUMBER, "")
    spark.sql(f"CREATE RELATIONAL CACHE c{number} AS {stored}")
    ctas = f"CREATE OR REPLACE TABLE x{number} USING delta {case.partitioned}AS {case.select}"
    refresh = f"REFRESH RELATIONAL CACHE c{number} FULL"
    spark.sql(refresh)
    rounds = []
    for _ in range(_WARM_UP + _ROUNDS):
        spark.sql(case.append)
        spark.conf.set(MODE, "off")  # or it would be computed from the cache
        beside = _measured(spark, ctas)
        spark.conf.unset(MODE)
        rounds.append((beside, _measured(spark, refresh)))
    rounds = rounds[_WARM_UP:]
    theirs, own = (
        (max(side[0] for side in sides), median(side[1] for side in sides))
        for sides in zip(*rounds, strict=True)
    )
    small = number == 0
    most_jobs, most_seconds = (_MOST_JOBS, _MOST_SECONDS) if small else (None, None)
    return [
        Figure(f"jobs of a refresh of {case.name}", own[0], "jobs", most_jobs),
        Figure(f"jobs of the CTAS of {case.name}", theirs[0], "jobs"),
        Figure(f"seconds of a refresh of {case.name}", own[1], "s", most_seconds),
        Figure(
            f"a refresh of {case.name} against its CTAS",
            median(mine[1] / other[1] for other, mine in rounds),
            "x",
            case.most_of_ctas,
        ),
    ]


def _measured(spark: SparkSession, text: str) -> tuple[int, float]:
    """Jobs and seconds."""
    context: Any = spark.sparkContext._jsc.sc()
    before = _newest_job(context)
    start = time.perf_counter()
    spark.sql(text)
    seconds = time.perf_counter() - start
    return _newest_job(context) - before, seconds


def _newest_job(context: Any) -> int:
    context.listenerBus().waitUntilEmpty()
    jobs = context.statusStore().jobsList(None)  # newest first
    return int(jobs.apply(0).jobId()) if jobs.size() else -1
