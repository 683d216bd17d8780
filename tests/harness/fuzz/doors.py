"""Both doors for generated queries: the Catalyst plan's blocks and choice are those of the text.

The tables have a place and declared NOT NULLs and no file, so a schema costs nothing to make.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cachemgr.errors import CacheManagerError
from cachemgr.jvm.loader import java_class, session_of
from cachemgr.text.offline import Workspace, answer
from matcher.catalyst.reader import definition_block
from matcher.model.errors import MatcherError
from matcher.model.ir import Block
from tests.harness.fuzz.decide import Prepared
from tests.harness.fuzz.doors_listed import NO_ROW, Compared, differs_as_listed, no_row
from tests.harness.fuzz.spark_judge import compiled
from tests.harness.fuzz.world import VIEW_TEXT, World
from tests.matcher.plan_shapes import differing
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
            columns = ", ".join(c.ddl for c in table.declared())
            schema = parser.parseTableSchema(columns)
            self._java.table(self._session, table.name, f"{_ROOT}/{table.name}", schema)
        self._spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW vf AS {VIEW_TEXT}")

    def caches(self, pairs: Iterable[Prepared]) -> list[Compared]:
        """The doors beside each other for these caches' definitions."""
        chosen = list(pairs)
        documents = self._documents([p.cache.spec.sql() for p in chosen])
        return [
            _compared(p.cache.statement, _definition(p, document), document)
            for p, document in zip(chosen, documents, strict=True)
        ]

    def queries(self, asked: list[tuple[Workspace, str]]) -> list[Compared]:
        """The doors beside each other for each of these queries."""
        documents = self._documents([query for _, query in asked])
        return [
            _query(workspace, query, document)
            for (workspace, query), document in zip(asked, documents, strict=True)
        ]

    def _documents(self, texts: list[str]) -> list[str]:
        if not texts:
            return []
        found = str(self._java.capture(self._session, _LINE.join(texts), self._threads))
        return found.split(_LINE)


def _compared(text: str, differences: list[str], document: str) -> Compared:
    return Compared(differences, differs_as_listed(text, differences, document))


def _definition(pair: Prepared, document: str) -> list[str]:
    try:
        block = definition_block(_parsed(document)[0])
        return compare_definition(pair.workspace.plans[pair.cache.name], block)
    except MatcherError as error:
        return [f"only the text takes it, Catalyst says {error}"]


def _query(workspace: Workspace, query: str, document: str) -> Compared:
    try:
        documents = _parsed(document)
        remembered = [text for each in documents for text in differing(each, query, 2)]
        if remembered:
            return Compared(remembered)
        given = answer(workspace, query)
        sides = read_sides(given, workspace, documents, _as_it_is)
        found = compare_sides(sides)
    except (MatcherError, CacheManagerError) as error:
        return Compared([str(error)])
    both = [*given.parsed.walk(), *(located for plan in sides.spark for located in plan)]
    if found and any(b.block is not None and no_row(b.block) for b in both):
        return Compared(found, NO_ROW)
    return _compared(query, found, document)


def _parsed(document: str) -> list[dict[str, Any]]:
    if document.startswith("error"):
        raise MatcherError("SPARK_ERROR", document)
    found: list[dict[str, Any]] = json.loads(document)
    for table in (table for each in found for table in each["tables"]):
        table["location"] = "default." + table["location"].removeprefix(_ROOT + "/")
    return found


def _as_it_is(block: Block) -> Block:
    return block
