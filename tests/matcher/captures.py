"""Spark's plans of the text cases, at the stage of the optimiser at which the hook sees them.

It is given all that it is to know of a case and says nothing that differs from run to run, so that
what it said once can be kept (`tests.proofs`). It knows nothing of the matcher.
"""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException

from cachemgr.jvm.loader import java_class, session_of
from cachemgr.spark.plans import capture_query

# what Spark computes once for several functions over it (`With`)
_COUNTED = re.compile(r"_common_expr_\d+")


class DeltaTables:
    """The declared tables, empty, in the shape that sessions have them: Delta, with NOT NULL."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._numbers = itertools.count()
        self._sessions: dict[str, Any] = {}
        self._made: dict[str, str] = {}
        self._keys: dict[str, str] = {}

    def session(self, inputs: dict[str, Any]) -> Any:
        """A session with the case's settings, in which its tables and views exist."""
        key = json.dumps(inputs["conf"])
        session = self._sessions.get(key)
        if session is None:
            session = self._sessions[key] = self._spark.newSession()
            for name, value in inputs["conf"]:
                session.conf.set(name, value)
        for name in inputs["schemas"]:
            self._spark.sql(f"CREATE SCHEMA IF NOT EXISTS {name}")
        for name, columns in inputs["tables"]:
            if self._made.get(name) != columns:
                self._make(name, columns)
        for view in inputs["views"]:
            session.sql(f"CREATE OR REPLACE TEMPORARY VIEW {view}")
        return session

    def _make(self, name: str, columns: str) -> None:
        place = self._folder / f"t{next(self._numbers)}"
        self._spark.sql(f"DROP TABLE IF EXISTS {name}")
        self._spark.sql(f"CREATE TABLE {name} ({columns}) USING delta LOCATION '{place}'")
        found = capture_query(self._spark, f"SELECT * FROM {name}").tables[0]
        self._keys[found.location] = name
        self._made[name] = columns

    def drop(self) -> None:
        """Remove all of it again."""
        for key in self._made:
            self._spark.sql(f"DROP TABLE IF EXISTS {key}")

    def named(self, document: dict[str, Any]) -> dict[str, Any]:
        """`document` with the tables' names for their places, and without what each commit makes
        anew."""
        for table in document["tables"]:
            table["location"] = self._keys.get(table["location"], table["location"])
            table.update(table_id=table["location"], commit="", committed_ms=0)
        return document


def plans(tables: DeltaTables, inputs: dict[str, Any]) -> str:
    """The plans of a case's definitions and query as JSON; or why Spark refuses one of them."""
    try:
        session = tables.session(inputs)
        selects = [capture_query(session, select).document for select in inputs["selects"]]
        query = _documents(session, inputs["query"])
    except PySparkException as error:
        return json.dumps({"refused": error.getCondition() or type(error).__name__})
    found = {"selects": [*map(tables.named, selects)], "query": [*map(tables.named, query)]}
    return _renumbered(json.dumps(found, separators=(",", ":"), ensure_ascii=False))


def _renumbered(text: str) -> str:
    """A text in which names that Spark takes from a counter of the whole session are numbered in
    the order in which they appear."""
    seen: dict[str, str] = {}
    return _COUNTED.sub(lambda m: seen.setdefault(m[0], f"_common_expr_{len(seen)}"), text)


def _documents(session: Any, query: str) -> list[dict[str, Any]]:
    """The query's plan and those of its uncorrelated subquery expressions, which Spark optimises
    apart."""
    found = [capture_query(session, query).document]
    analysed = session.sql(query)._jdf.queryExecution().analyzed().subqueriesAll()
    hook = java_class(session, "Hook")
    inside = session._jvm.org.apache.spark.sql.catalyst.expressions.SubExprUtils
    for number in range(analysed.size()):
        plan = analysed.apply(number)
        if not inside.hasOuterReferences(plan):
            found.append(json.loads(hook.capture(session_of(session), plan)))
    return found
