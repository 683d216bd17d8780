"""The project's tables, models and caches in DuckDB, which runs a query and what is read instead.

DuckDB divides and averages DECIMAL as DOUBLE. Both texts are run by it, and the numbers are rounded
as Spark's type of the column says, so that nothing is compared within a tolerance.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final

import duckdb

from matcher.sql.reader import TextSettings, parse_query
from matcher.sql.schema import Schema
from tests.harness.dbt import data, project
from tests.harness.fuzz.duck_judge import comparable, translate

# What current_date() is to both texts: the rows are of these years.
_TODAY: Final = "DATE'2024-12-15'"
_TYPES: Final = {"string": "VARCHAR", "timestamp": "TIMESTAMPTZ"}


class Shop:
    """The sources with their rows, a view of each model, and tables of what caches store.

    Args:
        stored: The SELECT that fills each cache's table, by name.
    """

    def __init__(self, stored: dict[str, str]) -> None:
        self.db = duckdb.connect()
        self.db.execute("SET TimeZone = 'UTC'; SET threads = 1; CREATE SCHEMA shop")
        self.db.execute("CREATE MACRO timestamp_micros(n) AS make_timestamptz(n)")
        self.schema = Schema.parse(project.schema_text())
        rows = data.make()
        for table in self.schema.tables.values():
            columns = ", ".join(f"{c.name} {_type(c.type)}" for c in table.columns)
            self.db.execute(f"CREATE TABLE {table.name} ({columns})")
            values = ", ".join(map(_values, rows[table.name.removeprefix("shop.")]))
            self.db.execute(f"INSERT INTO {table.name} VALUES {values}")
        for name, text in project.models().items():
            self.db.execute(f"CREATE VIEW {name} AS {translate(text)}")
        for name, text in stored.items():
            self.db.execute(f"CREATE TABLE {name} AS {translate(text)}")

    def rows(self, text: str, types: Sequence[str]) -> list[tuple[Any, ...]]:
        """A query's rows, with numbers as the types of its columns say."""
        dated = text.replace("current_date()", _TODAY)
        found = self.db.execute(translate(dated)).fetchall()
        return [tuple(_as(v, t) for v, t in zip(row, types, strict=True)) for row in found]

    def types(self, text: str) -> list[str]:
        """What Spark's types of a query's columns are, as far as the text tells."""
        settings = TextSettings(utc=True)
        (root, *_) = parse_query(text, self.schema, settings).roots
        if root.block is not None and root.split is None:
            return [output.expr.type for output in root.block.outputs]
        return ["unknown"] * len(self.db.execute(translate(text)).description or ())


def _type(spark: str) -> str:
    return _TYPES.get(spark, spark.upper())


def _values(row: tuple[Any, ...]) -> str:
    return f"({', '.join(map(_literal, row))})"


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, str | date | datetime) else str(value)


def _as(value: Any, kind: str) -> Any:
    """A value as a column of a type shows it, in a form that equals its like.

    >>> _as(0.125, "decimal(10,2)"), _as(date(2024, 1, 1), "timestamp")
    (Decimal('0.13'), datetime.datetime(2024, 1, 1, 0, 0))
    """
    if isinstance(value, float) and kind.startswith("decimal("):
        digits = int(kind.rstrip(")").split(",")[1])
        return Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, date) and kind == "timestamp":
        return datetime(value.year, value.month, value.day)
    return comparable(value)
