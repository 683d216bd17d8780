"""A table in two parts, in Spark: random rows with all that makes a merge go wrong."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from matcher.model.ir import Block, MatchOptions
from matcher.sql.expressions.types import TextSettings
from matcher.sql.reader import parse_query
from matcher.sql.schema import Schema
from tests.matcher.spark_cases import QUICK

FACTS = (
    "k INT, g STRING, d DATE, at TIMESTAMP, x BIGINT NOT NULL, y BIGINT, i INT, "
    "s SMALLINT NOT NULL, p DECIMAL(9,2), w DECIMAL(28,4), r DOUBLE, b BOOLEAN, huge BIGINT"
)
DIMS = "k INT NOT NULL, name STRING, size INT"
TABLES = f"CREATE TABLE facts ({FACTS}); CREATE TABLE dims ({DIMS});"
Row = tuple[Any, ...]


def sessions(spark: Any, ansi: bool) -> Any:
    """A session of its own with settings for small tables."""
    session = spark.newSession()
    for key, value in QUICK.items():
        session.conf.set(key, value)
    session.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    return session


def facts(random: Random, count: int) -> list[Row]:
    """Random rows of `facts`, each of few values, NULLs among them."""

    def pick(*values: Any) -> Any:
        return random.choice(values)

    return [
        (
            pick(None, 1, 2, 3),
            pick(None, "a", "b", ""),
            pick(None, date(2024, 2, 29), date(1969, 12, 31)),
            pick(None, datetime(2024, 1, 1, 12) + timedelta(hours=random.randrange(48))),
            random.randrange(-50, 50),
            pick(None, random.randrange(-50, 50)),
            pick(None, random.randrange(-9, 9)),
            random.randrange(-9, 9),
            pick(None, Decimal(random.randrange(-9999, 9999)) / 100),
            pick(None, Decimal(random.randrange(-(10**24), 10**24))),
            pick(None, 0.0, -0.0, math.nan, 1.5),
            pick(None, True, False),
            pick(None, 2**62, -(2**62), 2**63 - 1, -(2**63), 1),
        )
        for _ in range(count)
    ]


DIM_ROWS: Sequence[Row] = ((1, "one", 10), (2, None, 20), (2, "two", None), (5, "five", 1))


def show(session: Any, name: str, schema: str, rows: Iterable[Row]) -> None:
    """A view of these rows, as constants."""
    hold(session, name, session.createDataFrame(list(rows), schema).coalesce(1))


def hold(session: Any, name: str, frame: Any) -> None:
    """A view of the rows that a query has now, as constants."""
    rows = session._jsparkSession.createDataFrame(frame._jdf.collectAsList(), frame._jdf.schema())
    rows.createOrReplaceTempView(name)


def show_parts(session: Any, parts: Sequence[Sequence[Row]]) -> None:
    """Views `part0`, `part1`, …, and `facts` of them all."""
    for number, rows in enumerate(parts):
        show(session, f"part{number}", FACTS, rows)
    session.sql(all_of("part", len(parts))).createOrReplaceTempView("facts")
    show(session, "dims", DIMS, DIM_ROWS)


def block_of(query: str, options: MatchOptions) -> Block:
    """The block of a query over `facts` and `dims`."""
    settings = TextSettings(ansi=options.ansi, utc=True)
    (found,) = parse_query(query, Schema.parse(TABLES), settings).walk()
    assert found.block is not None, found.reasons
    return found.block


def all_of(prefix: str, count: int) -> str:
    """The rows of views that are numbered."""
    return " UNION ALL ".join(f"TABLE {prefix}{number}" for number in range(count))


def tables_of(block: Any, part: int) -> list[str]:
    """How the tables of a part are spelled."""
    return [f"part{part}" if r.name == "facts" else r.name for r in block.relations]


def result(frame: Any, *, ordered: bool = False) -> tuple[list[str], list[str]]:
    """The types and rows, as texts that tell -0.0 from 0.0 and NULL from NaN."""
    types = [field.dataType.simpleString() for field in frame.schema.fields]
    rows = [repr(tuple(map(_plain, row))) for row in frame.collect()]
    return types, rows if ordered else sorted(rows)


def _plain(value: Any) -> Any:
    if isinstance(value, list):  # of a COLLECT_SET, in any order
        return sorted(map(repr, value))
    return bytes(value).hex() if isinstance(value, (bytes, bytearray)) else value
