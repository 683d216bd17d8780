"""Refreshes of caches whose base tables or definitions are lost, changed or unreadable."""

from __future__ import annotations

import pytest

from cachemgr.errors import DefinitionError, ErrorCode, NotFoundError, RefreshError
from cachemgr.vocabulary import RunState
from cachemgr.worker.worker import PERMANENT
from matcher.model.ir import CachePlan
from tests.worlds.refresh_star import SALES, SHOPS, Star, flat_plan, plain_plan

pytestmark = pytest.mark.spark


def test_missing_cache(star: Star) -> None:
    from cachemgr.refresh.run import run_refresh

    with pytest.raises(NotFoundError):
        run_refresh(star.spark, star.store, "nope", now=star.clock, holder="test")


def test_dropped_base_table(star: Star) -> None:
    import shutil

    cache = star.cache(flat_plan(star))
    star.refresh(cache)
    before = star.stored(cache)
    shutil.rmtree(star.path("shops"))
    with pytest.raises(RefreshError, match=r"base table default\.shops .* is gone") as caught:
        star.refresh(cache)
    assert caught.value.code == "BASE_TABLE_LOST" and star.stored(cache) == before
    assert star.store.refreshes.of(cache.id)[0].state is RunState.FAILED


def test_the_first_refresh_that_fails_says_that_nothing_serves_yet(star: Star) -> None:
    import shutil

    cache = star.cache(flat_plan(star))
    shutil.rmtree(star.path("shops"))
    with pytest.raises(RefreshError, match="BASE_TABLE_LOST") as lost:
        star.refresh(cache)
    star.spark.sql(f"CREATE TABLE delta.`{star.path('shops')}` USING delta")
    with pytest.raises(RefreshError, match=r"the table has no column at all\)") as empty:
        star.refresh(cache)

    def fail(step: str) -> None:
        raise OSError("disk full")

    shutil.rmtree(star.path("shops"))
    star.write("shops", [(1, "Bonn", "north")], SHOPS, "overwrite")
    with pytest.raises(RefreshError, match="disk full") as full:
        star.refresh(cache, checkpoint=fail)
    assert "queries that read it fail" in str(lost.value)
    for caught in (empty, full):
        assert "never refreshed: queries keep running on the tables" in str(caught.value)
        assert "snapshot" not in str(caught.value)


def test_lost_and_changed_columns(star: Star) -> None:
    import shutil

    cache = star.cache(flat_plan(star))
    star.refresh(cache)
    before = star.stored(cache)
    shutil.rmtree(star.path("shops"))
    star.write("shops", [(1, "north")], "id bigint, region string", "overwrite")
    with pytest.raises(RefreshError, match=r"default\.shops .* has no column city") as caught:
        star.refresh(cache)
    assert caught.value.code == "BASE_COLUMN_LOST" and star.stored(cache) == before
    assert "its last snapshot is kept" in str(caught.value)

    def replan() -> CachePlan:
        raise DefinitionError("X", "cannot resolve city")

    with pytest.raises(RefreshError) as caught:
        star.refresh(cache, replan=replan)
    assert caught.value.code == "BASE_COLUMN_LOST"
    shutil.rmtree(star.path("shops"))
    star.write("shops", [(1, 7)], "id bigint, city int", "overwrite")
    with pytest.raises(RefreshError, match="is int now and was string"):
        star.refresh(cache)


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        (ErrorCode.TABLE_UNREADABLE, ErrorCode.TABLE_UNREADABLE),
        (ErrorCode.SYNTAX_ERROR, ErrorCode.DEFINITION_BROKEN),
    ],
)
def test_a_table_that_cannot_be_read_may_be_readable_later(
    star: Star, code: str, wanted: str
) -> None:
    cache = star.cache(plain_plan(star))
    star.refresh(cache)

    def replan() -> CachePlan:
        raise DefinitionError(code, "cache by_item: commit 7 does not exist")

    with pytest.raises(RefreshError, match="its last snapshot is kept") as caught:
        star.refresh(cache, replan=replan)
    assert caught.value.code == wanted and caught.value.message.count("[") <= 1
    assert (caught.value.code in PERMANENT) == (wanted is ErrorCode.DEFINITION_BROKEN)


def test_a_recreated_base_table_at_the_same_version_is_seen(star: Star) -> None:
    import shutil

    cache = star.cache(plain_plan(star))
    star.refresh(cache)
    shutil.rmtree(star.path("sales"))
    star.write("sales", [(1, "cup", 1, 1, "1.00")], SALES, "overwrite")
    run = star.refresh(cache)
    assert run.mode == "FULL" and "re-created" in run.reason
    assert [row[0] for row in star.stored(cache)] == ["cup"]
