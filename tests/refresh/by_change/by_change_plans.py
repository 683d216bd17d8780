"""Caches over the star that are refreshed by what changed, changes of all kinds, and the check that
what is stored, read as one row a group, is what a full refresh of the same versions stores."""

from __future__ import annotations

from typing import Any

from cachemgr.delta.tables import TableRead, run_select
from cachemgr.metastore.records import CacheRecord
from matcher.model.codec import decode_plan
from matcher.model.expr import Agg
from matcher.model.ir import Block, CachePlan, MatchOptions, Output
from matcher.normalize.stored_plan import plan_definition
from matcher.partials.collapse import render_collapsed
from matcher.render.select import quote, render_stored
from tests.worlds.refresh_star import AMOUNT, CITY, ITEM, JOIN_ON, PRICE, Star, rows_of, total


def by_item_plan(star: Star, name: str = "by_item") -> CachePlan:
    """Sums, counts, extremes and an average of decimals by item."""
    block = Block(
        relations=(star.relation("sales"),),
        predicates=(),
        outputs=(
            Output("item", ITEM),
            Output("total", total(AMOUNT)),
            Output("worth", total(PRICE, "decimal(20,2)")),
            Output("mean", Agg("avg", (PRICE,), "decimal(14,6)")),
            Output("least", Agg("min", (AMOUNT,), "bigint")),
            Output("most", Agg("max", (PRICE,), "decimal(10,2)")),
        ),
        group_keys=(ITEM,),
    )
    return plan_definition(name, block)


def stored_rows(star: Star, cache: CacheRecord) -> list[tuple[Any, ...]]:
    """What the published version holds, one row a group."""
    run = star.store.snapshots.published(cache.id).run
    plan = decode_plan(dict(run.plan))
    read = {"__c": TableRead(star.key_of(cache), run.cache_version)}
    text = "SELECT * FROM __c"
    if plan.partials:
        text = render_collapsed(plan, "__c", MatchOptions())
    return rows_of(run_select(star.spark, text, read))


def computed_rows(star: Star, plan: CachePlan) -> list[tuple[Any, ...]]:
    """What the definition gives now."""
    names = [f"__t{i}" for i in range(len(plan.relations))]
    reads = {
        name: TableRead(relation.key, star.version(relation.key))
        for name, relation in zip(names, plan.relations, strict=True)
    }
    return rows_of(run_select(star.spark, render_stored(plan, [quote(n) for n in names]), reads))


def check(star: Star, cache: CacheRecord, plan: CachePlan) -> None:
    assert stored_rows(star, cache) == computed_rows(star, plan)


MORE = [
    (1, "pen", 4, 7, "3.00"),
    (3, "cup", 4, None, "0.50"),
    (2, None, 5, 1, None),
]


def sums_plan(star: Star, name: str = "sums") -> CachePlan:
    """Sums, counts and an average by item, without anything that rows cannot be taken from."""
    block = Block(
        relations=(star.relation("sales"), star.relation("shops")),
        predicates=(JOIN_ON,),
        outputs=(
            Output("item", ITEM),
            Output("city", CITY),
            Output("total", total(AMOUNT)),
            Output("worth", total(PRICE, "decimal(20,2)")),
            Output("mean", Agg("avg", (PRICE,), "decimal(14,6)")),
            Output("n", Agg("count", (AMOUNT,), "bigint", False)),
        ),
        group_keys=(ITEM, CITY),
    )
    return plan_definition(name, block)


def sums_cube(star: Star, name: str = "sums_cube") -> CachePlan:
    flat = sums_plan(star)
    block = Block(
        relations=flat.relations,
        predicates=flat.predicates,
        outputs=(
            Output("item", ITEM),
            Output("city", CITY),
            Output("total", total(AMOUNT)),
            Output("n", Agg("count", (AMOUNT,), "bigint", False)),
        ),
        group_keys=(ITEM, CITY),
        grouping_sets=((0, 1), (0,), (1,), ()),
    )
    return plan_definition(name, block)


VECTORS = "ALTER TABLE {sales} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
SIGNED = {
    "update": "UPDATE {sales} SET amount = amount * 2 WHERE day < 3",
    "update of a key": "UPDATE {sales} SET item = 'cup', shop_id = 3 WHERE amount = 60",
    "delete": "DELETE FROM {sales} WHERE item = 'ink'",
    "delete of NULL": "DELETE FROM {sales} WHERE item IS NULL",
    "merge": "MERGE INTO {sales} t USING (SELECT 'pen' AS k) s ON t.item = s.k "
    "WHEN MATCHED AND t.day = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET amount = 5",
    "overwrite": "INSERT OVERWRITE {sales} SELECT * FROM {sales} WHERE day > 1",
    "of a dimension": "UPDATE {shops} SET city = 'Bergen' WHERE id = 1",
    "from a dimension": "DELETE FROM {shops} WHERE id = 2",
    "everything": "DELETE FROM {sales} WHERE true",
}
