"""Executes an original query and its rewrite over the fixtures' tables, and compares them."""

from __future__ import annotations

from collections.abc import Mapping

from matcher.schema import Schema
from tests.matcher.fixture_cases import FOLDER, Case


class Tables:
    """The fixtures' tables in a Spark session, made once; views and caches are the session's own."""

    def __init__(self, spark) -> None:
        self._spark = spark
        self._made: list[str] = []
        self._schemas: list[str] = []
        self._create(Schema.parse((FOLDER / "_schema.sql").read_text()))
        for statement in (FOLDER / "_data.sql").read_text().split(";\n"):
            if statement.strip():
                spark.sql(statement.strip().rstrip(";"))

    def _create(self, schema: Schema) -> None:
        for name in sorted(schema.schemas - {"default"}):
            self._spark.sql(f"CREATE SCHEMA IF NOT EXISTS {name}")
            self._schemas.append(name)
        for table in schema.tables.values():
            if table.key in self._made:
                continue
            columns = ", ".join(
                f"`{c.name}` {c.type}{'' if c.nullable else ' NOT NULL'}" for c in table.columns
            )
            self._spark.sql(f"DROP TABLE IF EXISTS {table.key}")
            self._spark.sql(f"CREATE TABLE {table.key} ({columns}) USING parquet")
            self._made.append(table.key)

    def ensure(self, session, case: Case) -> None:
        """The tables that a case adds, and the views of the schema."""
        schema = Schema.parse(case.schema)
        if any(key not in self._made for key in schema.tables):
            self._create(schema)
            for statement in case.all("data"):
                self._spark.sql(statement)
        for view in schema.views.values():
            session.sql(f"CREATE OR REPLACE TEMPORARY VIEW {view.name} AS {view.text}")

    def add_caches(self, session, stored: Mapping[str, str]) -> None:
        """Each cache under its own name, with the rows that its stored SELECT has."""
        for name, select in stored.items():
            rows = session.sql(select)
            held = session.createDataFrame(rows.collect(), rows.schema)
            held.coalesce(1).createOrReplaceTempView(name)

    def drop(self) -> None:
        """Remove all of it again."""
        for key in self._made:
            self._spark.sql(f"DROP TABLE IF EXISTS {key}")
        for name in self._schemas:
            self._spark.sql(f"DROP SCHEMA IF EXISTS {name}")


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
