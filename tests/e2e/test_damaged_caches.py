"""Files of a cache that go: no query of a user fails twice, and a refresh mends it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import cachemgr
from cachemgr.api.metrics import CacheMetrics
from cachemgr.config.service_settings import ServiceSettings
from cachemgr.server.doctor import FAILED, examine, light_checks
from cachemgr.serving import feed as feeds
from tests.processes import until

pytestmark = pytest.mark.spark

QUERY = "SELECT region, SUM(amt) AS s FROM sales GROUP BY region"
BY_REGION = f"by_region AS {QUERY}"
CUBE = (
    "cube AS SELECT region, cust, SUM(amt) AS s FROM sales "
    "GROUP BY GROUPING SETS ((region), (cust), ())"
)


@pytest.fixture
def damaged_now(lab, monkeypatch):
    """Each look at files is due, and sets are read from files."""
    lab.sql("SET spark.cachemgr.pin.enabled=false")
    monkeypatch.setattr("cachemgr.delta.stored_files.LOOK_SECONDS", 0.0)
    return lab


def cache_of(metastore, name):
    return next(c for c in metastore.caches.all() if c.name == name)


def data_files(cache) -> list[Path]:
    return [p for p in Path(cache.location).rglob("*.parquet") if "_delta_log" not in p.parts]


def status(lab, name):
    return {r.name: r.status for r in lab.sql("SHOW RELATIONAL CACHES")}[name]


def sync(lab):
    feed = next(f for f, _ in feeds._feeds.values() if f.source.key == lab.url)
    feed.sync()
    return feed


def test_a_folder_that_goes_between_two_looks_fails_no_query(
    lab, metastore, monkeypatch, caplog
) -> None:
    """The cache is chosen, and its table cannot be read then: the query runs on the tables."""
    lab.sql("SET spark.cachemgr.pin.enabled=false")
    monkeypatch.setattr("cachemgr.delta.stored_files.LOOK_SECONDS", 3600.0)
    lab.cache(BY_REGION)
    lab.hit(QUERY)
    shutil.rmtree(cache_of(metastore, "by_region").location.removeprefix("file:"))
    lab.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    before = cachemgr.counters(lab.spark).get("dropped_after_decision", 0)
    for _ in range(2):
        found, base = (s.sql(QUERY).collect() for s in (lab.spark, lab.plain))
        assert sorted(found, key=repr) == sorted(base, key=repr)
    assert cachemgr.counters(lab.spark)["dropped_after_decision"] == before + 2
    (said,) = [r.getMessage() for r in caplog.records if "was dropped" in r.getMessage()]
    assert "of its table cannot be read: REFRESH RELATIONAL CACHE" in said


PASSED_OVER = {
    "spark__sql__files__ignoreMissingFiles": "true",
    "spark__sql__files__ignoreCorruptFiles": "true",
}


@pytest.mark.parametrize("is_large", [False, True])
@pytest.mark.parametrize("is_gone", [True, False])
def test_a_session_that_passes_over_files_does_not_pass_over_those_of_a_cache(
    lab, metastore, monkeypatch, is_gone, is_large
) -> None:
    lab.sql("SET spark.cachemgr.pin.enabled=false")
    monkeypatch.setattr("cachemgr.delta.stored_files.LOOK_SECONDS", 3600.0)
    if is_large:  # sets whose files are listed here
        monkeypatch.setattr("cachemgr.spark.replacements.LARGE_SET_ROWS", 0)
    with lab.conf(**PASSED_OVER):
        lab.cache(CUBE)
        lab.hit(QUERY)
        for file in data_files(cache_of(metastore, "cube")):
            if is_gone:
                file.unlink()
            else:
                file.write_bytes(b"x" * file.stat().st_size)
                file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
        with pytest.raises(Exception, match="FAILED_READ_FILE"):
            lab.sql(QUERY)
        base = lab.plain.sql(QUERY).collect()
        assert sorted(lab.sql(QUERY), key=repr) == sorted(base, key=repr)


def test_a_refresh_does_not_pass_over_files_of_its_tables(lab) -> None:
    with lab.conf(**PASSED_OVER):
        lab.cache(BY_REGION)
        lab.plain.sql("INSERT INTO sales SELECT * FROM sales WHERE id = 1")
        for file in Path(lab.folder, "tables", "sales").rglob("*.parquet"):
            if "_delta_log" not in file.parts:
                file.unlink()
        with pytest.raises(Exception, match=r"\.parquet does not exist"):
            lab.sql("REFRESH RELATIONAL CACHE by_region FULL")


def test_a_file_that_is_gone_is_a_miss_and_shows_everywhere(damaged_now, metastore):
    lab = damaged_now
    lab.cache(BY_REGION)
    lab.hit(QUERY)
    cache = cache_of(metastore, "by_region")
    gone = data_files(cache)[0]
    gone.unlink()
    lab.miss(QUERY, "CACHE_DAMAGED")
    until(lambda: cache_of(metastore, "by_region").damaged, 10, "the metastore is told")
    sync(lab)
    assert gone.name in cache_of(metastore, "by_region").damaged
    assert status(lab, "by_region") == "DAMAGED"
    described = {r.col_name: r.data_type for r in lab.sql("DESCRIBE RELATIONAL CACHE by_region")}
    assert described["availability"] == "DAMAGED" and gone.name in described["damage"]
    told = {m.name: m.samples[0].value for m in CacheMetrics(metastore).collect() if m.samples}
    assert told["cachemgr_damaged"] == 1
    found = {
        f.check: f for f in examine(light_checks(ServiceSettings(metastore_url=lab.url)), lab.url)
    }
    assert found["caches"].state == FAILED and "by_region" in found["caches"].found
    # nothing moved, and AUTO computes all the same
    run = lab.sql("REFRESH RELATIONAL CACHE by_region")[0]
    assert run.result == "PUBLISHED" and gone.name in run.reason
    assert cache_of(metastore, "by_region").damaged is None
    assert cache_of(metastore, "by_region").location == cache.location
    lab.hit(QUERY)
    assert status(lab, "by_region") == "HEALTHY"


def test_only_the_set_that_is_read_is_looked_for_and_a_shorter_file_is_damage(damaged_now):
    lab = damaged_now
    lab.cache(CUBE)
    lab.hit(QUERY)
    feed = sync(lab)
    cache = feed.served("cube") or next(c for c in feed.caches() if c.name.endswith("cube"))
    by_cust = next(s for s in cache.plan.grouping_sets if s.keys == (1,))
    folder = Path(cache.location) / f"__grouping_id={by_cust.grouping_id}"
    file = next(folder.glob("*.parquet"))
    file.write_bytes(file.read_bytes()[:-10])
    lab.hit(QUERY)
    lab.miss("SELECT cust, SUM(amt) AS s FROM sales GROUP BY cust", "CACHE_DAMAGED")
    lab.miss(QUERY, "CACHE_DAMAGED")  # a refresh is due: nothing of it is trusted any more


def test_the_first_failure_names_the_cache_and_the_next_query_does_without(lab, metastore):
    """It was planned while the files were there, so it runs into it."""
    lab.sql("SET spark.cachemgr.pin.enabled=false")
    lab.cache(BY_REGION)
    lab.hit(QUERY)
    frame = lab.spark.sql(QUERY)
    frame._jdf.queryExecution().executedPlan()
    for file in data_files(cache_of(metastore, "by_region")):
        file.unlink()
    with pytest.raises(Exception) as caught:
        frame.collect()
    notes = " ".join(getattr(caught.value, "__notes__", ()))
    assert "by_region is damaged" in notes and "REFRESH RELATIONAL CACHE" in notes
    lab.miss(QUERY, "CACHE_DAMAGED")
    until(lambda: cache_of(metastore, "by_region").damaged, 10, "the metastore is told")


@pytest.mark.parametrize("lost", ["folder", "log"])
def test_a_lost_table_is_written_in_a_new_folder(damaged_now, metastore, lost):
    lab = damaged_now
    lab.cache(BY_REGION)
    lab.hit(QUERY)
    cache = cache_of(metastore, "by_region")
    place = Path(cache.location)
    shutil.rmtree(place if lost == "folder" else place / "_delta_log")
    lab.miss(QUERY, "CACHE_DAMAGED")
    assert lab.sql("EXPLAIN REFRESH by_region")[0].stage == "FULL"
    run = lab.sql("REFRESH RELATIONAL CACHE by_region FULL")[0]
    assert run.result == "PUBLISHED"
    moved = cache_of(metastore, "by_region")
    assert moved.damaged is None and moved.location.startswith(f"{cache.location}-")
    lab.hit(QUERY)
    lab.sql("INSERT INTO sales VALUES (9, NULL, 'north', 1, 5, 1, 1.00, 0.1)")
    assert lab.sql("REFRESH RELATIONAL CACHE by_region")[0].version > run.version
    lab.hit(QUERY)
    assert cache_of(metastore, "by_region").location == moved.location


def test_a_read_failure_of_the_users_own_tables_is_left_alone(lab):
    lab.sql("CREATE TABLE mine (a INT) USING parquet")
    lab.sql("INSERT INTO mine VALUES (1)")
    frame = lab.spark.sql("SELECT a FROM mine")
    frame.inputFiles()
    for file in (Path(str(lab.folder)) / "tables" / "mine").glob("*.parquet"):
        file.unlink()
    with pytest.raises(Exception) as caught:
        frame.collect()
    assert not getattr(caught.value, "__notes__", ())
    assert cachemgr.counters(lab.spark).get("damaged_caches", 0) == 0
