"""Incremental refreshes after rows were updated, deleted or overwritten."""

from __future__ import annotations

from pathlib import Path

import pytest

from cachemgr.errors import RefreshError
from cachemgr.vocabulary import RunState
from tests.refresh.by_change.by_change_plans import (
    MORE,
    SIGNED,
    VECTORS,
    by_item_plan,
    check,
    computed_rows,
    stored_rows,
    sums_cube,
    sums_plan,
)
from tests.worlds.refresh_star import Star, flat_plan, plain_plan

pytestmark = pytest.mark.spark


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
