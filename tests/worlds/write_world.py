"""Tables that a writer was granted SELECT on, and others, and how texts of his are looked at."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cachemgr.errors import CacheManagerError

MARK = "cachemgr statement 0a1b"
_KEY = "spark.databricks.delta.commitInfo.userMetadata"
_numbers = itertools.count()


@dataclass(frozen=True)
class World:
    """The session of the statements, what is granted, and the folder of all tables."""

    spark: Any
    places: frozenset[str]
    folder: Path

    @property
    def targets(self) -> Any:
        """No table of a cache is written to: one lies in the folder `caches`, one elsewhere."""
        from cachemgr.spark.results.targets import Targets

        return Targets(f"{self.folder}/caches", lambda: [f"{self.folder}/moved cache"])

    def allowed(self, text: str, places: frozenset[str] | None = None) -> Any:
        """What a statement is, if it may run."""
        from cachemgr.spark.results.rights import allowed_statement

        granted = self.places if places is None else places
        filled = text.replace("FOLDER", str(self.folder))
        return allowed_statement(self.spark, filled, granted, "ann", self.targets)

    def refusal(self, text: str, places: frozenset[str] | None = None) -> CacheManagerError:
        """What a statement is refused with, by whichever look."""
        with pytest.raises(CacheManagerError) as refused:
            self.allowed(text, places)
        return refused.value

    def state(self) -> tuple[object, ...]:
        """All that a statement could have changed."""
        sql = self.spark.sql
        return (
            self.spark.catalog.currentDatabase(),
            sorted(map(str, sql("SHOW TABLES").collect())),
            sorted(map(str, sql("SHOW USER FUNCTIONS").collect())),
            sorted(map(str, sql("SET").collect())),
            sorted(map(str, self.folder.rglob("*"))),
        )

    def fresh(self, columns: str, more: str = "", rows: str = "") -> tuple[str, str]:
        """A new table `w`, and the text of its place."""
        from cachemgr.delta.tables import normalise_location

        place = f"{self.folder}/w{next(_numbers)}"
        self.spark.sql("DROP TABLE IF EXISTS w")
        self.spark.sql(f"CREATE TABLE w ({columns}) USING delta LOCATION '{place}' {more}")
        if rows:
            self.spark.sql(f"INSERT INTO w VALUES {rows}")
        return place, normalise_location(self.spark, place)

    def rows(self, query: str = "TABLE w") -> list[tuple[Any, ...]]:
        return sorted((tuple(row) for row in self.spark.sql(query).collect()), key=repr)


def write_world(spark: Any, folder: Path) -> Iterator[World]:
    """A schema of tables and views; `hidden` is not granted."""
    from cachemgr.delta.tables import normalise_location

    session = spark.newSession()
    session.conf.set(_KEY, MARK)

    def sql(text: str) -> None:
        session.sql(text.replace("FOLDER", str(folder)))

    sql("CREATE SCHEMA writes")
    sql("USE writes")
    for name in ("seen", "also", "hidden", "caches/0a1b", "moved cache", "moved cache/under"):
        column = "secret_column" if name == "hidden" else "b"
        table = name.replace("/", "_").replace(" ", "_")
        sql(f"CREATE TABLE {table} (a INT, {column} STRING) USING delta LOCATION 'FOLDER/{name}'")
        sql(f"INSERT INTO {table} VALUES (1, 'x'), (2, 'y')")
    sql("CREATE TABLE plain (a INT, b STRING) USING parquet LOCATION 'FOLDER/plain'")
    sql("CREATE VIEW v_seen AS SELECT a, b FROM seen")
    sql("CREATE VIEW v_hidden AS SELECT a, secret_column AS b FROM hidden")
    sql("CREATE TEMPORARY VIEW t_seen AS SELECT * FROM seen")
    sql("CREATE FUNCTION most() RETURNS INT RETURN 1")
    sql("CREATE TABLE checked (a INT, b STRING) USING delta LOCATION 'FOLDER/checked'")
    sql("ALTER TABLE checked ADD CONSTRAINT c CHECK (reflect('java.lang.Math', 'abs', a) >= '0')")
    session.createDataFrame([(7,)], "secret_column INT").createOrReplaceTempView("temporary")
    session.udf.register("python_udf", lambda x: x, "INT")
    granted = (
        "seen",
        "also",
        "plain",
        "caches/0a1b",
        "moved cache",
        "moved cache/under",
        "checked",
    )
    places = frozenset(normalise_location(session, str(folder / name)) for name in granted)
    yield World(session, places, folder)
    session.sql("USE default")
    session.sql("DROP SCHEMA writes CASCADE")
