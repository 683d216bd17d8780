"""Executes an original query and its rewrite over the fixtures' tables, and compares them.

The judges here are given all that they are to know of a case as plain data (`case_inputs`), and
know nothing of the matcher: what they say depends on nothing else, and can be kept
(`tests.proofs`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.errors import PySparkException

from tests.proofs.digests import digest

# Hundreds of queries over a few rows: planning and compiling would cost more than running.
QUICK = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    # rows that go through Java keep their days, however long ago
    "spark.sql.datetime.java8API.enabled": "true",
}
Inputs = Mapping[str, Any]


class Tables:
    """The fixtures' tables in a Spark session of their own for each set of settings and rows.

    A table is a temporary view over constants, under its bare name; `default.x` and other schemas'
    names mean a real table.
    """

    def __init__(self, spark: Any) -> None:
        self._spark = spark
        self._sessions: dict[str, Any] = {}
        self._real: dict[str, str] = {}
        self._schemas: set[str] = set()

    def session(self, inputs: Inputs) -> Any:
        """A session with the case's settings, tables and views."""
        place = json.dumps([inputs["conf"], inputs["shared"]])
        session = self._sessions.get(place)
        if session is None:
            session = self._sessions[place] = self._spark.newSession()
            for key, value in (*QUICK.items(), *inputs["conf"]):
                session.conf.set(key, value)
            self._fill(session, inputs["shared"])
        self._fill(session, inputs["own"])
        return session

    def _fill(self, session: Any, relations: Inputs) -> None:
        for name in relations["schemas"]:
            session.sql(f"CREATE SCHEMA IF NOT EXISTS {name}")
            self._schemas.add(name)
        for name, select in relations["tables"]:
            _hold(session, name, session.sql(select))
        for name, select in relations["real"]:
            if self._real.get(name) != select:
                session.sql(f"DROP TABLE IF EXISTS {name}")
                session.sql(f"CREATE TABLE {name} USING parquet AS {select}")
                self._real[name] = select
        for name, select in relations["views"]:
            session.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {select}")

    def add_caches(self, session: Any, stored: Iterable[tuple[str, str]]) -> None:
        """Each cache under its own name, with the rows that its stored SELECT has."""
        for name, select in stored:
            _hold(session, name, session.sql(select))

    def drop(self) -> None:
        """Remove all of it again."""
        for name in self._real:
            self._spark.sql(f"DROP TABLE IF EXISTS {name}")
        for name in self._schemas:
            self._spark.sql(f"DROP SCHEMA IF EXISTS {name}")


def _hold(session: Any, name: str, frame: Any) -> None:
    """A view over constants, the rows that `frame` has now: nobody has to parse or compute them
    again, query by query."""
    rows = session._jsparkSession.createDataFrame(frame._jdf.collectAsList(), frame._jdf.schema())
    rows.createOrReplaceTempView(name)


def same_rows(tables: Tables, inputs: Inputs) -> str:
    """The query and its rewrite give the same; a digest of what they give."""
    session = tables.session(inputs)
    tables.add_caches(session, inputs["stored"])
    return compare(session, inputs["query"], inputs["rewritten"], inputs["ordered"])


def wrong_rows(tables: Tables, inputs: Inputs) -> str:
    """Of the rewrites that each guard keeps out, at least one gives other rows than the query; a
    digest of what the query gives, and which ones are wrong."""
    session = tables.session(inputs)
    right = _rows(session.sql(inputs["query"]), inputs["ordered"])
    wrong: list[list[bool]] = []
    for rewrites in inputs["guarded"]:
        wrong.append([])
        for rewritten, stored in rewrites:
            tables.add_caches(session, stored)
            wrong[-1].append(not _equal(session, inputs, rewritten))
        assert any(wrong[-1]), f"guard number {len(wrong)}"
    return digest(json.dumps([right, wrong]))


def _equal(session: Any, inputs: Inputs, rewritten: str) -> bool:
    try:
        session.sql(rewritten)
    except PySparkException:  # what Spark does not even analyse shows nothing
        return True
    try:
        compare(session, inputs["query"], rewritten, inputs["ordered"])
    except (AssertionError, PySparkException):
        return False
    return True


def compare(session: Any, original: str, rewritten: str, ordered: bool) -> str:
    """Both queries give the same names, types and rows, under ORDER BY in the same order; a digest
    of them."""
    left, right = session.sql(original), session.sql(rewritten)
    assert left.columns == right.columns
    types = [(f.name, f.dataType.simpleString()) for f in left.schema.fields]
    assert types == [(f.name, f.dataType.simpleString()) for f in right.schema.fields]
    mine, theirs = _rows(left, ordered), _rows(right, ordered)
    assert theirs == mine
    return digest(json.dumps([types, mine]))


def _rows(frame: Any, ordered: bool) -> list[str]:
    rows = [repr(tuple(row)) for row in frame.collect()]
    return rows if ordered else sorted(rows)
