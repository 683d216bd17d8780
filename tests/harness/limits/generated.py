"""Tables of all kinds that a LIMIT over Delta may meet, by seed, and LIMITs over them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from random import Random
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tests.harness.limits.reads import is_part, iterated

_STATISTICS = "spark.databricks.delta.stats.collect"
_QUERIES = 3
_LARGEST = 2**31 - 1 - 5000  # and an OFFSET: Spark refuses more


def wrong_of(session: SparkSession, plain: SparkSession, name: str, seed: int) -> list[str]:
    """Make a table, ask for some of its rows, and drop it; what came out wrong.

    Args:
        session: With relational caches.
        plain: The same without; both are in one schema.
        name: Of a table that does not exist.
        seed: Of the table and of its queries.
    """
    numbers = Random(seed)
    try:
        _make(plain, name, numbers)
        return [told for _ in range(_QUERIES) for told in _asked(session, plain, name, numbers)]
    finally:
        plain.sql(f"DROP TABLE IF EXISTS {name}")


def _make(plain: SparkSession, name: str, numbers: Random) -> None:
    has_vectors = numbers.random() < 0.6
    partitioned = "PARTITIONED BY (p) " if numbers.random() < 0.4 else ""
    properties = [f"'delta.enableDeletionVectors' = '{str(has_vectors).lower()}'"]
    if numbers.random() < 0.3:
        properties.append("'delta.columnMapping.mode' = 'name'")
    plain.sql(
        f"CREATE TABLE {name} (a BIGINT, p INT, s STRING) USING delta {partitioned}"
        f"TBLPROPERTIES ({', '.join(properties)})"
    )
    first = 0
    for _ in range(numbers.randint(0, 3)):
        size = numbers.choice((0, 1, 5, 40, 300))
        with _without_statistics(plain, numbers.random() < 0.5):
            rows = plain.range(first, first + size).selectExpr(
                "IF(id % 5 = 0, NULL, id) AS a",
                "CAST(IF(id % 7 = 3, NULL, id % 3) AS INT) AS p",
                "CONCAT('s', id % 11) AS s",
            )
            files = numbers.choice((1, 2, 6))
            rows.repartition(files).write.format("delta").mode("append").saveAsTable(name)
        first += size
    if first and numbers.random() < 0.7:
        which = ("a % 3 = 1", "a IS NULL", "a < 40", "p = 1", "s <> 's1'", "TRUE OR a = 1")
        with _without_statistics(plain, numbers.random() < 0.5):
            plain.sql(f"DELETE FROM {name} WHERE {numbers.choice(which)}")


@contextlib.contextmanager
def _without_statistics(plain: SparkSession, without: bool) -> Iterator[None]:
    plain.conf.set(_STATISTICS, str(not without).lower())
    try:
        yield
    finally:
        plain.conf.unset(_STATISTICS)


def _asked(session: SparkSession, plain: SparkSession, name: str, numbers: Random) -> Iterator[str]:
    limit = numbers.choice((0, 1, 3, 10, 60, 250, 1000, _LARGEST))
    offset = numbers.choice((0, 0, 0, 2, 50, 5000))
    columns = numbers.choice(("*", "a", "p", "a + 1 AS b, s", "s, p"))
    where = numbers.choice(("", "", "", " WHERE p = 1", " WHERE p IS NULL", " WHERE a % 2 = 0"))
    whole = f"SELECT {columns} FROM {name}{where}"
    some = f"{whole} LIMIT {limit}{f' OFFSET {offset}' if offset else ''}"
    all_rows = plain.sql(whole).collect()
    expected = max(0, min(limit, len(all_rows) - offset))
    for told, rows in (
        ("collected", session.sql(some).collect()),
        ("iterated", iterated(session.sql(some))),
        ("as Java does", _java(session.sql(some))),
    ):
        if len(rows) != expected or (told != "as Java does" and not is_part(rows, all_rows)):
            yield f"{some}, {told}: {len(rows)} rows, {expected} expected"
    if session.sql(some).isEmpty() is not (expected == 0):
        yield f"{some}: isEmpty"
    (counted,) = session.sql(f"SELECT COUNT(*) AS n, COUNT(1) AS m FROM ({some})").collect()
    if counted.n != expected:
        yield f"COUNT(*) over {some}: {counted.n}, {expected} expected"
    once = session.sql(f"SELECT * FROM ({some}) UNION ALL SELECT * FROM ({some})").collect()
    if len(once) != 2 * expected:
        yield f"{some}, twice: {len(once)}, {2 * expected} expected"


def _java(frame: DataFrame) -> list[Any]:
    """How a Thrift server collects incrementally."""
    rows: Any = frame._jdf.toLocalIterator()
    found = []
    while rows.hasNext():
        found.append(rows.next())
    return found
