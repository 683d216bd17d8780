"""How many Spark jobs a refresh runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.worlds.refresh_star import Star, cube_plan, plain_plan

pytestmark = pytest.mark.spark


def jobs(star: Star, action: Callable[[], object]) -> list[str]:
    """The Spark jobs that an action runs, by what they say of themselves."""
    context = star.spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    store = context.statusStore()
    before = _jobs_so_far(store)
    action()
    context.listenerBus().waitUntilEmpty()
    return [text for number, text in _jobs_so_far(store).items() if number not in before]


def _jobs_so_far(store) -> dict[int, str]:
    found = store.jobsList(None)
    listed = [found.apply(i) for i in range(found.size())]
    return {job.jobId(): f"{job.name()} {job.description().toString()}" for job in listed}


def test_a_refresh_of_few_rows_runs_few_jobs(star: Star) -> None:
    """docs/service.md says what each of them is for."""
    star.declare_join()
    for plan in (plain_plan(star), cube_plan(star)):
        cache = star.cache(plan)
        first = jobs(star, lambda cache=cache: star.refresh(cache))
        # and one for the files of each base table, once for each version
        assert len(first) <= 5 + len(plan.relations), first
        star.sell((3, "ink", 4, 7, "1.00"))
        again = jobs(star, lambda cache=cache: star.refresh(cache))
        assert len(again) <= 5, again
        # a process that comes to it anew
        star.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
        assert jobs(star, lambda cache=cache: star.refresh(cache)) == []


def test_delta_prepares_a_write_of_many_rows_in_one_job(
    star: Star, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state of the cache's own table is computed in one job and not in three; see
    docs/refresh.md."""
    monkeypatch.setattr("cachemgr.refresh.small.SMALL_ROWS", 0)
    cache = star.cache(cube_plan(star))
    star.refresh(cache)
    for _ in range(2):
        star.sell((3, "ink", 4, 7, "1.00"))
        ran = jobs(star, lambda: star.refresh(cache))
    assert len([job for job in ran if "Compute snapshot" in job]) == 1, ran
