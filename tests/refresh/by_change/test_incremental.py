"""Incremental refreshes on real Spark and Delta: after each change, what is stored, read as one row
a group, is what a full refresh of the same versions stores."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql.types import LongType, StructField, StructType

from cachemgr.delta.log import shape
from cachemgr.errors import RefreshError
from cachemgr.refresh.write import TableSpec, create_table
from cachemgr.vocabulary import RunState
from matcher.model.codec import decode_plan
from matcher.model.expr import Agg
from matcher.model.ir import Block, CachePlan, Output
from matcher.normalize.stored_plan import plan_definition
from tests.refresh.by_change.by_change_plans import (
    MORE,
    by_item_plan,
    check,
    stored_rows,
    sums_plan,
)
from tests.worlds.refresh_star import (
    AMOUNT,
    CITY,
    ITEM,
    JOIN_ON,
    SALES,
    SHOPS,
    Star,
    cube_plan,
    flat_plan,
    plain_plan,
    total,
)

pytestmark = pytest.mark.spark


def all_plan(star: Star, name: str = "all") -> CachePlan:
    """One row over all sales."""
    block = Block(
        relations=(star.relation("sales"),),
        predicates=(),
        outputs=(Output("total", total(AMOUNT)), Output("n", Agg("count", (), "bigint", False))),
        group_keys=(),
    )
    return plan_definition(name, block)


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
