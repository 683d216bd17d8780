"""A small star of Delta tables, a hand-made cache over it, and a decider that knows that one
cache."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from cachemgr.delta.tables import TableRead, current_versions, normalise_location
from cachemgr.spark.hook import HookContext, Replacement
from matcher.catalyst.reader import LocatedBlock
from matcher.catalyst.templates import PlanDocument
from matcher.model.ir import Block
from matcher.model.reasons import Reason


@dataclass
class Star:
    """Names and places of one test's tables; the cache holds sales by region and product."""

    spark: SparkSession
    schema: str
    sales: str
    shops: str
    cache: str

    def append(self, shop: int, product: str, amount: int) -> None:
        self.spark.sql(f"INSERT INTO {self.schema}.sales VALUES ({shop}, '{product}', {amount})")


def build_star(spark: SparkSession, folder: Path, schema: str) -> Star:
    spark.sql(f"CREATE SCHEMA {schema}")
    spark.sql(
        f"CREATE TABLE {schema}.sales (shop INT, product STRING, amount BIGINT NOT NULL) "
        f"USING DELTA "
        f"LOCATION '{folder}/sales'"
    )
    spark.sql(
        f"CREATE TABLE {schema}.shops (id INT, region STRING) USING DELTA LOCATION '{folder}/shops'"
    )
    spark.sql(
        f"INSERT INTO {schema}.sales VALUES (1, 'a', 10), (1, 'b', 5), (2, 'a', 7), (3, "
        f"NULL, 2), (3, 'a', 2)"
    )
    spark.sql(
        f"INSERT INTO {schema}.shops VALUES (1, 'north'), (2, 'north'), (3, NULL), (4, 'west')"
    )
    cache = f"{folder}/cache"
    grouped = spark.sql(
        f"SELECT region, product, sum(amount) AS s, count(*) AS n FROM {schema}.sales "
        f"JOIN {schema}.shops ON shop = id GROUP BY region, product"
    )
    grouped.write.format("delta").save(cache)
    places = [normalise_location(spark, f"{folder}/{name}") for name in ("sales", "shops", "cache")]
    return Star(spark, schema, *places)


Answer = Callable[[Block, "StarDecider"], str | None]


def by_region(block: Block, decider: StarDecider) -> str | None:
    """SQL over the cache for SUM(amount) and COUNT(*) grouped by a subset of its keys, or None."""
    if block.group_keys is None or block.grouping_sets or len(block.relations) != 2:
        return None
    if block.having or block.limit is not None:
        return None
    if len(block.predicates) != 1 or {r.key for r in block.relations} != set(decider.base):
        return None
    names = {"region": "region", "product": "product"}
    items = []
    keys = [next((n for n in names if repr(k).endswith(f".{n}")), "") for k in block.group_keys]
    if not all(keys):
        return None
    for i, output in enumerate(block.outputs):
        text = repr(output.expr)
        found = next((names[n] for n in names if text.endswith(f".{n}")), None)
        if found:
            items.append(f"{found} AS c{i}")
        elif text.startswith("sum("):
            items.append(f"CAST(sum(s) AS BIGINT) AS c{i}")
        elif text == "count(*)":
            items.append(f"CAST(coalesce(sum(n), 0) AS BIGINT) AS c{i}")
        else:
            return None
    tail = f" GROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT {', '.join(items)} FROM `__cache`{tail}"


@dataclass
class StarDecider:
    """Answers from the star's cache where `answer` finds it sound; remembers all that it was
    asked."""

    star: Star
    answer: Answer = by_region
    asked: list[HookContext] = field(default_factory=list)
    blocks: list[LocatedBlock] = field(default_factory=list)
    dropped: list[Reason] = field(default_factory=list)
    sql: list[str] = field(default_factory=list)
    strict: bool = False
    relation: object = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def base(self) -> tuple[str, str]:
        return self.star.sales, self.star.shops

    def __post_init__(self) -> None:
        found = current_versions(self.star.spark, {p: p for p in (*self.base, self.star.cache)})
        self.versions = {place: v.version for place, v in found.items() if v is not None}

    def known_locations(self) -> frozenset[str]:
        return frozenset(self.base)

    def decide(self, document: PlanDocument, context: HookContext) -> list[Replacement]:
        with self.lock:
            self.asked.append(context)
        if "NO_RELATIONAL_CACHE" in context.hints:
            return []
        if self.strict and any(
            t.location in self.base and t.version != self.versions[t.location]
            for tables in context.seen().values()
            for t in tables
        ):
            return []
        found: list[Replacement] = []
        read = self.relation or TableRead(self.star.cache, self.versions[self.star.cache])

        def visit(located: LocatedBlock) -> bool:
            self.blocks.append(located)
            sql = located.block and self.answer(located.block, self)
            if not sql:
                return False
            self.sql.append(sql)
            found.append(Replacement(located.path, sql, {"__cache": read}, "star", located.split))
            return True

        document.walk(visit)
        return found

    def refused(self, context: HookContext, replacement: Replacement, reason: Reason) -> None:
        self.dropped.append(reason)


def reads_cache(frame: DataFrame, star: Star) -> bool:
    """True if the plan that Spark runs for `frame` reads the cache's files."""
    return any(path.startswith(star.cache.removeprefix("file:")) for path in planned_paths(frame))


def planned_paths(frame: DataFrame) -> list[str]:
    """The root paths of all file scans in the optimised plan."""
    leaves = frame._jdf.queryExecution().optimizedPlan().collectLeaves()
    found = []
    for i in range(leaves.size()):
        leaf = leaves.apply(i)
        if leaf.getClass().getSimpleName() == "LogicalRelation":
            roots = leaf.relation().location().rootPaths()
            found += [roots.apply(k).toUri().getPath() for k in range(roots.size())]
    return found


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(r) for r in frame.collect()), key=repr)
