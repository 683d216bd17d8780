"""A suite's queries in Spark by their texts: the original and what offline explain makes of it.

Tables and caches are temporary views over rows in memory, so that nothing is written.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from cachemgr import offline
from tests.matcher.spark_cases import _QUICK
from tests.tpc import data_ds, data_h, suite


class TextSuite:
    """A suite in a session of its own."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self.name = name
        self.session = spark.newSession()
        for key, value in _QUICK.items():
            self.session.conf.set(key, value)
        self._workspace = suite.workspace(name)
        self._held: set[str] = set()
        rows = data_h.make() if name == "h" else data_ds.make()
        for table in self._workspace.schema.tables.values():
            types = ", ".join(f"{c.name} {c.type}" for c in table.columns)
            frame = self.session.createDataFrame(rows[table.name], types)
            frame.coalesce(1).createOrReplaceTempView(table.name)

    def served(self) -> list[str]:
        """The queries that have a rewritten text."""
        return [s.name for s in suite.served(self.name) if s.caches]

    def check(self, query: str) -> tuple[int, list[str]]:
        """Rows of one query, and what differs when its caches answer it."""
        text = suite.queries(self.name)[query]
        found = offline.explain_query(self._workspace, text)
        for cache in found["caches"]:
            self._store(cache)
        left, right = self.session.sql(text), self.session.sql(found["rewritten_sql"])
        wrong = []
        if left.dtypes != right.dtypes:
            wrong.append(f"{right.dtypes} instead of {left.dtypes}")
        mine, theirs = left.collect(), right.collect()
        if sorted(map(repr, mine)) != sorted(map(repr, theirs)):
            wrong.append(f"{theirs[:3]} instead of {mine[:3]}")
        return len(mine), wrong

    def _store(self, cache: str) -> None:
        if cache in self._held:
            return
        self._held.add(cache)
        rows = self.session.sql(self._workspace.stored[cache])
        held = self.session.createDataFrame(rows.collect(), rows.schema)
        held.coalesce(1).createOrReplaceTempView(cache)
