"""The process dies at each step of an incremental refresh, in each of its ways: what serves is the
old snapshot, whole; the next refresh gives what a full one gives, with its facts; housekeeping
leaves no file behind."""

from __future__ import annotations

import itertools
import os
import random
import sys
import textwrap
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from cachemgr.errors import RefreshError
from cachemgr.metastore.records import RefreshRunRecord
from cachemgr.refresh.write import check_replaced
from cachemgr.vocabulary import RunState
from tests.processes import SMALL_SPARK, Started, until
from tests.worlds.incremental_ways import PLANS, Made, sale, sets_are_large
from tests.worlds.refresh_star import SHOPS, Crash, Star, crash_at

pytestmark = pytest.mark.spark

WAYS = tuple(PLANS)
BEFORE = ("started", "pinned", "PinVersions", "writing")
AFTER = ("written", "WriteDelta", "Measure", "CheckJoins", "publishing")
# minutes, of which each case is seconds
SPREAD = True


@pytest.fixture(autouse=True)
def large() -> Iterator[None]:
    with sets_are_large():
        yield


@pytest.fixture
def sales(star: Star) -> Iterator[Callable[[int], None]]:
    """Sells so many things, each like no other one."""
    numbers = itertools.count(1)
    return lambda count: star.sell(*(sale(next(numbers)) for _ in range(count)))


def begin(star: Star, way: str, sales: Callable[[int], None]) -> Made:
    """A cache that has been added to once, and whose table has grown again."""
    star.declare_join()
    made = Made(star, way)
    made.refresh("FULL")
    sales(4)
    assert made.refresh().mode == made.mode
    sales(5)
    return made


def dies(made: Made, step: str, mode: str = "INCREMENTAL") -> None:
    """A refresh that dies after a step, and whose lease runs out."""
    with pytest.raises(Crash):
        made.refresh(mode, checkpoint=crash_at(step))
    made.star.clock.at += timedelta(hours=1)


def runs(made: Made) -> list[RefreshRunRecord]:
    return list(made.star.store.refreshes.of(made.cache.id))


def check(made: Made) -> None:
    assert made.is_current()
    made.check()
    made.check_files()
    made.check()
    made.check_as_full()


@pytest.mark.parametrize("way", WAYS)
def test_these_are_all_steps(star: Star, sales, way: str) -> None:
    """A step that comes later is one to die at."""
    made = begin(star, way, sales)
    seen: list[str] = []
    assert made.refresh(checkpoint=seen.append).mode == made.mode
    assert seen == [*BEFORE, *AFTER]
    check(made)


@pytest.mark.parametrize(("way", "step"), itertools.product(WAYS, BEFORE))
def test_a_death_before_the_commit(star: Star, sales, way: str, step: str) -> None:
    made = begin(star, way, sales)
    before, top = made.served(), star.head(made.cache)
    dies(made, step)
    assert made.served() == before and star.head(made.cache) == top
    run = made.refresh()
    assert run.mode == made.mode and run.cache_version == top + 1
    check(made)


@pytest.mark.parametrize(("way", "step", "grows"), itertools.product(WAYS, AFTER, (False, True)))
def test_a_death_after_the_commit(star: Star, sales, way: str, step: str, grows: bool) -> None:
    """What was written is published at its own versions, and the rest added by a second run."""
    made = begin(star, way, sales)
    before, top = made.served(), star.head(made.cache)
    dies(made, step)
    assert made.served() == before and star.head(made.cache) == top + 1
    if grows:
        sales(3)
    run = made.refresh()
    if grows:
        assert (run.mode, run.cache_version) == (made.mode, top + 2)
        adopted = runs(made)[1]
        assert "a run of its own adds what came since" in adopted.reason
    else:
        adopted = run
    assert (adopted.mode, adopted.state) == ("ADOPT", RunState.PUBLISHED)
    assert adopted.cache_version == top + 1
    check(made)


@pytest.mark.parametrize("way", WAYS)
def test_what_was_adopted_is_served_before_the_rest_is_added(star: Star, sales, way: str) -> None:
    """The second run dies as well."""
    made = begin(star, way, sales)
    dies(made, "written")
    sales(3)
    seen: Counter[str] = Counter()

    def second(step: str) -> None:
        seen[step] += 1
        if step == "written":  # an adopting run writes nothing
            raise Crash(step)

    with pytest.raises(Crash):
        made.refresh(checkpoint=second)
    star.clock.at += timedelta(hours=1)
    assert seen["Adopt"] == 1 and not made.is_current()
    made.check()
    assert made.refresh().mode == "ADOPT"
    check(made)


@pytest.mark.parametrize("step", ["PinVersions", "Adopt", "Measure", "publishing"])
@pytest.mark.parametrize("way", ["PARTIALS", "MIXED"])
def test_a_death_while_adopting(star: Star, sales, way: str, step: str) -> None:
    """The next run finds a commit of another run than the last, and undoes it."""
    made = begin(star, way, sales)
    before = made.served()
    dies(made, "written")
    dies(made, step)
    assert made.served() == before
    sales(3)
    run = made.refresh()
    assert run.mode == made.mode and "RestorePublished" in [s["stage"] for s in run.stages]
    check(made)


@pytest.mark.parametrize("step", ["RestorePublished", "written"])
@pytest.mark.parametrize("way", WAYS)
def test_a_death_above_a_version_that_was_put_back(star: Star, sales, way: str, step: str) -> None:
    """A commit above a restored version is not looked into: it is undone too, never doubled."""
    made = begin(star, way, sales)
    dies(made, "written")
    dies(made, "Adopt")
    before = made.served()
    dies(made, step)
    assert made.served() == before
    run = made.refresh()
    assert run.mode == made.mode
    check(made)


@pytest.mark.parametrize("way", WAYS)
def test_a_full_commit_is_adopted_though_the_table_grew(star: Star, sales, way: str) -> None:
    made = begin(star, way, sales)
    dies(made, "written", "FULL")
    sales(3)
    run = made.refresh()
    adopted = runs(made)[1]
    assert (adopted.mode, run.mode) == ("ADOPT", made.mode)
    assert adopted.cache_version + 1 == run.cache_version
    check(made)


def test_full_adopts_no_commit_of_the_change_alone(star: Star, sales) -> None:
    made = begin(star, "PARTIALS", sales)
    dies(made, "written")
    assert made.refresh("FULL").mode == "FULL"
    check(made)


def test_rows_that_went_since_are_taken_away_after_the_adoption(star: Star, sales) -> None:
    made = begin(star, "MIXED", sales)
    dies(made, "written")
    star.spark.sql(f"DELETE FROM delta.`{star.path('sales')}` WHERE day = 3")
    made.refresh()
    assert runs(made)[1].mode == "ADOPT"
    check(made)


def test_a_commit_over_a_history_that_is_gone_is_undone(star: Star, sales) -> None:
    """The table was put back from a copy that has the same version with other rows."""
    import shutil

    made = begin(star, "PARTIALS", sales)
    place, copy = Path(star.path("sales")), star.folder / "copy"
    version = star.version(star.key("sales"))
    shutil.copytree(place, copy)
    sales(3)
    dies(made, "written")
    shutil.rmtree(place)
    shutil.copytree(copy, place)
    star.sell((2, "other", 4, 77, "7.00"))
    sales(2)
    assert star.version(star.key("sales")) == version + 2
    run = made.refresh()
    assert "ADOPT" not in [r.mode for r in runs(made)] and run.state is RunState.PUBLISHED
    check(made)


def test_a_table_that_was_compacted_since(star: Star, sales) -> None:
    """The files that the commit read are no longer the table's, and some are gone."""
    made = begin(star, "MIXED", sales)
    dies(made, "written")
    star.spark.sql(f"OPTIMIZE delta.`{star.path('sales')}`")
    made.refresh()
    assert "ADOPT" in [r.mode for r in runs(made)]
    check(made)


def test_two_tables_that_changed_since(star: Star, sales) -> None:
    made = begin(star, "MIXED", sales)
    dies(made, "written")
    sales(2)
    star.write("shops", [(7, "Bergen", "west")], SHOPS, "append")
    assert made.refresh().mode == "FULL"
    assert [r.mode for r in runs(made)[:2]] == ["FULL", "ADOPT"]
    check(made)


@pytest.mark.parametrize("way", WAYS)
def test_a_refresh_that_was_thought_dead_commits_late(star: Star, sales, way: str) -> None:
    """Its commit holds what the new one is about to add as well: above that nothing is added."""
    made = begin(star, way, sales)
    before = made.served()
    waits, goes_on = threading.Event(), threading.Event()

    def slow(step: str) -> None:
        if step == "writing":
            waits.set()
            assert goes_on.wait(60)
        if step == "written":
            raise Crash(step)

    def run_slow() -> None:
        with pytest.raises(Crash):
            made.refresh(checkpoint=slow)

    thread = threading.Thread(target=run_slow)
    thread.start()
    assert waits.wait(60)
    star.clock.at += timedelta(hours=1)

    def late(step: str) -> None:
        if step == "PinVersions":
            goes_on.set()
            thread.join(60)

    with pytest.raises(RefreshError, match="was written while this refresh") as caught:
        made.refresh(checkpoint=late)
    assert caught.value.code == "COMMIT_MISPLACED"
    assert made.served() == before
    made.refresh()
    check(made)


@pytest.mark.parametrize("step", ["pinned", "PinVersions", "writing"])
@pytest.mark.parametrize("way", WAYS)
def test_somebody_else_writes_to_the_table(star: Star, sales, way: str, step: str) -> None:
    """Whenever it happens, nothing is added above rows that are not ours."""
    made = begin(star, way, sales)
    before = made.served()

    def meddle(name: str) -> None:
        if name == step:
            rows = star.spark.read.format("delta").load(made.cache.location).limit(1)
            rows.write.format("delta").mode("append").save(made.cache.location)

    if step == "pinned":  # before the head is looked at
        made.refresh(checkpoint=meddle)
    else:
        with pytest.raises(RefreshError, match="COMMIT_MISPLACED"):
            made.refresh(checkpoint=meddle)
        assert made.served() == before
        made.refresh()
    check(made)


def test_a_commit_that_removed_what_it_should_not_is_not_adopted(
    star: Star, sales, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run that wrote it died before it compared."""
    made = begin(star, "MIXED", sales)
    before = made.served()
    told = "cachemgr.refresh.stages"
    with monkeypatch.context() as wrong:
        from cachemgr.refresh.write import WHOLE

        wrong.setattr(f"{told}._target", lambda delta: WHOLE)
        dies(made, "written")
    with pytest.raises(RefreshError, match="COMMIT_MISPLACED"):
        made.refresh()
    assert made.served() == before
    assert made.refresh().mode == "FULL", "it is not tried again by the change alone"
    check(made)
    assert check_replaced  # what has refused it


@pytest.mark.parametrize("way", WAYS)
def test_many_deaths_in_a_row(star: Star, sales, way: str) -> None:
    """One cache through deaths at random steps, on a table that grows all the time."""
    rng = random.Random(way)
    made = begin(star, way, sales)
    for _ in range(6):
        before = made.served()
        dies(made, rng.choice(BEFORE + AFTER))
        assert made.served() == before
        if rng.random() < 0.7:
            sales(rng.randrange(1, 4))
        made.refresh()
        assert made.is_current()
        made.check()
        sales(rng.randrange(1, 4))  # or the next refresh would have no steps to die after
    made.refresh()
    check(made)


CHILD = """
import os, random, signal, sys, threading, time
from datetime import UTC, datetime
from pathlib import Path
from cachemgr.metastore import open_metastore
from tests.worlds.incremental_ways import sets_are_large
from tests.worlds.refresh_star import Clock, Star
from tests.spark_start import with_delta
from pyspark.sql import SparkSession

builder = (
    SparkSession.builder.master("local[2]")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.sql.warehouse.dir", {warehouse!r})
)
for key, value in {settings!r}.items():
    builder.config(key, value)
spark = with_delta(builder).getOrCreate()
store = open_metastore({url!r})
star = Star(spark, store, Path({folder!r}), Clock())
star.clock.at = datetime.now(UTC)
caches = [store.caches.get(i) for i in {caches!r}]
place, wait, once = {where!r}, {wait!r}, threading.Lock()

def kill_now():
    if place == "file":
        # as soon as some data file has come to be
        before = {files!r}
        while len(list(Path({folder!r}, "caches").rglob("*.parquet"))) <= before:
            time.sleep(0.001)
    time.sleep(wait)
    os.killpg(0, signal.SIGKILL)

def step(name):
    if name == "writing" and once.acquire(blocking=False):
        threading.Thread(target=kill_now, daemon=True).start()

def refresh(cache):
    star.refresh(cache, mode="INCREMENTAL", checkpoint=step, lease_seconds=3)

with sets_are_large():
    threads = [threading.Thread(target=refresh, args=(c,)) for c in caches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
time.sleep(600)
"""


def kill_inside(star: Star, made: list[Made], where: str, wait: float) -> Counter[str]:
    """A process refreshes caches at once and is killed in the middle of their writes: where each of
    them was."""
    before = [(m.served(), star.head(m.cache), m.data_files()) for m in made]
    text = textwrap.dedent(CHILD).format(
        warehouse=str(star.folder / "other"),
        settings=SMALL_SPARK,
        url=star.store.url,
        folder=str(star.folder),
        caches=[m.cache.id for m in made],
        files=len(list((star.folder / "caches").rglob("*.parquet"))),
        where=where,
        wait=wait,
    )
    log = star.folder / "child.log"
    child = Started.run([sys.executable, "-c", text], log, star.folder, {})
    try:
        until(lambda: not child.alive, 240, "the process was killed", every=0.02)
    finally:
        child.kill()
    assert child.process.returncode == -9, child.text()[-4000:]
    found: Counter[str] = Counter()
    for one, (rows, top, files) in zip(made, before, strict=True):
        if one.is_current():
            one.check()  # it was quick: what serves is the new snapshot, whole
            found["after it was published"] += 1
            continue
        assert one.served() == rows, "what serves is the old snapshot, whole"
        if star.head(one.cache) > top:
            found["after the commit"] += 1
        elif one.data_files() != files:
            found["among its files"] += 1
        else:
            found["before its files"] += 1
    leases = [star.store.refreshes.lease(m.cache.id) for m in made]
    ends = [lease.expires_at for lease in leases if lease.expires_at is not None]
    star.clock.at = max([star.clock.at, *ends]) + timedelta(seconds=1)
    return found


def kill_and_mend(star: Star, made: list[Made], where: str, wait: float, sales) -> Counter[str]:
    found = kill_inside(star, made, where, wait)
    if random.Random(wait).random() < 0.6:
        sales(2)
    for one in made:
        one.refresh()
        assert one.is_current()
        one.check()
        one.check_files()
    return found


@pytest.mark.slow
def test_killed_inside_the_write(star: Star, sales) -> None:
    """In each way once, by one SIGKILL while all four write."""
    star.declare_join()
    made = [Made(star, way) for way in WAYS]
    for one in made:
        one.refresh("FULL")
    sales(6)
    found = kill_and_mend(star, made, "file", 0.0, sales)
    assert found["before its files"] < len(made), found
    for one in made:
        one.check_as_full()


@pytest.mark.long
@pytest.mark.slow
def test_killed_two_hundred_times_inside_the_write(star: Star, sales) -> None:
    """Fifty processes with four writes each, killed at random moments of these. KILLS takes another
    number of processes."""
    rng = random.Random(20261124)
    star.declare_join()
    made = [Made(star, way) for way in WAYS]
    for one in made:
        one.refresh("FULL")
    found: Counter[str] = Counter()
    processes = int(os.environ.get("KILLS", "50"))
    for number in range(processes):
        sales(rng.randrange(1, 6))
        where = rng.choice(("writing", "file", "file"))
        wait = rng.uniform(0, 3 if where == "writing" else 1.2)
        found += kill_and_mend(star, made, where, wait, sales)
        print(number + 1, dict(found), flush=True)
    assert sum(found.values()) == 4 * processes
    assert all(found[w] for w in ("among its files", "after the commit")), found
    for one in made:
        one.check_as_full()
