"""A storage that cannot be asked for a while: whoever asks does without the cache, nobody else
hears of it, and all is as before once it answers."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

import cachemgr
from cachemgr.delta.hadoop_files import files_of
from cachemgr.errors import CacheManagerError
from cachemgr.metastore import open_metastore
from cachemgr.serving import feed as feeds
from cachemgr.worker.housekeeping import Housekeeping
from tests.flaky import TROUBLE, Flaky, flaky_files, has_flaky_files
from tests.processes import until
from tests.worlds.lab_star import Lab, make_lab

pytestmark = pytest.mark.spark

QUERY = "SELECT region, SUM(amt) AS s FROM sales GROUP BY region"
BY_REGION = f"by_region AS {QUERY}"
FAR = "SELECT region, SUM(amt) AS s FROM far GROUP BY region"
MORE = "INSERT INTO {} VALUES (9, NULL, 'north', 1, 5, 1, 1.00, 0.1)"
CACHES = r"/caches/[0-9a-f]{32}"


@dataclass
class Far:
    """A lab whose caches lie on the flaky storage, and its metastore."""

    lab: Lab
    flaky: Flaky
    store: object

    @property
    def cache(self):
        (found,) = self.store.caches.all()
        return found

    @property
    def folder(self) -> Path:
        return Path(self.cache.location.removeprefix("flaky:"))

    def status(self) -> str:
        (shown,) = self.lab.sql("SHOW RELATIONAL CACHES")
        return shown.status

    def detail(self, query: str) -> str:
        found = cachemgr.explain(self.lab.spark, query).reasons
        return " ".join(r.detail for r in found if r.code.value == "CACHE_UNREADABLE")

    def refused(self, statement: str) -> CacheManagerError:
        with pytest.raises(CacheManagerError) as caught:
            self.lab.sql(statement)
        return caught.value


@pytest.fixture
def far(spark, tmp_path, monkeypatch):
    """Each look at files is due, and sets are read from files."""
    if not has_flaky_files(spark):
        pytest.skip("run python -m tests.spark_start, with a compiler of Java")
    url = f"sqlite:///{tmp_path / 'metastore.db'}"
    with flaky_files(spark, tmp_path / "script") as flaky:
        for lab in make_lab(spark, tmp_path, url):
            lab.sql(f"SET spark.cachemgr.location=flaky:{tmp_path / 'caches'}")
            lab.sql("SET spark.cachemgr.pin.enabled=false")
            monkeypatch.setattr("cachemgr.delta.stored_files.LOOK_SECONDS", 0.0)
            monkeypatch.setattr("cachemgr.delta.stored_files._SLOW_SECONDS", 3600.0)
            monkeypatch.setattr("cachemgr.serving.file_notes.LOOK_SECONDS", 0.0)
            with open_metastore(url) as store:
                yield Far(lab, flaky, store)


def housekeeping(far: Far) -> int:
    return Housekeeping(far.store, files_of(far.lab.spark), 3600).look_for_damage()


def sync(far: Far) -> None:
    next(f for f, _ in feeds._feeds.values() if f.source.key == far.lab.url).sync()


@pytest.mark.parametrize(("how", "told"), [(h, t) for h, t in TROUBLE.items() if h != "full"])
def test_it_is_the_askers_own_miss_and_passes(far: Far, how: str, told: str) -> None:
    far.lab.cache(BY_REGION)
    far.lab.hit(QUERY)
    before = far.cache
    with far.flaky.saying(f"* {CACHES} {how}"):
        far.lab.miss(QUERY, "CACHE_UNREADABLE")
        assert told in far.detail(QUERY) and "Py4J" not in far.detail(QUERY)
        assert housekeeping(far) == 0
        assert far.status() == "HEALTHY", "nothing is known to be wrong"
    assert far.cache == before and far.cache.damaged is None
    far.lab.hit(QUERY)
    assert cachemgr.counters(far.lab.spark).get("damaged_caches", 0) == 0


def test_a_log_that_is_denied_between_two_looks_fails_no_query(
    far: Far, monkeypatch, caplog
) -> None:
    monkeypatch.setattr("cachemgr.delta.stored_files.LOOK_SECONDS", 3600.0)
    far.lab.cache(BY_REGION)
    far.lab.hit(QUERY)
    far.lab.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    with far.flaky.saying(f"* {CACHES} denied"):
        far.lab.spark.sql(QUERY).collect()
    (said,) = [r.getMessage() for r in caplog.records if "was dropped" in r.getMessage()]
    assert "cannot be read here: permission denied" in said and "REFRESH" not in said
    assert far.cache.damaged is None
    far.lab.hit(QUERY)


def test_data_that_may_not_be_read_fails_one_query_of_ones_own(far: Far, monkeypatch) -> None:
    """Whoever may list a folder may not always read what is in it."""
    far.lab.cache(BY_REGION)
    far.lab.hit(QUERY)
    monkeypatch.setattr("cachemgr.serving.file_notes.LOOK_SECONDS", 3600.0)
    with far.flaky.saying(r"open \.parquet denied"):
        with pytest.raises(Exception, match="FAILED_READ_FILE") as caught:
            far.lab.sql(QUERY)
        notes = " ".join(getattr(caught.value, "__notes__", ()))
        assert "by_region could not be read: permission denied" in notes and "damaged" not in notes
        for _ in range(2):
            far.lab.miss(QUERY, "CACHE_UNREADABLE")
    assert housekeeping(far) == 0 and far.cache.damaged is None
    far.lab.miss(QUERY, "CACHE_UNREADABLE")  # it is left out for a while, and longer each time
    feed = next(f for f, _ in feeds._feeds.values() if f.source.key == far.lab.url)
    monkeypatch.setattr(feed.notes, "_clock", lambda: float("inf"))
    far.lab.hit(QUERY)


def test_damage_that_is_no_more_is_taken_back_by_looking(far: Far) -> None:
    far.lab.cache(BY_REGION)
    far.lab.hit(QUERY)
    (file,) = far.folder.glob("*.parquet")
    kept = file.with_name("kept")
    file.rename(kept)
    assert housekeeping(far) == 1 and file.name in far.cache.damaged
    sync(far)
    far.lab.miss(QUERY, "CACHE_DAMAGED")
    assert housekeeping(far) == 0 and far.cache.damaged is not None
    with far.flaky.saying("* / away"):
        assert housekeeping(far) == 0 and far.cache.damaged is not None, "nothing is known"
        far.lab.miss(QUERY, "CACHE_DAMAGED")
    kept.rename(file)
    far.lab.hit(QUERY)  # by the session's own look, which tells the metastore
    until(lambda: far.cache.damaged is None, 10, "the note is taken back")
    file.rename(kept)
    assert housekeeping(far) == 1
    kept.rename(file)
    assert housekeeping(far) == 0 and far.cache.damaged is None
    sync(far)
    far.lab.hit(QUERY)


def test_what_an_earlier_release_took_for_damage_is_taken_back(far: Far) -> None:
    far.lab.cache(BY_REGION)
    run = far.cache.published_refresh_id
    far.store.snapshots.note_damage(far.cache.id, run, "its folder cannot be read (Py4JJavaError)")
    sync(far)
    far.lab.hit(QUERY)
    until(lambda: far.cache.damaged is None, 10, "the note is taken back")
    # what no look sees, no look lifts
    unseen = "a query failed to read one of its files"
    far.store.snapshots.note_damage(far.cache.id, run, unseen)
    sync(far)
    far.lab.miss(QUERY, "CACHE_DAMAGED")
    assert housekeeping(far) == 0 and far.cache.damaged == unseen
    assert far.lab.sql("REFRESH RELATIONAL CACHE by_region")[0].result == "PUBLISHED"
    assert far.cache.damaged is None


@pytest.mark.parametrize("how", TROUBLE)
def test_a_refresh_moves_and_computes_nothing_for_it(far: Far, how: str) -> None:
    far.lab.cache(BY_REGION)
    before = far.cache
    far.lab.plain.sql(MORE.format("sales"))
    where = "create" if how == "full" else "*"
    with far.flaky.saying(f"{where} {CACHES} {how}"):
        error = far.refused("REFRESH RELATIONAL CACHE by_region")
    assert error.code == "STORAGE_UNAVAILABLE" and TROUBLE[how] in error.message
    assert "Py4J" not in error.message and "drop" not in error.message
    assert (far.cache.location, far.cache.published_refresh_id, far.cache.damaged) == (
        before.location,
        before.published_refresh_id,
        None,
    )
    (run,) = far.lab.sql("REFRESH RELATIONAL CACHE by_region")
    assert run.result == "PUBLISHED" and run.mode != "FULL", run.reason
    with far.lab.caches_alone():
        far.lab.hit(QUERY)


def test_a_mark_of_before_does_not_make_a_refresh_compute_everything(far: Far) -> None:
    far.lab.cache(BY_REGION)
    run = far.cache.published_refresh_id
    far.store.snapshots.note_damage(far.cache.id, run, "its folder cannot be read (Py4JJavaError)")
    assert far.lab.sql("REFRESH RELATIONAL CACHE by_region")[0].result == "UNCHANGED"
    assert far.cache.damaged is None


@pytest.mark.parametrize("how", ["denied", "unavailable", "away"])
def test_a_base_table_that_cannot_be_asked_is_not_broken(far: Far, tmp_path, how: str) -> None:
    place = f"flaky:{tmp_path / 'far'}"
    far.lab.plain.sql(f"CREATE TABLE far USING delta LOCATION '{place}' AS SELECT * FROM sales")
    far.lab.cache(f"by_region AS {FAR}")
    far.lab.hit(FAR)
    with far.flaky.saying(f"* /far {how}"):
        assert far.status() == "UNKNOWN"
        described = far.lab.sql("DESCRIBE RELATIONAL CACHE EXTENDED by_region")
        told = {r.col_name: r.data_type for r in described}
        assert told["availability"] == "UNKNOWN" and TROUBLE[how] in told["answers"]
        error = far.refused("REFRESH RELATIONAL CACHE by_region")
        assert error.code == "STORAGE_UNAVAILABLE" and "base table" in error.message
        assert TROUBLE[how] in error.message
        for text in (error.message, *map(str, told.values())):
            assert "repair the log" not in text and "drop" not in text.lower().split()
    assert far.lab.sql("REFRESH RELATIONAL CACHE by_region")[0].result == "UNCHANGED"
    assert far.status() == "HEALTHY"
    far.lab.hit(FAR)
    shutil.rmtree(tmp_path / "far")
    assert far.status() == "BROKEN", "that one is gone"
