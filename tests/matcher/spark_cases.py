"""Executes an original query and its rewrite over the fixtures' tables, and compares them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from matcher.sql.schema import Schema, Table
from tests.matcher.fixture_cases import FOLDER, Case

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
_INSERT = re.compile(r"INSERT INTO (\S+)\s+VALUES\s+(.*)", re.DOTALL)


class Tables:
    """The fixtures' tables in a Spark session of their own for each set of settings.

    A table is a temporary view over constants, under its bare name; `default.x` and other schemas'
    names mean a real table with the same rows. Data of a case that has no schema of its own are
    further rows of the shared tables; those of a case that has one are its tables' only rows, and
    no other case's.
    """

    def __init__(self, spark) -> None:
        self._spark = spark
        self._sessions: dict[tuple[object, ...], Any] = {}
        self._real: list[str] = []
        self._schemas: list[str] = []
        self._shared = _inserted((FOLDER / "_data.sql").read_text().split(";\n"))

    def session(self, case: Case):
        """A session with the case's settings, tables and views."""
        conf = {**QUICK, **{k: v for k, v in case.conf.items() if k.startswith("spark.sql.")}}
        more = () if case.all("schema") else tuple(case.all("data"))
        place = (*conf.items(), *more)
        session = self._sessions.get(place)
        if session is None:
            session = self._sessions[place] = self._spark.newSession()
            for key, value in conf.items():
                session.conf.set(key, value)
            shared = Schema.parse((FOLDER / "_schema.sql").read_text())
            self._fill(session, shared, self._shared, more)
        if case.all("schema"):
            rows = {**self._shared, **_inserted(case.all("data"))}
            self._fill(session, Schema.parse(";\n".join(case.all("schema"))), rows)
        return session

    def _fill(
        self, session, schema: Schema, rows: Mapping[str, str], more: tuple[str, ...] = ()
    ) -> None:
        for name in sorted(schema.schemas - {"default"} - set(self._schemas)):
            session.sql(f"CREATE SCHEMA IF NOT EXISTS {name}")
            self._schemas.append(name)
        for table in schema.tables.values():
            text = _select(table, rows, more)
            if "." not in table.name:
                _hold(session, table.name, session.sql(text))
            if table.key not in self._real:
                session.sql(f"DROP TABLE IF EXISTS {table.key}")
                text = _select(table, rows, ())
                session.sql(f"CREATE TABLE {table.key} USING parquet AS {text}")
                self._real.append(table.key)
        for view in schema.views.values():
            session.sql(f"CREATE OR REPLACE TEMPORARY VIEW {view.name} AS {view.text}")

    def add_caches(self, session, stored: Mapping[str, str]) -> None:
        """Each cache under its own name, with the rows that its stored SELECT has."""
        for name, select in stored.items():
            _hold(session, name, session.sql(select))

    def drop(self) -> None:
        """Remove all of it again."""
        for key in self._real:
            self._spark.sql(f"DROP TABLE IF EXISTS {key}")
        for name in self._schemas:
            self._spark.sql(f"DROP SCHEMA IF EXISTS {name}")


def _hold(session, name: str, frame) -> None:
    """A view over constants, the rows that `frame` has now: nobody has to parse or compute them
    again, query by query."""
    rows = session._jsparkSession.createDataFrame(frame._jdf.collectAsList(), frame._jdf.schema())
    rows.createOrReplaceTempView(name)


def _inserted(statements: Iterable[str]) -> dict[str, str]:
    """The VALUES by the table that they go to."""
    found = (_INSERT.fullmatch(statement.strip().rstrip(";")) for statement in statements)
    return {insert[1]: insert[2] for insert in found if insert}


def _select(table: Table, rows: Mapping[str, str], more: tuple[str, ...]) -> str:
    names = ", ".join(c.name for c in table.columns)
    casts = ", ".join(f"CAST({c.name} AS {c.type}) AS {c.name}" for c in table.columns)
    nothing = f"(SELECT {', '.join(f'NULL AS {c.name}' for c in table.columns)}) WHERE false"
    found = [f for f in map(_INSERT.fullmatch, more) if f and f[1] == table.name]
    own = [rows[table.name]] if table.name in rows else []
    values = ", ".join([*own, *(f[2] for f in found)])
    return f"SELECT {casts} FROM " + (f"VALUES {values} AS v({names})" if values else nothing)


def compare(session, original: str, rewritten: str, ordered: bool) -> None:
    """Both queries give the same names, types and rows; under ORDER BY in the same order."""
    left, right = session.sql(original), session.sql(rewritten)
    assert left.columns == right.columns
    types = [(f.name, f.dataType.simpleString()) for f in left.schema.fields]
    assert types == [(f.name, f.dataType.simpleString()) for f in right.schema.fields]
    mine, theirs = left.collect(), right.collect()
    if ordered:
        assert [tuple(r) for r in theirs] == [tuple(r) for r in mine]
    assert sorted(map(repr, map(tuple, theirs))) == sorted(map(repr, map(tuple, mine)))
