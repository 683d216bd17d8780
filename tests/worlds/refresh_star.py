"""A small star in Delta (`sales` and `shops`), caches over it, and the matcher's plans of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cachemgr.delta.tables import current_versions, normalise_location
from cachemgr.metastore import Metastore
from cachemgr.metastore.records import (
    CacheRecord,
    GroupingSetRecord,
    JoinRecord,
    JoinSide,
    RefreshRunRecord,
    new_id,
)
from cachemgr.refresh.run import run_refresh
from cachemgr.vocabulary import JoinState
from matcher.model.codec import PLAN_VERSION, encode_plan
from matcher.model.expr import Agg, Call, Col
from matcher.model.ir import Block, CachePlan, Output, Relation
from matcher.normalize.stored_plan import plan_definition
from tests.worlds.records import cache_of

SALES = "shop_id bigint, item string, day int, amount bigint, price decimal(10,2)"
SHOPS = "id bigint, city string, region string"

SALES_ROWS = [
    (1, "pen", 1, 10, "1.50"),
    (1, "pen", 1, 10, "1.50"),
    (1, "ink", 2, None, "2.00"),
    (2, "pen", 2, 30, None),
    (2, None, 3, 40, "4.25"),
    (3, "ink", 3, -5, "9.99"),
]
SHOPS_ROWS = [(1, "Oslo", "north"), (2, "Rome", "south"), (3, "Bonn", None)]


class Clock:
    """A clock that tests move by hand."""

    def __init__(self) -> None:
        self.at = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.at


class Crash(BaseException):
    """The process dies: nothing of the refresh's own clean-up runs."""


def crash_at(step: str) -> Callable[[str], None]:
    """A checkpoint that dies after `step`."""

    def checkpoint(name: str) -> None:
        if name == step:
            raise Crash(step)

    return checkpoint


@dataclass
class Star:
    """Base tables, a metastore and a clock."""

    spark: Any
    store: Metastore
    folder: Path
    clock: Clock

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def key(self, name: str) -> str:
        return normalise_location(self.spark, self.path(name))

    def write(self, name: str, rows: list[tuple[Any, ...]], schema: str, mode: str) -> None:
        plain = schema.replace("decimal(10,2)", "string")
        frame = self.spark.createDataFrame(rows, plain)
        typed = frame.selectExpr(
            *(f"cast({c.split()[0]} as {c.split()[1]}) as {c.split()[0]}" for c in _split(schema))
        )
        typed.coalesce(1).write.format("delta").mode(mode).save(self.path(name))

    def sell(self, *rows: tuple[Any, ...]) -> None:
        self.write("sales", list(rows), SALES, "append")

    def relation(self, name: str) -> Relation:
        return Relation(self.key(name), f"default.{name}")

    def cache(self, plan: CachePlan, **fields: Any) -> CacheRecord:
        values: dict[str, Any] = {
            "namespace": "default",
            "name": plan.name,
            "definition": "SELECT …",
            "definition_hash": "h",
            "location": str(self.folder / "caches" / plan.name),
            "plan": encode_plan(plan),
            "plan_version": PLAN_VERSION,
        }
        record = cache_of(**(values | fields))
        names = [c.name for c in plan.keys or ()]
        sets = [
            GroupingSetRecord(s.grouping_id, i, tuple(names[k] for k in s.keys))
            for i, s in enumerate(plan.grouping_sets)
        ]
        return self.store.caches.create(record, sets, now=self.clock())

    def refresh(self, cache: CacheRecord, **options: Any) -> RefreshRunRecord:
        return run_refresh(
            self.spark, self.store, cache.id, now=self.clock, holder="test", **options
        )

    def stored(self, cache: CacheRecord) -> list[tuple[Any, ...]]:
        """The rows that serve: the published version's."""
        snapshot = self.store.snapshots.published(cache.id)
        assert snapshot is not None
        reader = self.spark.read.format("delta").option("versionAsOf", snapshot.run.cache_version)
        return rows_of(reader.load(cache.location))

    def head(self, cache: CacheRecord) -> int:
        found = current_versions(self.spark, {cache.location: cache.name})[cache.location]
        return -1 if found is None else found.version

    def key_of(self, cache: CacheRecord) -> str:
        return normalise_location(self.spark, cache.location)

    def version(self, location: str) -> int:
        found = current_versions(self.spark, {location: location})[location]
        return -1 if found is None else found.version

    def declare_join(
        self,
        *,
        name: str = "sales_shops",
        keys: tuple[tuple[str, str], ...] = (("shop_id", "id"),),
        checked: bool = True,
        finds_each: bool = True,
    ) -> JoinRecord:
        record = JoinRecord(
            name=name,
            definition="…",
            left=JoinSide("default.sales", self.key("sales"), None),
            right=JoinSide("default.shops", self.key("shops"), None),
            keys=keys,
            id=new_id(),
            validated=checked,
            state=JoinState.VALID if checked else JoinState.NOT_VALIDATED,
            finds_each=finds_each,
        )
        return self.store.joins.create(record, now=self.clock())


def _split(schema: str) -> list[str]:
    import re

    return [c.strip() for c in re.split(r",\s(?=[a-z_]+ )", schema)]


def rows_of(frame: Any) -> list[tuple[Any, ...]]:
    """All rows in an order of their own, NULLs included."""
    return sorted((tuple(r) for r in frame.collect()), key=repr)


SHOP_ID = Col(0, "shop_id", "bigint")
ITEM = Col(0, "item", "string")
DAY = Col(0, "day", "int")
AMOUNT = Col(0, "amount", "bigint")
PRICE = Col(0, "price", "decimal(10,2)")
CITY = Col(1, "city", "string")
REGION = Col(1, "region", "string")
JOIN_ON = Call("eq", (SHOP_ID, Col(1, "id", "bigint")), "boolean")


def total(arg: Col, type: str = "bigint") -> Agg:
    return Agg("sum", (arg,), type)


def plain_plan(star: Star, name: str = "by_item") -> CachePlan:
    """SELECT item, SUM(amount), AVG(amount), COUNT(*) … GROUP BY item."""
    block = Block(
        relations=(star.relation("sales"),),
        predicates=(),
        outputs=(
            Output("item", ITEM),
            Output("total", total(AMOUNT)),
            Output("mean", Agg("avg", (AMOUNT,), "double")),
            Output("days", Agg("sum", (DAY,), "bigint")),
        ),
        group_keys=(ITEM,),
    )
    return plan_definition(name, block)


def flat_plan(star: Star, name: str = "flat") -> CachePlan:
    """SELECT item, amount, city … WHERE shop_id = id."""
    block = Block(
        relations=(star.relation("sales"), star.relation("shops")),
        predicates=(JOIN_ON,),
        outputs=(Output("item", ITEM), Output("amount", AMOUNT), Output("city", CITY)),
    )
    return plan_definition(name, block)


CUBE_SETS = ((0, 1, 2), (0, 1), (1, 0), (2,), (), (0, 3))


def cube_plan(star: Star, name: str = "cube") -> CachePlan:
    """A cube over the join, one set written twice."""
    block = Block(
        relations=(star.relation("sales"), star.relation("shops")),
        predicates=(JOIN_ON,),
        outputs=(
            Output("item", ITEM),
            Output("city", CITY),
            Output("region", REGION),
            Output("day", DAY),
            Output("total", total(AMOUNT)),
            Output("worth", total(PRICE, "decimal(20,2)")),
            Output("least", Agg("min", (AMOUNT,), "bigint")),
            Output("n", Agg("count", (AMOUNT,), "bigint", False)),
        ),
        group_keys=(ITEM, CITY, REGION, DAY),
        grouping_sets=CUBE_SETS,
    )
    return plan_definition(name, block)
