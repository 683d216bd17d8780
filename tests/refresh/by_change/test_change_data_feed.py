"""Incremental refreshes that read what changed from a Change Data Feed."""

from __future__ import annotations

from pathlib import Path

import pytest

from cachemgr.metastore.records import RefreshRunRecord
from tests.refresh.by_change.by_change_plans import (
    MORE,
    SIGNED,
    VECTORS,
    check,
    computed_rows,
    stored_rows,
    sums_cube,
    sums_plan,
)
from tests.worlds.refresh_star import Star

pytestmark = pytest.mark.spark

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
