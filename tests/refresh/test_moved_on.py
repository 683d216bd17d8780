"""Refreshes after commits that changed no row: nothing is computed, the snapshot moves on."""

from __future__ import annotations

import pytest

from cachemgr.refresh.run import explain_refresh
from cachemgr.vocabulary import JoinState, RunState
from tests.worlds.refresh_star import Star, flat_plan, plain_plan

pytestmark = pytest.mark.spark


def optimize(star: Star, name: str = "sales") -> None:
    star.spark.sql(f"OPTIMIZE delta.`{star.path(name)}`")


def jobs(star: Star) -> int:
    """How many jobs this application has run."""
    return int(star.spark._jsc.sc().dagScheduler().numTotalJobs())


def test_a_compaction_moves_the_snapshot_on_and_computes_nothing(star: Star) -> None:
    cache = star.cache(plain_plan(star))
    star.sell((1, "pen", 4, 1, "1.00"))
    first = star.refresh(cache)
    head, rows = star.head(cache), star.stored(cache)
    optimize(star)
    [before] = star.store.snapshots.published(cache.id).tables
    told = explain_refresh(star.spark, star.store, cache.id, now=star.clock)
    assert told.mode == "UNCHANGED" and [s.name for s in told.stages] == ["MoveOn"]
    ran = jobs(star)
    run = star.refresh(cache)
    assert jobs(star) == ran
    assert (run.state, run.mode) == (RunState.UNCHANGED, "UNCHANGED")
    assert run.reason == "no row of a base table changed: 1 commit without data change"
    assert star.head(cache) == head and star.stored(cache) == rows
    published = star.store.snapshots.published(cache.id)
    assert published.run.id == run.id != first.id
    [table] = published.tables
    assert table.version == before.version + 1 and table.commit_id not in (None, before.commit_id)
    assert table.columns == before.columns
    assert run.cache_version == first.cache_version and run.rows == first.rows
    assert star.refresh(cache).reason == "no base table moved"
    full = star.refresh(cache, mode="FULL")
    assert full.state is RunState.PUBLISHED and star.head(cache) == head + 1


def test_a_full_refresh_says_what_changed(star: Star) -> None:
    cache = star.cache(plain_plan(star))
    star.refresh(cache)
    star.sell((1, "pen", 4, 1, "1.00"), (1, "pen", 4, 2, "1.00"))
    optimize(star)
    run = star.refresh(cache)
    assert run.mode == "FULL"
    assert "2 commits appended 2 rows in 1 file that were compacted since" in run.reason
    assert "[RANGE_REWRITTEN]" in run.reason
    star.spark.sql(f"DELETE FROM delta.`{star.path('sales')}` WHERE item = 'ink'")
    assert "changed rows" in star.refresh(cache).reason


def test_joins_that_held_stay_held_and_are_known_at_the_new_versions(star: Star) -> None:
    star.declare_join()
    cache = star.cache(flat_plan(star))
    star.write("shops", [(4, "Genf", None)], "id bigint, city string, region string", "append")
    first = star.refresh(cache)
    assert first.facts["joins"] == ["sales_shops"]
    optimize(star, "shops")
    run = star.refresh(cache)
    assert run.mode == "UNCHANGED" and run.facts["joins"] == ["sales_shops"]
    [join] = star.store.joins.all()
    now = {t.location: t.state for t in star.store.snapshots.published(cache.id).tables}
    assert join.state is JoinState.VALID
    assert all(state.agrees(now[place]) for place, state in join.validated_versions.items())
    assert len(join.validated_versions) == 2


def test_a_join_that_was_validated_elsewhere_stays_where_it_was(star: Star) -> None:
    """Only what was found in the snapshot's own versions is known to hold in later ones."""
    star.declare_join()
    cache = star.cache(flat_plan(star))
    star.write("shops", [(4, "Genf", None)], "id bigint, city string, region string", "append")
    star.refresh(cache)
    [join] = star.store.joins.all()
    place = star.key("shops")
    older = {**join.validated_versions, place: join.validated_versions[place]._replace(version=0)}
    star.store.joins.update_state(join.id, JoinState.VALID, validated_versions=older)
    optimize(star, "shops")
    assert star.refresh(cache).mode == "UNCHANGED"
    [join] = star.store.joins.all()
    assert join.validated_versions[place].version == 0
