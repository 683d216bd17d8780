"""A refresh that dies, is fenced off or is fooled leaves the last snapshot serving, and the next
one repairs.
"""

from __future__ import annotations

import sys
import textwrap
import time
from datetime import timedelta
from pathlib import Path

import pytest

from cachemgr.delta.log import head
from cachemgr.delta.own_session import own_session
from cachemgr.delta.tables import TableRead
from cachemgr.errors import ConflictError, LeaseLostError, RefreshError
from cachemgr.metastore import open_metastore
from cachemgr.refresh.full.build import build_rows
from cachemgr.refresh.planning.steps import PinVersions
from cachemgr.refresh.write import read_back, table_spec, write_commit
from cachemgr.vocabulary import RunState
from tests.databases import on_both
from tests.processes import SMALL_SPARK, Started, until
from tests.worlds.refresh_star import (
    SALES,
    SALES_ROWS,
    SHOPS,
    SHOPS_ROWS,
    Clock,
    Crash,
    Star,
    crash_at,
    plain_plan,
)

pytestmark = pytest.mark.spark


BEFORE_THE_COMMIT = ("started", "pinned", "PinVersions", "writing")
AFTER_THE_COMMIT = ("written", "WriteFull", "Measure", "publishing")


def published_cache(star: Star):
    cache = star.cache(plain_plan(star))
    star.refresh(cache)
    star.sell((5, "cup", 9, 9, "9.00"))
    return cache


def crash(star: Star, cache, step: str) -> None:
    with pytest.raises(Crash):
        star.refresh(cache, checkpoint=crash_at(step))
    # The dead process renews nothing: its lease runs out.
    star.clock.at += timedelta(hours=1)


def has_cup(rows) -> bool:
    return any(row[0] == "cup" for row in rows)


@pytest.mark.parametrize("step", BEFORE_THE_COMMIT)
def test_crash_before_the_commit(star: Star, step: str) -> None:
    cache = published_cache(star)
    before, top = star.stored(cache), star.head(cache)
    crash(star, cache, step)
    assert star.stored(cache) == before and star.head(cache) == top
    run = star.refresh(cache)
    assert run.mode == "FULL" and run.cache_version == top + 1 and has_cup(star.stored(cache))


@pytest.mark.parametrize("step", AFTER_THE_COMMIT)
def test_crash_after_the_commit_is_adopted_and_not_computed_twice(star: Star, step: str) -> None:
    cache = published_cache(star)
    before, top = star.stored(cache), star.head(cache)
    crash(star, cache, step)
    assert star.head(cache) == top + 1 and star.stored(cache) == before
    run = star.refresh(cache)
    assert run.mode == "ADOPT" and run.state is RunState.PUBLISHED
    assert run.cache_version == top + 1 == star.head(cache) and run.rows == 4
    assert has_cup(star.stored(cache)) and run.plan["rows"] == 4
    states = [r.state for r in star.store.refreshes.of(cache.id)]
    assert states == [RunState.PUBLISHED, RunState.SUPERSEDED, RunState.PUBLISHED]


def test_crash_after_the_commit_and_the_base_moved_on(star: Star) -> None:
    """What lies on top is published at its own versions, and a second run adds what came since."""
    cache = published_cache(star)
    top = star.head(cache)
    crash(star, cache, "written")
    star.sell((5, "bag", 9, 9, "9.00"))
    run = star.refresh(cache)
    assert run.cache_version == top + 2 == star.head(cache)
    adopted = star.store.refreshes.of(cache.id)[1]
    assert adopted.mode == "ADOPT" and adopted.cache_version == top + 1
    assert any(r[0] == "bag" for r in star.stored(cache)) and has_cup(star.stored(cache))


def test_what_is_adopted_was_read_when_the_run_that_wrote_it_began(star: Star) -> None:
    """Else MAX STALENESS would count from the run that published it, though the tables had moved
    long before."""
    cache = published_cache(star)
    began = star.clock.at
    crash(star, cache, "written")
    star.sell((5, "bag", 9, 9, "9.00"))
    starts: list[str] = []

    def second_run_dies(step: str) -> None:
        starts.extend([step] if step == "started" else [])
        if len(starts) == 2:
            raise Crash(step)

    with pytest.raises(Crash):
        star.refresh(cache, checkpoint=second_run_dies)
    adopted = star.store.snapshots.published(cache.id)
    assert adopted.run.mode == "ADOPT" and adopted.read_at == began < adopted.run.started_at
    star.clock.at += timedelta(hours=1)
    star.refresh(cache)
    now = star.store.snapshots.published(cache.id)
    assert now.read_at == now.run.started_at == star.clock.at


def test_a_stray_commit_over_an_unchanged_cache_is_undone(star: Star) -> None:
    cache = star.cache(plain_plan(star))
    star.refresh(cache)
    before = star.stored(cache)
    rows = star.spark.read.format("delta").load(cache.location)
    rows.limit(1).write.format("delta").mode("append").save(cache.location)
    run = star.refresh(cache)
    assert run.mode == "RESTORE" and run.state is RunState.PUBLISHED
    assert star.stored(cache) == before and run.cache_version == star.head(cache)
    assert star.refresh(cache).state is RunState.UNCHANGED


def test_a_stray_commit_after_the_restore_is_not_published(star: Star) -> None:
    cache = star.cache(plain_plan(star))
    first = star.refresh(cache)
    before = star.stored(cache)

    def stray(step: str = "RestorePublished") -> None:
        if step == "RestorePublished":
            rows = star.spark.read.format("delta").load(cache.location)
            rows.limit(1).write.format("delta").mode("append").save(cache.location)

    stray()
    run = star.refresh(cache, checkpoint=stray)
    assert run.mode == "RESTORE" and star.stored(cache) == before
    assert run.cache_version == first.cache_version + 2 == star.head(cache) - 1


def test_an_error_while_writing_keeps_the_snapshot_and_gives_the_lease_back(star: Star) -> None:
    cache = published_cache(star)
    before = star.stored(cache)

    def fail(step: str) -> None:
        if step == "writing":
            raise OSError("disk full")

    with pytest.raises(RefreshError, match=r"by_item failed: disk full") as caught:
        star.refresh(cache, checkpoint=fail)
    assert caught.value.code == "REFRESH_FAILED" and star.stored(cache) == before
    failed = star.store.refreshes.of(cache.id)[0]
    assert failed.state is RunState.FAILED and "disk full" in failed.error
    assert star.refresh(cache).state is RunState.PUBLISHED


def test_the_same_commit_number_offered_twice_is_an_error_and_not_published(star: Star) -> None:
    cache = published_cache(star)
    before, top = star.stored(cache), star.head(cache)
    used = star.store.snapshots.published(cache.id).run.commit_number
    session = own_session(star.spark, {})
    plan = plain_plan(star)
    built = build_rows(session, plan, [TableRead(star.key("sales"), 1)])
    write_commit(
        session,
        built.rows,
        table_spec(cache, plan, 0),
        app_id=cache.id,
        commit_number=used,
        stamp={"refresh_id": "twice"},
    )
    assert star.head(cache) == top, "Delta skips it, and says that all is well"
    with pytest.raises(RefreshError, match="not in the log") as caught:
        read_back(session, cache.name, cache.location, top, "twice")
    assert caught.value.code == "COMMIT_SKIPPED" and star.stored(cache) == before


def test_numbers_that_the_log_holds_are_not_given_again(star: Star) -> None:
    from sqlalchemy import text

    cache = published_cache(star)
    before = star.stored(cache)
    used = star.store.snapshots.published(cache.id).run.commit_number
    with star.store.engine.begin() as connection:
        connection.execute(text("UPDATE commit_numbers SET last = 0"))
    run = star.refresh(cache)
    assert run.state is RunState.PUBLISHED and star.stored(cache) != before
    assert run.commit_number == used + 1


def test_someone_else_writes_to_the_cache_in_between(star: Star) -> None:
    cache = published_cache(star)
    before = star.stored(cache)

    def meddle(step: str) -> None:
        if step == "writing":
            rows = star.spark.read.format("delta").load(cache.location).limit(1)
            rows.write.format("delta").mode("append").save(cache.location)

    with pytest.raises(RefreshError) as caught:
        star.refresh(cache, checkpoint=meddle)
    assert caught.value.code == "COMMIT_MISPLACED" and star.stored(cache) == before
    run = star.refresh(cache)
    assert run.state is RunState.PUBLISHED and has_cup(star.stored(cache))
    assert star.spark.read.format("delta").load(cache.location).count() == 4


def test_the_stages_of_a_run_are_stored(star: Star) -> None:
    cache = star.cache(plain_plan(star))
    run = star.refresh(cache)
    assert run.stages[0]["stage"] == PinVersions.__name__


@pytest.fixture
def fenced(spark: object, tmp_path: Path, metastore_url: str):
    """The star with its metastore on SQLite and on PostgreSQL."""
    with open_metastore(metastore_url) as store:
        made = Star(spark, store, tmp_path, Clock())
        made.write("sales", SALES_ROWS, SALES, "overwrite")
        made.write("shops", SHOPS_ROWS, SHOPS, "overwrite")
        yield made


@on_both
def test_a_lost_lease_publishes_nothing(fenced: Star) -> None:
    """Taken over after the commit and before publishing: the later token wins, the earlier one's
    commit is undone.
    """
    star = fenced
    cache = published_cache(star)
    before = star.stored(cache)

    def take_over(step: str) -> None:
        if step == "written":
            star.clock.at += timedelta(hours=1)
            star.store.refreshes.start(
                cache.id, "other", now=star.clock(), lease_seconds=60, mode="AUTO", reason="…"
            )

    with pytest.raises(LeaseLostError):
        star.refresh(cache, checkpoint=take_over)
    assert star.stored(cache) == before
    states = [r.state for r in star.store.refreshes.of(cache.id)]
    assert states[:2] == [RunState.RUNNING, RunState.SUPERSEDED]
    with pytest.raises(ConflictError, match="is being refreshed by other"):
        star.refresh(cache)
    star.clock.at += timedelta(hours=1)
    run = star.refresh(cache)
    assert run.mode == "FULL", "the commit's token is not the last one: it is not adopted"
    assert "RestorePublished" in [s["stage"] for s in run.stages] and has_cup(star.stored(cache))


@on_both
def test_two_refreshes_at_once_one_runs(fenced: Star) -> None:
    star = fenced
    cache = published_cache(star)
    refused = []

    def second(step: str) -> None:
        if step == "writing":
            try:
                star.refresh(cache)
            except ConflictError as error:
                refused.append(error.code)

    run = star.refresh(cache, checkpoint=second)
    assert refused == ["REFRESH_RUNNING"] and run.state is RunState.PUBLISHED


def test_the_lease_is_renewed_while_spark_works(star: Star) -> None:
    cache = published_cache(star)

    def slow(step: str) -> None:
        if step == "writing":
            start = star.store.refreshes.lease(cache.id).expires_at
            star.clock.at += timedelta(seconds=5)
            deadline = time.monotonic() + 10
            while star.store.refreshes.lease(cache.id).expires_at == start:
                assert time.monotonic() < deadline
                time.sleep(0.05)

    assert star.refresh(cache, checkpoint=slow, lease_seconds=0.6).state is RunState.PUBLISHED


@pytest.mark.slow
def test_sigkill_in_the_middle_of_a_refresh(star: Star, tmp_path: Path) -> None:
    cache = published_cache(star)
    before, top = star.stored(cache), star.head(cache)
    script = textwrap.dedent(
        f"""
        import time
        from datetime import UTC, datetime
        from pathlib import Path
        from cachemgr.metastore import open_metastore
        from tests.worlds.refresh_star import Clock, Star
        from tests.spark_start import with_delta
        from pyspark.sql import SparkSession

        builder = (
            SparkSession.builder.master("local[1]")
            .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
            .config("spark.sql.catalog.spark_catalog",
                    "org.apache.spark.sql.delta.catalog.DeltaCatalog")
            .config("spark.sql.warehouse.dir", {str(tmp_path / "other")!r})
        )
        for key, value in {SMALL_SPARK!r}.items():
            builder.config(key, value)
        spark = with_delta(builder).getOrCreate()
        store = open_metastore({star.store.url!r})
        star = Star(spark, store, Path({str(star.folder)!r}), Clock())
        star.clock.at = datetime.now(UTC)

        def wait(step):
            if step == "written":
                Path({str(tmp_path / "written")!r}).touch()
                time.sleep(600)

        star.refresh(store.caches.get({cache.id!r}), checkpoint=wait, lease_seconds=3)
        """
    )
    child = Started.run([sys.executable, "-c", script], tmp_path / "child.log", tmp_path, {})

    def written() -> bool:
        assert child.alive, child.text()[-4000:]
        return (tmp_path / "written").exists()

    try:
        until(written, 240, "the refresh has written its commit")
    finally:
        child.kill()
    assert star.stored(cache) == before and star.head(cache) == top + 1
    found = head(star.spark, cache.location)
    assert found is not None and found.stamp["parent_version"] == top
    star.clock.at = star.store.refreshes.lease(cache.id).expires_at + timedelta(seconds=1)
    run = star.refresh(cache)
    assert run.mode == "ADOPT" and has_cup(star.stored(cache))


def test_a_metastore_put_back_from_its_own_copy_refreshes_at_once(star: Star) -> None:
    """The log has numbers and versions that it does not know: none is used twice, none serves."""
    cache = star.cache(plain_plan(star))
    first = star.refresh(cache)
    star.store.engine.dispose()
    file = star.folder / "metastore.db"
    copy = file.read_bytes()
    for item in ("cup", "bag"):
        star.sell((5, item, 9, 9, "9.00"))
        star.refresh(cache)
    top = star.head(cache)
    star.store.engine.dispose()
    for left in star.folder.glob("metastore.db-*"):
        left.unlink()
    file.write_bytes(copy)
    assert star.store.snapshots.published(cache.id).run.id == first.id
    star.sell((5, "mug", 9, 9, "9.00"))
    run = star.refresh(cache)
    assert run.state is RunState.PUBLISHED and "put back from a copy" in run.reason
    assert run.cache_version > top and any(row[0] == "mug" for row in star.stored(cache))
    assert star.refresh(cache).state is RunState.UNCHANGED
