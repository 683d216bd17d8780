"""Incremental refreshes on real Spark and Delta: after each change, what is stored, read as one row
a group, is what a full refresh of the same versions stores."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import LongType, StructField, StructType

from cachemgr.delta.log import shape
from cachemgr.delta.tables import TableRead, run_select
from cachemgr.errors import RefreshError
from cachemgr.metastore.records import CacheRecord, RefreshRunRecord, new_id
from cachemgr.refresh.write import TableSpec, create_table
from cachemgr.vocabulary import RunState
from matcher.model.codec import decode_plan
from matcher.model.expr import Agg
from matcher.model.ir import Block, CachePlan, MatchOptions, Output
from matcher.normalize.stored_plan import plan_definition
from matcher.partials.collapse import render_collapsed
from matcher.render.select import quote, render_stored
from tests.worlds.refresh_star import (
    AMOUNT,
    CITY,
    ITEM,
    JOIN_ON,
    PRICE,
    SALES,
    SHOPS,
    Star,
    cube_plan,
    flat_plan,
    plain_plan,
    rows_of,
    total,
)

pytestmark = pytest.mark.spark


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


def all_plan(star: Star, name: str = "all") -> CachePlan:
    """One row over all sales."""
    block = Block(
        relations=(star.relation("sales"),),
        predicates=(),
        outputs=(Output("total", total(AMOUNT)), Output("n", Agg("count", (), "bigint", False))),
        group_keys=(),
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


def test_rows_are_appended(star: Star) -> None:
    plan = flat_plan(star)
    cache = star.cache(plan)
    star.refresh(cache)
    star.sell(*MORE)
    run = star.refresh(cache, mode="INCREMENTAL")
    assert (run.state, run.mode) == (RunState.PUBLISHED, "APPEND")
    check(star, cache, plan)
    assert run.rows == 9 and decode_plan(dict(run.plan)).rows == 9
    assert star.refresh(cache).state is RunState.UNCHANGED


def test_few_groups_are_written_anew(star: Star) -> None:
    plan = by_item_plan(star)
    cache = star.cache(plan)
    star.refresh(cache)
    star.sell(*MORE)
    run = star.refresh(cache, mode="INCREMENTAL")
    assert run.mode == "REPLACE"
    check(star, cache, plan)
    assert not decode_plan(dict(run.plan)).partials
    assert run.rows == 4
    full = star.refresh(cache, mode="FULL")
    assert full.mode == "FULL" and full.rows == run.rows
    assert set(full.facts) >= {"totals", "bounds"}
    for fact in ("totals", "base_rows", "non_null", "exact_sums"):
        assert full.facts[fact] == run.facts[fact]


@pytest.fixture
def deep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every set counts as large, and may hold many partial rows."""
    monkeypatch.setattr("cachemgr.refresh.by_change.incremental.FEW_ROWS", -1)
    monkeypatch.setattr("cachemgr.refresh.by_change.incremental.MOST_PARTIALS", 100)


@pytest.mark.usefixtures("deep")
def test_partial_rows_are_appended(star: Star) -> None:
    plan = by_item_plan(star)
    cache = star.cache(plan)
    star.refresh(cache)
    star.sell(*MORE)
    run = star.refresh(cache, mode="INCREMENTAL")
    assert run.mode == "PARTIALS"
    assert decode_plan(dict(run.plan)).partials == {0} and run.rows == 6
    check(star, cache, plan)
    star.sell((1, "pen", 9, -17, "9.99"))
    again = star.refresh(cache, mode="INCREMENTAL")
    assert again.mode == "PARTIALS" and again.rows == 7
    assert again.facts["groups"] == {"0": 3}
    check(star, cache, plan)
    full = star.refresh(cache, mode="FULL")
    assert not decode_plan(dict(full.plan)).partials
    for fact in ("totals", "base_rows", "non_null", "exact_sums"):
        assert full.facts[fact] == again.facts[fact]
    check(star, cache, plan)


@pytest.mark.usefixtures("deep")
def test_partial_rows_beside_sets_that_are_written_anew(
    star: Star, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cachemgr.refresh.by_change.incremental.FEW_ROWS", 2)
    plan = cube_plan(star)
    cache = star.cache(plan)
    star.refresh(cache)
    star.sell(*MORE)
    run = star.refresh(cache, mode="INCREMENTAL")
    assert run.mode == "PARTIALS"
    partials = decode_plan(dict(run.plan)).partials
    assert 0 < len(partials) < len(plan.grouping_sets)
    check(star, cache, plan)
    star.sell(*MORE)
    again = star.refresh(cache, mode="INCREMENTAL")
    check(star, cache, plan)
    full = star.refresh(cache, mode="FULL")
    assert full.facts["totals"] == again.facts["totals"]
    check(star, cache, plan)


def test_a_cube_is_written_anew_set_by_set(star: Star) -> None:
    plan = cube_plan(star)
    cache = star.cache(plan)
    star.refresh(cache)
    star.sell(*MORE)
    run = star.refresh(cache, mode="INCREMENTAL")
    assert run.mode == "REPLACE"
    check(star, cache, plan)


@pytest.fixture(params=["name", "id"])
def mapped(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Caches' tables are made as an earlier release made them by default, or by a property."""

    def create(session: Any, spec: TableSpec, schema: StructType) -> None:
        properties = {**spec.properties, "delta.columnMapping.mode": request.param}
        create_table(session, replace(spec, properties=properties), schema)

    monkeypatch.setattr("cachemgr.refresh.stages.create_table", create)


@pytest.mark.usefixtures("mapped", "deep")
@pytest.mark.parametrize("few", [-1, 2, 1000])
def test_the_log_of_a_cube_has_other_names_for_its_columns(
    star: Star, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr("cachemgr.refresh.by_change.incremental.FEW_ROWS", few)
    plan = cube_plan(star)
    cache = star.cache(plan)
    full = star.refresh(cache)
    stored = decode_plan(dict(full.plan))
    assert sum(s.rows for s in stored.grouping_sets) == full.rows
    for _ in range(2):
        star.sell(*MORE)
        run = star.refresh(cache, mode="INCREMENTAL")
        assert run.mode == ("REPLACE" if few == 1000 else "PARTIALS")
        check(star, cache, plan)
    again = star.refresh(cache, mode="FULL")
    for fact in ("totals", "non_null"):
        assert again.facts[fact] == run.facts[fact]


def test_the_table_of_a_cache_is_not_mapped_nor_append_only_by_default(star: Star) -> None:
    session = star.spark.newSession()
    for name, value in (("columnMapping.mode", "name"), ("appendOnly", "true")):
        session.conf.set(f"spark.databricks.delta.properties.defaults.{name}", value)
    spec = TableSpec(star.path("made"), ("a",), (), {})
    create_table(
        session, spec, StructType([StructField("a", LongType()), StructField("b", LongType())])
    )
    made = shape(session, spec.location).properties
    assert not [key for key in made if "columnMapping" in key or "appendOnly" in key]


def test_a_global_aggregate_stays_one_row(star: Star) -> None:
    plan = all_plan(star)
    cache = star.cache(plan)
    star.refresh(cache)
    star.sell(*MORE)
    assert star.refresh(cache, mode="INCREMENTAL").mode == "REPLACE"
    check(star, cache, plan)
    assert len(stored_rows(star, cache)) == 1


def test_a_dimension_that_grew(star: Star) -> None:
    plan = cube_plan(star)
    cache = star.cache(plan)
    star.refresh(cache)
    star.write("shops", [(3, "Bergen", "north")], SHOPS, "append")
    run = star.refresh(cache, mode="INCREMENTAL")
    assert run.mode == "REPLACE"
    check(star, cache, plan)


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


@pytest.mark.parametrize(
    ("few_rows", "vectors"),
    [
        pytest.param(100_000, False, id="anew"),
        pytest.param(-1, True, id="partials-vectors"),
        pytest.param(2, True, id="mixed-vectors"),
        pytest.param(100_000, True, id="anew-vectors"),
        pytest.param(-1, False, id="partials"),
        pytest.param(2, False, id="mixed"),
    ],
)
def test_rows_that_went_are_taken_away(
    star: Star, monkeypatch: pytest.MonkeyPatch, few_rows: int, vectors: bool
) -> None:
    monkeypatch.setattr("cachemgr.refresh.by_change.incremental.FEW_ROWS", few_rows)
    monkeypatch.setattr("cachemgr.refresh.by_change.incremental.MOST_PARTIALS", 100)
    names = {name: f"delta.`{star.path(name)}`" for name in ("sales", "shops")}
    if vectors:
        star.spark.sql(VECTORS.format(**names))
    plans = [sums_plan(star), sums_cube(star)]
    caches = [star.cache(plan) for plan in plans]
    for cache in caches:
        star.refresh(cache)
    for told, change in SIGNED.items():
        star.spark.sql(change.format(**names))
        for cache, plan in zip(caches, plans, strict=True):
            run = star.refresh(cache, mode="INCREMENTAL")
            assert run.mode in ("REPLACE", "PARTIALS"), (told, run.reason)
            assert stored_rows(star, cache) == computed_rows(star, plan), told
        if told in ("delete", "overwrite"):
            star.sell(*MORE)
            for cache in caches:
                star.refresh(cache, mode="INCREMENTAL")
    for cache in caches:
        kept = star.store.snapshots.published(cache.id).run.facts
        full = star.refresh(cache, mode="FULL").facts
        assert {k: full[k] for k in ("totals", "base_rows")} == {
            k: kept[k] for k in ("totals", "base_rows")
        }


FEED = "ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = '{on}')"


def switch_feed(star: Star, on: bool = True, tables: tuple[str, ...] = ("sales", "shops")) -> None:
    for name in tables:
        star.spark.sql(FEED.format(table=f"delta.`{star.path(name)}`", on=str(on).lower()))


def by_feed(run: RefreshRunRecord) -> bool:
    return "from its Change Data Feed" in str(run.stages)


@pytest.fixture
def short_feeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A feed is read where there is one: of so few rows its files are as long as the others."""
    monkeypatch.setattr("cachemgr.refresh.by_change.incremental.FEED_READS", 0.0)


@pytest.mark.usefixtures("short_feeds")
@pytest.mark.parametrize(
    "few_rows",
    [
        pytest.param(100_000, id="anew"),
        pytest.param(-1, id="partials"),
    ],
)
def test_changed_rows_are_read_from_the_change_data_feed(
    star: Star, monkeypatch: pytest.MonkeyPatch, few_rows: int
) -> None:
    monkeypatch.setattr("cachemgr.refresh.by_change.incremental.FEW_ROWS", few_rows)
    monkeypatch.setattr("cachemgr.refresh.by_change.incremental.MOST_PARTIALS", 100)
    switch_feed(star)
    names = {name: f"delta.`{star.path(name)}`" for name in ("sales", "shops")}
    star.spark.sql(VECTORS.format(**names))
    plan = sums_cube(star)
    cache = star.cache(plan)
    star.refresh(cache)
    for told, change in SIGNED.items():
        star.spark.sql(change.format(**names))
        run = star.refresh(cache, mode="INCREMENTAL")
        assert run.mode in ("REPLACE", "PARTIALS"), (told, run.reason)
        assert by_feed(run), (told, run.stages)
        assert stored_rows(star, cache) == computed_rows(star, plan), told
        if told in ("delete", "overwrite"):
            star.sell(*MORE)
            star.spark.sql(f"UPDATE {names['sales']} SET amount = amount + 1 WHERE item = 'cup'")
            assert by_feed(star.refresh(cache, mode="INCREMENTAL")), "several commits"
            check(star, cache, plan)


@pytest.mark.usefixtures("short_feeds")
def test_a_change_data_feed_that_was_switched_meanwhile_is_not_read(star: Star) -> None:
    plan = sums_plan(star)
    cache = star.cache(plan)
    star.refresh(cache)
    update = f"UPDATE delta.`{star.path('sales')}` SET amount = amount + 1 WHERE item = 'pen'"
    for on in (True, False):
        star.spark.sql(update)
        switch_feed(star, on, ("sales",))
        star.spark.sql(update)
        run = star.refresh(cache, mode="INCREMENTAL")
        assert run.mode == "REPLACE" and not by_feed(run)
        check(star, cache, plan)
        star.spark.sql(update)
        assert by_feed(star.refresh(cache, mode="INCREMENTAL")) is on
        check(star, cache, plan)


@pytest.mark.usefixtures("short_feeds")
def test_a_change_data_feed_whose_files_are_gone_is_not_read(star: Star) -> None:
    switch_feed(star)
    plan = sums_plan(star)
    cache = star.cache(plan)
    star.refresh(cache)
    place = star.path("sales")
    star.spark.sql(f"UPDATE delta.`{place}` SET amount = amount + 1 WHERE item = 'pen'")
    for file in Path(place).glob("_change_data/**/*.parquet"):
        file.unlink()
    run = star.refresh(cache, mode="INCREMENTAL")
    assert run.mode == "REPLACE" and not by_feed(run)
    check(star, cache, plan)


@pytest.mark.usefixtures("short_feeds")
def test_a_change_data_feed_outlives_the_files_that_went(star: Star) -> None:
    switch_feed(star)
    plan = sums_plan(star)
    cache = star.cache(plan)
    star.refresh(cache)
    place = star.path("sales")
    before = set(star.spark.read.format("delta").load(place).inputFiles())
    star.spark.sql(f"UPDATE delta.`{place}` SET amount = amount + 1 WHERE item = 'pen'")
    for file in before - set(star.spark.read.format("delta").load(place).inputFiles()):
        Path(file.removeprefix("file://").removeprefix("file:")).unlink()
    assert by_feed(star.refresh(cache, mode="INCREMENTAL"))
    check(star, cache, plan)


@pytest.mark.usefixtures("short_feeds")
def test_a_join_is_checked_on_rows_of_the_change_data_feed(star: Star) -> None:
    switch_feed(star)
    star.declare_join()
    plan = sums_plan(star)
    cache = star.cache(plan)
    assert star.refresh(cache).facts["joins"] == ["sales_shops"]
    update = f"UPDATE delta.`{star.path('sales')}` SET %s WHERE item = 'ink'"
    star.spark.sql(update % "amount = 1")
    run = star.refresh(cache, mode="INCREMENTAL")
    assert by_feed(run) and run.facts["joins"] == ["sales_shops"]
    star.spark.sql(update % "shop_id = 99")
    run = star.refresh(cache, mode="INCREMENTAL")
    assert by_feed(run) and run.facts["joins"] == []
    check(star, cache, plan)


def test_rows_that_went_of_what_has_extremes_are_computed_as_a_whole(star: Star) -> None:
    for plan in (by_item_plan(star), flat_plan(star)):
        cache = star.cache(plan)
        star.refresh(cache)
        star.spark.sql(f"DELETE FROM delta.`{star.path('sales')}` WHERE item = 'ink'")
        run = star.refresh(cache, mode="INCREMENTAL")
        assert run.mode == "FULL" and "ROWS_REMOVED" in run.reason
        check(star, cache, plan)
        star.sell((1, "ink", 2, 7, "2.00"))


def test_sums_that_an_average_can_no_longer_be_computed_from(star: Star) -> None:
    plan = plain_plan(star)  # has an AVG of whole numbers
    cache = star.cache(plan)
    star.refresh(cache)
    star.sell(*MORE)
    assert star.refresh(cache, mode="INCREMENTAL").mode == "REPLACE"
    check(star, cache, plan)
    published = star.store.snapshots.published(cache.id).run.id
    star.sell((1, "pen", 9, 9_007_199_254_740_993, "1.00"))
    with pytest.raises(RefreshError, match=r"AVG\(amount\).* not proven to stay within 2\^53"):
        star.refresh(cache, mode="INCREMENTAL_ONLY")
    assert star.store.snapshots.published(cache.id).run.id == published
    star.sell((1, "ink", 9, 1, "1.00"))
    run = star.refresh(cache)  # after a failure everything is computed
    assert run.mode == "FULL" and "LAST_ATTEMPT_FAILED" in run.reason
    check(star, cache, plan)


def test_a_run_that_finds_its_change_inexact_computes_everything_itself(star: Star) -> None:
    plan = plain_plan(star)
    cache = star.cache(plan)
    star.refresh(cache)
    star.sell((1, "pen", 9, 9_007_199_254_740_993, "1.00"))
    run = star.refresh(cache, mode="INCREMENTAL")
    assert run.state is RunState.PUBLISHED and run.mode == "FULL"
    check(star, cache, plan)
    star.sell((1, "pen", 9, 1, "1.00"))
    assert "NOT_MERGEABLE" in star.refresh(cache, mode="INCREMENTAL").reason
    check(star, cache, plan)


def test_files_that_are_gone_are_not_read(star: Star) -> None:
    plan = sums_plan(star)
    cache = star.cache(plan)
    star.refresh(cache)
    place = star.path("sales")
    before = set(star.spark.read.format("delta").load(place).inputFiles())
    star.spark.sql(f"UPDATE delta.`{place}` SET amount = 1 WHERE true")
    for file in before - set(star.spark.read.format("delta").load(place).inputFiles()):
        Path(file.removeprefix("file://").removeprefix("file:")).unlink()
    run = star.refresh(cache, mode="INCREMENTAL")
    assert run.mode == "FULL" and "FILES_GONE" in run.reason
    check(star, cache, plan)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (["shop_id"], ["item"]),
        (["shop_id"], ["day"]),
        (["shop_id"], []),
        ([], ["item"]),
        (["item"], ["item", "shop_id"]),
    ],
    ids=["by item", "by day", "none", "none before", "by one more"],
)
def test_a_table_that_is_partitioned_otherwise_is_computed_as_a_whole(
    star: Star, before: list[str], now: list[str]
) -> None:
    """By the schema of now, a partition column of the files that went is read as NULL."""
    place = star.path("sales")

    def overwrite(by: list[str], filter: str) -> None:
        rows = star.spark.read.format("delta").load(place).where(filter)
        writer = rows.localCheckpoint().write.format("delta").mode("overwrite")
        writer.option("overwriteSchema", "true").partitionBy(*by).save(place)

    overwrite(before, "true")
    plan = sums_plan(star)
    cache = star.cache(plan)
    star.refresh(cache)
    for filter in ("day > 1", "false"):
        overwrite(now, filter)
        run = star.refresh(cache, mode="INCREMENTAL")
        assert run.mode == "FULL" and "PARTITIONING_CHANGED" in run.reason
        check(star, cache, plan)
        star.sell(*MORE)
        assert star.refresh(cache, mode="INCREMENTAL").mode == "REPLACE"
        check(star, cache, plan)
        overwrite(before, "true")
        star.refresh(cache)


def test_files_of_the_partition_of_null_that_went(star: Star) -> None:
    """Delta says of them no partition value at all."""
    place = star.path("sales")
    rows = star.spark.read.format("delta").load(place).localCheckpoint()
    writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    writer.partitionBy("item", "shop_id").save(place)
    star.sell(*MORE, (None, None, 5, 1, "1.00"))
    plan = sums_plan(star)
    cache = star.cache(plan)
    star.refresh(cache)
    for text in (
        "UPDATE {} SET amount = amount + 1 WHERE item IS NULL",
        "DELETE FROM {} WHERE item IS NULL AND shop_id = 2",
        "DELETE FROM {} WHERE item IS NULL OR shop_id IS NULL",
    ):
        star.spark.sql(text.format(f"delta.`{place}`"))
        run = star.refresh(cache, mode="INCREMENTAL")
        assert run.mode == "REPLACE", run.reason
        check(star, cache, plan)


def test_rows_that_are_tracked_and_hidden_by_vectors(star: Star) -> None:
    name = f"delta.`{star.path('sales')}`"
    for key in ("enableRowTracking", "enableDeletionVectors"):
        star.spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.{key}' = 'true')")
    star.sell(*MORE, *MORE)
    plan = sums_plan(star)
    cache = star.cache(plan)
    star.refresh(cache)
    for which in ("item = 'pen'", "item IS NULL"):
        star.spark.sql(f"DELETE FROM {name} WHERE {which} AND amount IS NOT NULL")
        assert star.refresh(cache, mode="INCREMENTAL").mode == "REPLACE"
        check(star, cache, plan)


def test_files_from_before_rows_were_tracked(star: Star) -> None:
    plan = sums_plan(star)
    cache = star.cache(plan)
    star.refresh(cache)
    name = f"delta.`{star.path('sales')}`"
    tracking = f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
    for statements in (
        [f"UPDATE {name} SET amount = amount + 1 WHERE item = 'pen'", tracking],
        [f"UPDATE {name} SET amount = amount + 1 WHERE item = 'ink'"],
        [f"DELETE FROM {name} WHERE item = 'ink'"],
    ):
        for statement in statements:
            star.spark.sql(statement)
        star.sell(*MORE)
        assert star.refresh(cache, mode="INCREMENTAL").mode == "REPLACE"
        check(star, cache, plan)


def test_a_join_is_checked_on_rows_that_came_by_an_update(star: Star) -> None:
    star.declare_join()
    plan = sums_plan(star)
    cache = star.cache(plan)
    assert star.refresh(cache).facts["joins"] == ["sales_shops"]
    star.spark.sql(f"UPDATE delta.`{star.path('sales')}` SET shop_id = 99 WHERE item = 'ink'")
    run = star.refresh(cache, mode="INCREMENTAL")
    assert run.mode == "REPLACE" and run.facts["joins"] == []
    check(star, cache, plan)


def test_two_tables_that_grew_are_computed_as_a_whole(star: Star) -> None:
    plan = cube_plan(star)
    cache = star.cache(plan)
    star.refresh(cache)
    star.write("shops", [(4, "Bergen", "north")], SHOPS, "append")
    star.sell(*MORE)
    run = star.refresh(cache, mode="INCREMENTAL")
    assert run.mode == "FULL" and run.account.code == "SEVERAL_TABLES"
    check(star, cache, plan)
    star.write("sales", MORE, SALES, "overwrite")
    with pytest.raises(RefreshError, match="ROWS_REMOVED"):  # it stores a MIN
        star.refresh(cache, mode="INCREMENTAL_ONLY")


def test_appended_rows_may_all_be_filtered_out(star: Star) -> None:
    block = Block(
        relations=(star.relation("sales"), star.relation("shops")),
        predicates=(JOIN_ON,),
        outputs=(Output("city", CITY), Output("amount", AMOUNT)),
    )
    plan = plan_definition("narrow", block)
    cache = star.cache(plan)
    star.refresh(cache)
    star.sell((99, "pen", 1, 1, "1.00"))
    run = star.refresh(cache, mode="INCREMENTAL")
    assert run.mode == "APPEND" and run.rows == 6
    check(star, cache, plan)


def test_a_join_is_checked_on_the_appended_rows(star: Star) -> None:
    star.declare_join()
    plan = cube_plan(star)
    cache = star.cache(plan)
    first = star.refresh(cache)
    assert first.facts["joins"] == ["sales_shops"]
    star.sell(*MORE)
    kept = star.refresh(cache, mode="INCREMENTAL")
    assert kept.mode == "REPLACE" and kept.facts["joins"] == ["sales_shops"]
    star.sell((99, "pen", 1, 1, "1.00"), (None, "pen", 1, 1, "1.00"))
    lost = star.refresh(cache, mode="INCREMENTAL")
    assert lost.mode == "REPLACE" and lost.facts["joins"] == []
    message = lost.facts["joins_broken"]["sales_shops"]
    assert "2 rows of default.sales would be lost, 1 of them with a NULL key" in message
    check(star, cache, plan)


def test_appended_rows_that_find_nothing_break_no_left_join(star: Star) -> None:
    star.declare_join(finds_each=False)
    plan = cube_plan(star)
    cache = star.cache(plan)
    assert star.refresh(cache).facts["joins"] == ["sales_shops"]
    star.sell((99, "pen", 1, 1, "1.00"), (None, "pen", 1, 1, "1.00"))
    run = star.refresh(cache, mode="INCREMENTAL")
    assert run.mode == "REPLACE" and run.facts["joins"] == ["sales_shops"]
    check(star, cache, plan)


@pytest.mark.parametrize("finds_each", [True, False])
def test_a_join_declared_anew_by_other_keys_does_not_inherit(star: Star, finds_each: bool) -> None:
    """Under the name of one that held, and which the counts told of."""
    first = star.declare_join(finds_each=finds_each)
    plan = cube_plan(star)
    cache = star.cache(plan)
    assert star.refresh(cache).facts["joins"] == ["sales_shops"]
    star.store.joins.drop("sales_shops")
    by_day = replace(first, id=new_id(), keys=(("day", "id"),), finds_each=True)
    star.store.joins.create(by_day, now=star.clock())
    star.sell((1, "pen", 99, 1, "1.00"))
    run = star.refresh(cache, mode="INCREMENTAL")
    assert run.mode == "REPLACE" and run.facts["joins"] == []
    assert "day = 99" in run.facts["joins_broken"]["sales_shops"]
    check(star, cache, plan)


def test_counts_tell_nothing_of_a_join_by_other_keys(star: Star) -> None:
    star.declare_join()
    star.declare_join(name="by_day", keys=(("day", "id"),))
    plan = cube_plan(star)
    cache = star.cache(plan)
    assert star.refresh(cache).facts["joins"] == ["by_day", "sales_shops"]
    star.sell((1, "pen", 99, 1, "1.00"))
    run = star.refresh(cache, mode="INCREMENTAL")
    assert run.mode == "REPLACE" and run.facts["joins"] == ["sales_shops"]
    assert "day = 99" in run.facts["joins_broken"]["by_day"]
    check(star, cache, plan)


def test_a_filter_hides_no_lost_row(star: Star) -> None:
    """The counts tell nothing where the definition filters."""
    star.declare_join()
    plan = flat_plan(star)
    cache = star.cache(plan)
    star.refresh(cache)
    star.sell((99, "pen", 1, 1, "1.00"))
    run = star.refresh(cache, mode="INCREMENTAL")
    assert run.mode == "APPEND" and run.facts["joins"] == []
    check(star, cache, plan)


def test_auto_takes_the_change_where_it_costs_less(star: Star) -> None:
    plan = flat_plan(star)
    cache = star.cache(plan)
    star.refresh(cache)
    star.sell(*MORE)
    assert star.refresh(cache, mode="AUTO").mode in ("APPEND", "FULL")
    check(star, cache, plan)


@pytest.mark.parametrize("step", ["pinned", "writing", "written"])
def test_a_refresh_that_is_interrupted_gives_its_lease_back(star: Star, step: str) -> None:
    """Ctrl-C, and the same statement once more."""
    plan = sums_plan(star)
    cache = star.cache(plan)
    star.refresh(cache)
    star.sell(*MORE)

    def interrupt(now: str) -> None:
        if now == step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        star.refresh(cache, checkpoint=interrupt)
    [last, *_] = star.store.refreshes.of(cache.id, limit=1)
    assert last.state is RunState.CANCELLED and "REFRESH_CANCELLED" in str(last.error)
    assert star.refresh(cache).state is RunState.PUBLISHED
    check(star, cache, plan)


def test_a_refresh_whose_jobs_are_cancelled_was_cancelled(star: Star) -> None:
    """Ctrl-C where the statement runs in another thread: PySpark cancels all jobs."""
    plan = sums_plan(star)
    cache = star.cache(plan)
    star.refresh(cache)
    star.sell(*MORE)
    over = threading.Event()

    def cancel() -> None:
        while not over.wait(0.01):
            star.spark.sparkContext.cancelAllJobs()

    presses = threading.Thread(target=cancel)
    presses.start()
    try:
        with pytest.raises(RefreshError, match="as by Ctrl-C: its last snapshot") as caught:
            star.refresh(cache, mode="FULL")
    finally:
        over.set()
        presses.join()
    assert caught.value.code == "REFRESH_CANCELLED"
    [last, *_] = star.store.refreshes.of(cache.id, limit=1)
    assert last.state is RunState.CANCELLED
    assert star.refresh(cache).state is RunState.PUBLISHED
    check(star, cache, plan)


def test_top_k_is_computed_as_a_whole(star: Star) -> None:
    from matcher.model.ir import SortKey

    block = Block(
        relations=(star.relation("sales"),),
        predicates=(),
        outputs=(Output("item", ITEM), Output("amount", AMOUNT)),
        order_by=(SortKey(AMOUNT),),
        limit=2,
    )
    plan = plan_definition("first_two", block)
    cache = star.cache(plan)
    star.refresh(cache)
    star.sell(*MORE)
    run = star.refresh(cache, mode="INCREMENTAL")
    assert run.mode == "FULL" and run.account.code == "TOP_K"


def test_a_cache_that_is_partitioned(star: Star) -> None:
    plan = flat_plan(star)
    cache = star.cache(plan, partitioned_by=("city",))
    star.refresh(cache)
    star.sell(*MORE)
    assert star.refresh(cache, mode="INCREMENTAL").mode == "APPEND"
    check(star, cache, plan)


def test_a_cache_that_is_clustered(star: Star) -> None:
    for plan, way in ((flat_plan(star), "APPEND"), (by_item_plan(star), "REPLACE")):
        cache = star.cache(plan, cluster_by=("item",))
        star.refresh(cache)
        star.sell(*MORE)
        assert star.refresh(cache, mode="INCREMENTAL").mode == way
        check(star, cache, plan)
        detail = star.spark.sql(f"DESCRIBE DETAIL delta.`{cache.location}`").collect()[0]
        assert detail["clusteringColumns"] == ["item"]


def test_the_first_refresh_of_a_cache_that_is_incremental_only(star: Star) -> None:
    plan = flat_plan(star)
    cache = star.cache(plan)
    run = star.refresh(cache, mode="INCREMENTAL_ONLY")
    assert run.mode == "FULL" and run.reason.startswith("NEVER_REFRESHED")
    star.sell(*MORE)
    assert star.refresh(cache, mode="INCREMENTAL_ONLY").mode == "APPEND"


def test_a_definition_that_changed_is_computed_as_a_whole(star: Star) -> None:
    plan = flat_plan(star)
    cache = star.cache(plan)
    star.refresh(cache)
    star.sell(*MORE)
    other = replace(plan, columns=plan.columns[:2], visible=plan.visible[:2])
    run = star.refresh(cache, mode="INCREMENTAL", replan=lambda: other)
    assert run.mode == "FULL" and run.account.code == "DEFINITION_CHANGED"


def test_an_average_over_mapped_columns_is_refreshed_by_what_came(star: Star) -> None:
    """The log's statistics go by other names there."""
    mapping = "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    star.spark.sql(f"ALTER TABLE delta.`{star.path('sales')}` {mapping}")
    plan = plain_plan(star)
    cache = star.cache(plan)
    star.refresh(cache)
    star.sell(*MORE)
    run = star.refresh(cache, mode="INCREMENTAL_ONLY")
    assert run.mode == "REPLACE"
    check(star, cache, plan)
