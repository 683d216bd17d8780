"""DuckDB as the quick judge: values are compared, not types.

What it finds wrong may be a difference of the dialects, so it decides nothing alone; what it cannot
run is skipped.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from decimal import Decimal
from functools import lru_cache
from typing import Any

import duckdb
import sqlglot
from sqlglot.errors import SqlglotError

from tests.harness.fuzz.decide import Accepted
from tests.harness.fuzz.spark_judge import Verdict, select_rows
from tests.harness.fuzz.world import VIEW_TEXT, World

# Functions and types that the two read differently.
_DIALECT = re.compile(
    r"\b(FLOAT|HLL\w*|APPROX\w*|PERCENTILE|DATE_FORMAT|EXTRACT|BIT_XOR|ANY_VALUE|FIRST|LAST|"
    r"DATE_TRUNC|TRUNC|COLLECT_SET|SORT_ARRAY|GROUPING|GROUPING_ID|STDDEV\w*|VAR\w*|COVAR\w*|CORR|"
    r"CONCAT|LIKE|TIMESTAMP_MICROS|DOUBLE|DAYOFWEEK|CASE|ROUND|1582-10-15)\b|\s[*%/]\s|'(NaN|-?Inf)",
    re.IGNORECASE,
)


class DuckTables:
    """A world's tables in DuckDB."""

    def __init__(self, world: World) -> None:
        self.db = duckdb.connect()
        for table in world.tables.values():
            self.db.execute(f"CREATE TABLE {table.name} AS {translate(select_rows(table))}")
        self.db.execute(f"CREATE VIEW vf AS {VIEW_TEXT}")

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        """The rows of a query in Spark's dialect.

        Raises:
            duckdb.Error: DuckDB cannot run it.
        """
        found = self.db.execute(translate(text)).fetchall()
        return [tuple(map(comparable, row)) for row in found]


class DuckJudge:
    """Compares pairs on DuckDB."""

    def __init__(self) -> None:
        self._tables: DuckTables | None = None
        self._known: dict[str, bool] = {}

    def load(self, world: World) -> None:
        """Make the world's tables the ones that queries read."""
        self._tables, self._known = DuckTables(world), {}

    def judge(self, world: World, accepted: list[Accepted]) -> list[Verdict]:
        """Compare every pair over the loaded tables."""
        return [self._one(pair) for pair in accepted]

    def _one(self, pair: Accepted) -> Verdict:
        assert self._tables is not None
        if _DIALECT.search(pair.query + pair.rewritten):
            return Verdict("skipped", "dialect")
        try:
            for cache in pair.caches:
                if cache.cache.name not in self._known:
                    name = cache.cache.name
                    self._tables.db.execute(f"CREATE TABLE {name} AS {translate(cache.stored)}")
                    self._known[name] = True
            expected = self._tables.rows(pair.query)
            got = self._tables.rows(pair.rewritten)
        except (duckdb.Error, SqlglotError) as error:
            return Verdict("skipped", str(error).splitlines()[0])
        if Counter(expected) == Counter(got):
            return Verdict("equal")
        return Verdict("wrong", f"{expected} <> {got}")


@lru_cache(maxsize=20_000)
def translate(text: str) -> str:
    """Spark SQL as DuckDB's; its GROUPING SETS take no list before them, its GROUPING_ID needs
    one."""
    sets = re.search(r"GROUP BY (.*)\s+GROUPING SETS", text)
    if sets is not None:
        text = text.replace(sets[0], "GROUP BY GROUPING SETS")
        text = re.sub(r"grouping_id\(\)", f"GROUPING_ID({sets[1]})", text, flags=re.IGNORECASE)
    return sqlglot.transpile(text, read="spark", write="duckdb")[0]


def comparable(value: Any) -> Any:
    """A value that equals its like of another type: NaN is itself, an INT is a DECIMAL."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return Decimal(value)
    return str(value) if isinstance(value, list | dict) else value
