"""Incremental refreshes check record-preserving joins on the rows that came."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cachemgr.metastore.records import new_id
from tests.refresh.by_change.by_change_plans import MORE, check, sums_plan
from tests.worlds.refresh_star import Star, cube_plan, flat_plan

pytestmark = pytest.mark.spark


def test_a_join_is_checked_on_rows_that_came_by_an_update(star: Star) -> None:
    star.declare_join()
    plan = sums_plan(star)
    cache = star.cache(plan)
    assert star.refresh(cache).facts["joins"] == ["sales_shops"]
    star.spark.sql(f"UPDATE delta.`{star.path('sales')}` SET shop_id = 99 WHERE item = 'ink'")
    run = star.refresh(cache, mode="INCREMENTAL")
    assert run.mode == "REPLACE" and run.facts["joins"] == []
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
