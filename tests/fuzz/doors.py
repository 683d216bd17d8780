"""Both doors for generated queries: the Catalyst plan's blocks and choice are those of the text.

The tables have a place and declared NOT NULLs and no file, so a schema costs nothing to make.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from cachemgr.errors import CacheManagerError
from cachemgr.offline import Workspace, answer
from cachemgr.spark.jvm import java_class, session_of
from matcher.errors import MatcherError
from matcher.from_spark import definition_block
from matcher.ir import Block, Relation
from tests.fuzz.decide import Prepared
from tests.fuzz.spark_judge import compiled
from tests.fuzz.world import VIEW_TEXT, World
from tests.matcher.two_doors import compare_definition, compare_sides, read_sides

_SOURCE = Path(__file__).parent / "java" / "FuzzDoors.java"
_CLASS = "relationalcache.fuzz.FuzzDoors"
_LINE = "\u0002"
_ROOT = "file:/fuzz"


class SparkDoors:
    """One Spark session beside the judge's, with its usual settings."""

    def __init__(self, spark: Any, threads: int = 2) -> None:
        self._spark = spark.newSession()
        self._spark.conf.set("spark.sql.session.timeZone", "UTC")
        self._session = session_of(self._spark)
        self._threads = threads
        hook = java_class(spark, "Hook")
        self._java = compiled(spark, _SOURCE, _CLASS, hook.getClass().getClassLoader())

    def load(self, world: World) -> None:
        """Make the world's tables the ones that queries read."""
        parser = self._session.sessionState().sqlParser()
        for table in world.tables.values():
            columns = ", ".join(
                f"{c.name} {c.type}{'' if c.nullable else ' NOT NULL'}" for c in table.columns
            )
            schema = parser.parseTableSchema(columns)
            self._java.table(self._session, table.name, f"{_ROOT}/{table.name}", schema)
        self._spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW vf AS {VIEW_TEXT}")

    def caches(self, pairs: Iterable[Prepared]) -> list[str]:
        """What differs between the doors for these caches' definitions."""
        chosen = list(pairs)
        found = []
        documents = self._documents([p.cache.spec.sql() for p in chosen])
        for pair, document in zip(chosen, documents, strict=True):
            try:
                block = named(definition_block(_parsed(document)[0]))
            except MatcherError as error:
                differs = [f"only the text takes it, Catalyst says {error}"]
            else:
                differs = compare_definition(pair.workspace.plans[pair.cache.name], block)
            found += [f"{pair.cache.statement}\n  {d}" for d in differs]
        return found

    def queries(self, asked: list[tuple[Workspace, str]]) -> list[list[str]]:
        """What differs between the doors for each of these queries."""
        documents = self._documents([query for _, query in asked])
        return [
            self._one(workspace, query, document)
            for (workspace, query), document in zip(asked, documents, strict=True)
        ]

    def _one(self, workspace: Workspace, query: str, document: str) -> list[str]:
        if document.startswith("error"):
            return [f"Spark refuses the query: {document}"]
        try:
            given = answer(workspace, query)
            return compare_sides(read_sides(given, workspace, _parsed(document), named))
        except (MatcherError, CacheManagerError) as error:
            return [str(error)]

    def _documents(self, texts: list[str]) -> list[str]:
        if not texts:
            return []
        found = str(self._java.capture(self._session, _LINE.join(texts), self._threads))
        return found.split(_LINE)


def _parsed(document: str) -> list[dict[str, Any]]:
    if document.startswith("error"):
        raise MatcherError("SPARK_ERROR", document)
    found: list[dict[str, Any]] = json.loads(document)
    return found


def named(block: Block) -> Block:
    """`block` with the text door's keys for its relations."""
    relations = tuple(
        Relation("default." + r.key.removeprefix(_ROOT + "/"), r.name) for r in block.relations
    )
    return replace(block, relations=relations)
