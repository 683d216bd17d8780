"""Full refreshes on real Spark and Delta: what is stored, what is recorded, what is refused."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from cachemgr.cache_spec import Freshness, RefreshPolicy
from cachemgr.errors import RefreshError
from cachemgr.refresh.run import explain_refresh
from cachemgr.vocabulary import FreshnessKind, JoinState, RefreshMode, RunState
from matcher.model.codec import decode_plan
from matcher.model.ir import StoredColumn
from tests.worlds.refresh_star import (
    CUBE_SETS,
    DAY,
    SALES,
    SHOPS,
    Star,
    cube_plan,
    flat_plan,
    plain_plan,
    rows_of,
)

pytestmark = pytest.mark.spark


def frames(star: Star):
    sales = star.spark.read.format("delta").load(star.path("sales"))
    shops = star.spark.read.format("delta").load(star.path("shops"))
    return sales, shops


def expected_cube(star: Star):
    """Spark's own GROUPING SETS, repeated sets once."""
    sales, shops = frames(star)
    sales.createOrReplaceTempView("x_sales")
    shops.createOrReplaceTempView("x_shops")
    names = ["item", "city", "region", "day"]
    sets = dict.fromkeys(tuple(sorted(s)) for s in CUBE_SETS)
    text = ", ".join("(" + ", ".join(names[i] for i in s) + ")" for s in sets)
    frame = star.spark.sql(
        "SELECT grouping_id() AS gid, item, city, region, day, sum(amount) AS total, "
        "sum(price) AS worth, min(amount) AS least, count(amount) AS n, count(*) AS rows "
        "FROM x_sales JOIN x_shops ON shop_id = id "
        f"GROUP BY item, city, region, day GROUPING SETS ({text})"
    )
    rows = rows_of(frame)
    star.spark.catalog.dropTempView("x_sales")
    star.spark.catalog.dropTempView("x_shops")
    return rows


def cube_rows(star: Star, cache):
    version = star.store.snapshots.published(cache.id).run.cache_version
    frame = star.spark.read.format("delta").option("versionAsOf", version).load(cache.location)
    names = ["item", "city", "region", "day", "total", "worth", "least", "n", "__rows"]
    return rows_of(frame.select("__grouping_id", *names))


def test_plain_aggregate(star: Star) -> None:
    cache = star.cache(plain_plan(star))
    run = star.refresh(cache)
    assert run.state is RunState.PUBLISHED and run.mode == "FULL"
    assert run.reason == "NEVER_REFRESHED: the cache was never refreshed"
    sales, _ = frames(star)
    frame = star.spark.read.format("delta").load(cache.location)
    assert rows_of(frame.select("item", "total", "mean", "days")) == rows_of(
        sales.groupBy("item")
        .agg({"amount": "sum"})
        .selectExpr("item", "`sum(amount)` AS total")
        .join(
            sales.groupBy("item")
            .agg({"amount": "avg", "day": "sum"})
            .selectExpr("item AS i", "`avg(amount)` AS mean", "`sum(day)` AS days"),
            on=(sales["item"].isNull() & False) | _null_safe("item", "i"),
        )
        .select("item", "total", "mean", "days")
    )
    assert run.rows == 3 and run.bytes and run.bytes > 0


def _null_safe(left: str, right: str):
    from pyspark.sql import functions as F

    return F.col(left).eqNullSafe(F.col(right))


def test_select_project_join(star: Star) -> None:
    cache = star.cache(flat_plan(star), partitioned_by=("city",))
    run = star.refresh(cache)
    sales, shops = frames(star)
    expected = sales.join(shops, sales.shop_id == shops.id).select("item", "amount", "city")
    assert star.stored(cache) == rows_of(expected)
    plan = decode_plan(run.plan)
    assert run.rows == 6 and plan.rows == 6
    assert "amount" not in plan.non_null and "item" not in plan.non_null
    assert (Path(cache.location) / "city=Oslo").is_dir()


def test_clustered(star: Star) -> None:
    cache = star.cache(flat_plan(star), cluster_by=("item",))
    star.refresh(cache)
    star.sell((1, "cup", 9, 9, "9.00"))
    star.refresh(cache)
    detail = star.spark.sql(f"DESCRIBE DETAIL delta.`{cache.location}`").collect()[0]
    assert detail["clusteringColumns"] == ["item"]
    assert len(star.stored(cache)) == 7
    wider = replace(flat_plan(star), columns=(*flat_plan(star).columns, StoredColumn("day", DAY)))
    star.refresh(cache, replan=lambda: wider)
    detail = star.spark.sql(f"DESCRIBE DETAIL delta.`{cache.location}`").collect()[0]
    assert detail["clusteringColumns"] == ["item"] and len(star.stored(cache)[0]) == 4


def test_cube_stores_duplicate_sets_once_and_records_each_sets_size(star: Star) -> None:
    cache = star.cache(cube_plan(star))
    run = star.refresh(cache)
    expected = expected_cube(star)
    assert cube_rows(star, cache) == expected
    sets = star.store.caches.grouping_sets(cache.id)
    assert len(sets) == 5
    sizes = {s.grouping_id: s.rows for s in sets}
    assert sizes == {g: sum(r[0] == g for r in expected) for g in {r[0] for r in expected}}
    assert all(s.bytes and s.bytes > 0 for s in sets)
    folders = {p.name for p in Path(cache.location).iterdir() if p.name.startswith("__grouping")}
    assert folders == {f"__grouping_id={g}" for g in sizes}
    assert decode_plan(run.plan).grouping_sets[0].rows == sizes[sets[0].grouping_id]


def test_cube_over_empty_tables_has_no_grand_total_row(star: Star) -> None:
    star.write("sales", [], SALES, "overwrite")
    cache = star.cache(cube_plan(star))
    run = star.refresh(cache)
    assert run.rows == 0 and star.stored(cache) == []
    assert [s.rows for s in star.store.caches.grouping_sets(cache.id)] == [0] * 5


def test_unchanged_runs_no_job_and_writes_no_commit(star: Star) -> None:
    cache = star.cache(plain_plan(star))
    star.refresh(cache)
    before = star.head(cache)
    run = star.refresh(cache)
    assert run.state is RunState.UNCHANGED and star.head(cache) == before
    assert [s["stage"] for s in run.stages] == ["Unchanged"]


def test_full_computes_anew_whether_or_not_anything_moved(star: Star) -> None:
    cache = star.cache(plain_plan(star))
    star.refresh(cache)
    before, rows = star.head(cache), star.stored(cache)
    run = star.refresh(cache, mode="FULL")
    assert run.state is RunState.PUBLISHED and run.reason == "ASKED_FOR: no base table moved"
    assert star.head(cache) == before + 1 and star.stored(cache) == rows


def test_each_refresh_is_one_commit_with_its_stamp(star: Star) -> None:
    cache = star.cache(plain_plan(star))
    first = star.refresh(cache)
    star.sell((1, "pen", 4, 1, "1.00"))
    second = star.refresh(cache)
    assert second.cache_version == first.cache_version + 1 == star.head(cache)
    assert second.commit_number == first.commit_number + 1
    name = f"{second.cache_version:020d}.json"
    lines = (Path(cache.location) / "_delta_log" / name).read_text().splitlines()
    actions = [json.loads(line) for line in lines]
    stamp = json.loads(next(a for a in actions if "commitInfo" in a)["commitInfo"]["userMetadata"])
    assert stamp["refresh_id"] == second.id and stamp["parent_version"] == first.cache_version
    assert stamp["fencing_token"] == second.fencing_token and stamp["mode"] == "FULL"
    assert stamp["definition"] == "SELECT …" and stamp["definition_hash"] == "h"
    tables = star.store.snapshots.published(cache.id).tables
    assert stamp["base_versions"] == [
        [t.location, t.table_id, t.version, t.commit_id] for t in tables
    ]
    txn = next(a for a in actions if "txn" in a)["txn"]
    assert (txn["appId"], txn["version"]) == (cache.id, second.commit_number)


def test_the_published_version_is_read_while_a_newer_one_is_written(star: Star) -> None:
    cache = star.cache(plain_plan(star))
    star.refresh(cache)
    before = star.stored(cache)
    star.sell((1, "pen", 4, 1, "1.00"))
    seen = []
    star.refresh(cache, checkpoint=lambda s: s == "written" and seen.append(star.stored(cache)))
    assert seen == [before] and star.stored(cache) != before


def test_table_properties_and_retention(star: Star) -> None:
    freshness = Freshness(FreshnessKind.MAX_STALENESS, 20 * 24 * 3600)
    cache = star.cache(plain_plan(star), properties={"team": "bi"}, freshness=freshness)
    star.refresh(cache)
    have = _properties(star, cache)
    assert have["team"] == "bi"
    assert have["delta.deletedFileRetentionDuration"] == "interval 480 hours"
    star.store.caches.update(
        cache.id,
        star.store.caches.get(cache.id).version,
        properties={"team": "ops's"},
        now=star.clock(),
    )
    star.sell((1, "pen", 4, 1, "1.00"))
    run = star.refresh(cache)
    assert _properties(star, cache)["team"] == "ops's"
    assert run.cache_version == run.parent_version + 1 == star.head(cache)


def _properties(star: Star, cache) -> dict[str, str]:
    detail = star.spark.sql(f"DESCRIBE DETAIL delta.`{cache.location}`").collect()[0]
    return detail["properties"]


def test_users_own_insert_during_a_refresh(star: Star) -> None:
    """All his rows are there, and nothing of ours is in his history."""
    cache = star.cache(plain_plan(star))
    errors = []

    def insert() -> None:
        try:
            for i in range(4):
                star.sell((2, "mug", i, i, "1.00"))
        except Exception as error:
            errors.append(error)

    user = threading.Thread(target=insert)
    star.refresh(cache, checkpoint=lambda step: step == "writing" and user.start())
    user.join()
    assert not errors
    sales, _ = frames(star)
    assert sales.count() == 10 and sales.where("item = 'mug'").count() == 4
    history = star.spark.sql(f"DESCRIBE HISTORY delta.`{star.path('sales')}`").collect()
    assert len(history) == 5 and all(h["userMetadata"] is None for h in history)
    # What was committed after the versions were pinned is not in the snapshot.
    assert not any(row[0] == "mug" for row in star.stored(cache))
    star.refresh(cache)
    assert any(row[0] == "mug" for row in star.stored(cache))


def test_nothing_of_ours_is_left_in_the_users_session(star: Star) -> None:
    seen = [star.spark.sql(f"SHOW {what}").collect() for what in ("TABLES", "VIEWS")]
    star.refresh(star.cache(cube_plan(star)))
    assert [star.spark.sql(f"SHOW {what}").collect() for what in ("TABLES", "VIEWS")] == seen
    ours = [k for k, _ in _settings(star) if "userMetadata" in k or "txn" in k.lower()]
    assert ours == []


def _settings(star: Star):
    return [(r["key"], r["value"]) for r in star.spark.sql("SET").collect()]


def test_a_cache_is_refreshed_under_its_own_settings(star: Star) -> None:
    plan = plain_plan(star)
    cache = star.cache(
        plan,
        settings={
            "spark.sql.sources.partitionOverwriteMode": "dynamic",
            "spark.sql.runSQLOnFiles": "false",
            "spark.sql.session.timeZone": "Asia/Tokyo",
        },
    )
    star.refresh(cache)
    star.write("sales", [(9, "cup", 1, 1, "1.00")], SALES, "overwrite")
    star.refresh(cache)
    # Under dynamic partition overwrite an "overwrite" would have kept the old rows.
    assert [row[0] for row in star.stored(cache)] == ["cup"]
    assert star.spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_incremental_falls_to_full_aloud_and_only_fails(star: Star) -> None:
    # rows that went cannot be taken from its MIN
    cache = star.cache(cube_plan(star), refresh=RefreshPolicy(mode=RefreshMode.INCREMENTAL_ONLY))
    assert star.refresh(cache).mode == "FULL"  # there was nothing to add to
    before = star.head(cache)
    star.write("sales", [(9, "cup", 1, 1, "1.00")], SALES, "overwrite")
    with pytest.raises(RefreshError, match="cannot be refreshed incrementally") as caught:
        star.refresh(cache)
    assert caught.value.code == "NOT_INCREMENTAL" and star.head(cache) == before
    failed = star.store.refreshes.of(cache.id)[0]
    assert failed.state is RunState.FAILED and "ROWS_REMOVED" in failed.error
    run = star.refresh(cache, mode="INCREMENTAL")
    assert run.mode == "FULL" and "running FULL, because ROWS_REMOVED" in run.reason


def test_explain_refresh_shows_the_stages_and_changes_nothing(star: Star) -> None:
    cache = star.cache(cube_plan(star))
    plan = explain_refresh(star.spark, star.store, cache.id, now=star.clock)
    assert [row[1] for row in plan.describe()] == [
        "FULL",
        "PinVersions",
        "PrepareTable",
        "WriteFull",
        "Measure",
        "Publish",
    ]
    assert star.head(cache) == -1 and star.store.refreshes.of(cache.id) == ()
    star.refresh(cache)
    plan = explain_refresh(star.spark, star.store, cache.id, now=star.clock)
    assert plan.mode == "UNCHANGED"


def test_a_redefined_view_is_followed_and_its_plan_published(star: Star) -> None:
    cache = star.cache(plain_plan(star))
    star.refresh(cache)
    other = replace(flat_plan(star), name=cache.name)
    run = star.refresh(cache, replan=lambda: other)
    assert run.mode == "FULL" and "definition" in run.reason
    assert decode_plan(run.plan).keys is None and len(star.stored(cache)) == 6


def test_facts(star: Star) -> None:
    cache = star.cache(plain_plan(star))
    run = star.refresh(cache)
    plan = decode_plan(run.plan)
    sums = {m.name for m in plan.measures if m.agg.func in ("sum", "try_sum")}
    assert plan.exact_sums == sums, "small integers"
    # `amount` holds a NULL, `day` does not, which only counting can tell.
    amount = {m.name for m in plan.measures if m.agg.args and repr(m.agg.args[0]) == "$0.amount"}
    assert "total" in amount and not amount & plan.non_null
    assert "days" in plan.non_null
    assert run.facts["base_rows"] == 6
    star.sell((1, "pen", 1, 1 << 51, "1.00"))
    plan = decode_plan(star.refresh(cache).plan)
    assert "total" not in plan.exact_sums and "days" in plan.exact_sums


def test_joins_that_held_are_part_of_the_snapshot(star: Star) -> None:
    star.declare_join()
    cache = star.cache(flat_plan(star))
    run = star.refresh(cache)
    assert [j.name for j in decode_plan(run.plan).joins] == ["sales_shops"]
    join = star.store.joins.named("sales_shops")
    tables = {t.location: t.state for t in star.store.snapshots.published(cache.id).tables}
    assert join.validated_versions == tables
    assert all(state.commit.startswith("txn:") for state in tables.values())


def test_a_left_join_holds_though_rows_find_nothing(star: Star) -> None:
    star.declare_join(finds_each=False)
    cache = star.cache(flat_plan(star))
    star.sell((77, "pen", 1, 1, "1.00"), (None, "pen", 1, 1, "1.00"))
    run = star.refresh(cache)
    assert [(j.name, j.finds_each) for j in decode_plan(run.plan).joins] == [("sales_shops", False)]
    star.write("shops", [(1, "Oslo", "again")], SHOPS, "append")
    run = star.refresh(cache)
    assert decode_plan(run.plan).joins == ()
    message = star.store.joins.named("sales_shops").message
    assert "would be multiplied" in message and "lost" not in message


def test_a_join_broken_after_its_declaration_stops_being_used(star: Star) -> None:
    star.declare_join()
    cache = star.cache(flat_plan(star))
    star.refresh(cache)
    star.write("shops", [(1, "Oslo", "again")], SHOPS, "append")
    star.sell((77, "pen", 1, 1, "1.00"), (None, "pen", 1, 1, "1.00"))
    run = star.refresh(cache)
    assert run.state is RunState.PUBLISHED and decode_plan(run.plan).joins == ()
    join = star.store.joins.named("sales_shops")
    assert join.state is JoinState.BROKEN
    assert "2 rows of default.sales would be lost, 1 of them with a NULL key" in join.message
    assert (
        "shop_id = 77" in join.message
        and "3 rows of default.sales would be multiplied" in join.message
    )
    assert "sales_shops" in run.facts["joins_broken"]
    sales, shops = frames(star)
    expected = sales.join(shops, sales.shop_id == shops.id).select("item", "amount", "city")
    assert star.stored(cache) == rows_of(expected)


def test_a_join_declared_after_the_refresh_is_validated_without_computing(star: Star) -> None:
    cache = star.cache(flat_plan(star))
    first = star.refresh(cache)
    star.declare_join()
    run = star.refresh(cache)
    assert run.mode == "JOINS" and run.cache_version == first.cache_version == star.head(cache)
    assert [j.name for j in decode_plan(run.plan).joins] == ["sales_shops"]
    assert star.refresh(cache).state is RunState.UNCHANGED
    star.store.joins.drop("sales_shops")
    assert decode_plan(star.refresh(cache).plan).joins == ()


def test_a_join_declared_not_validated_is_kept_as_such(star: Star) -> None:
    star.declare_join(checked=False)
    run = star.refresh(star.cache(flat_plan(star)))
    assert [j.validated for j in decode_plan(run.plan).joins] == [False]
    assert star.store.joins.named("sales_shops").state is JoinState.NOT_VALIDATED
