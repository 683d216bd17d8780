"""After planning: drops, writes, errors, and what a session shows of us."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import cachemgr
from cachemgr.spark import session as session_module
from tests.e2e.never_wrong.sales_totals import TOTALS

pytestmark = pytest.mark.spark


def test_drop_between_planning_and_the_end_of_a_query(lab):
    lab.cache("r AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
    planned = lab.spark.sql(TOTALS)
    planned._jdf.queryExecution().executedPlan()
    assert lab.hits() == 1
    lab.sql("DROP RELATIONAL CACHE r")
    expected = lab.plain.sql(TOTALS).collect()
    assert sorted(map(str, planned.collect())) == sorted(map(str, expected))
    lab.miss(TOTALS)


def test_files_of_a_dropped_cache_go_after_the_grace(lab, metastore):
    lab.cache("r AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
    folder = Path(metastore.caches.all()[0].location)
    lab.sql("DROP RELATIONAL CACHE r")
    assert (folder / "_delta_log").is_dir()
    with lab.conf(spark__cachemgr__dropGrace="0s"):
        lab.sql("DROP RELATIONAL CACHE IF EXISTS r")
        lab.cache("q AS SELECT day, SUM(amt) AS s FROM sales GROUP BY day", refresh=False)
    assert not folder.exists()
    assert [c.name for c in metastore.caches.all(include_dropped=True)] == ["q"]


def test_drop_reaches_another_session(lab):
    lab.cache("r AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
    other = lab.spark.newSession()
    for key in ("spark.cachemgr.metastore.url", "spark.cachemgr.location"):
        other.conf.set(key, lab.spark.conf.get(key))
    cachemgr.enable(other)
    try:
        other.sql(f"USE {lab.schema}")
        other.sql(TOTALS).collect()
        assert cachemgr.counters(other)["hits"] == 1
        lab.sql("ALTER RELATIONAL CACHE r DISABLE REWRITE")
        other.sql(TOTALS).collect()
        assert cachemgr.counters(other)["hits"] == 1
    finally:
        cachemgr.disable(other)
    assert cachemgr.is_enabled(lab.spark) and not cachemgr.is_enabled(other)


def test_writes_take_strict_caches_only(lab):
    lab.cache(
        "r MAX STALENESS UNLIMITED AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region"
    )
    lab.spark.sql(f"CREATE TABLE t1 USING delta AS {TOTALS}")
    served = lab.hits()  # Spark plans a CTAS twice
    assert served >= 1, "a cache that is exact may serve a write"
    lab.plain.sql("INSERT INTO sales SELECT 61, NULL, 'new', 1, 1, 1, 1, 1")
    with lab.caches_alone():
        lab.spark.sql(f"CREATE TABLE t2 USING delta AS {TOTALS}")
        lab.spark.sql(f"INSERT INTO t1 {TOTALS}")
        assert lab.hits() == served
    lab.spark.sql(f"CREATE TABLE t3 USING delta AS {TOTALS}")
    assert lab.hits() > served, "with what was appended it is exact"
    fresh = sorted(map(str, lab.plain.sql(TOTALS).collect()))
    assert sorted(map(str, lab.plain.table("t2").collect())) == fresh
    assert sorted(map(str, lab.plain.table("t3").collect())) == fresh


def test_views_and_cached_tables_hold_no_rewrite(lab):
    lab.cache("r AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
    lab.spark.sql(f"CREATE VIEW v AS {TOTALS}")
    lab.spark.sql(f"CACHE TABLE ct AS {TOTALS}")
    assert lab.hits() == 0
    lab.plain.sql("INSERT INTO sales SELECT 62, NULL, 'new', 1, 1, 1, 1, 1")
    assert ("new", 1) in [tuple(r) for r in lab.sql("SELECT * FROM v")]
    lab.spark.sql("UNCACHE TABLE ct")


def test_an_error_inside_the_matcher_never_reaches_the_user(lab, monkeypatch, caplog):
    lab.cache("r AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")

    def fail(*args, **kwargs):
        raise RuntimeError("injected into the matcher")

    monkeypatch.setattr(session_module, "decide", fail)
    with pytest.raises(Exception, match="injected into the matcher"):
        lab.sql(TOTALS)
    with lab.conf(spark__cachemgr__mode="rewrite"):
        lab.sql(TOTALS)
        assert sorted(map(str, lab.sql(TOTALS))) == sorted(
            map(str, lab.plain.sql(TOTALS).collect())
        )
    assert cachemgr.counters(lab.spark)["errors"] >= 3
    assert caplog.text.count("the original query runs") == 1


def test_modes_and_the_switch(lab):
    lab.cache("r AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
    with lab.conf(spark__cachemgr__mode="off"):
        lab.sql(TOTALS)
        assert lab.hits() == 0
    with lab.conf(spark__cachemgr__enabled="false"):
        lab.sql(TOTALS)
        assert lab.hits() == 0
    with lab.conf(spark__cachemgr__mode="planOnly"):
        lab.sql(TOTALS)
        assert cachemgr.counters(lab.spark)["plan_only"] == 1
    lab.hit(TOTALS)
    lab.miss(TOTALS.replace("SELECT", "SELECT /*+ NO_RELATIONAL_CACHE */", 1), "HINT")


def test_decisions_are_logged(lab, metastore):
    lab.cache("r AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
    lab.hit(TOTALS)
    lab.miss("SELECT day, SUM(amt) FROM sales GROUP BY day")
    cachemgr.disable(lab.spark)
    logged = metastore.decisions.latest()
    assert {d.outcome.value for d in logged} == {"HIT", "MISS"}
    hit = next(d for d in logged if d.outcome.value == "HIT")
    assert hit.caches == (f"{lab.schema}.r",) and hit.millis > 0


def test_two_threads_and_two_sessions_at_once(lab):
    lab.cache("r AS SELECT region, day, SUM(amt) AS s FROM sales GROUP BY region, day")
    expected = sorted(map(str, lab.plain.sql(TOTALS).collect()))
    failures = []

    def work():
        for _ in range(3):
            if sorted(map(str, lab.sql(TOTALS))) != expected:
                failures.append("rows differ")

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == [] and lab.hits() == 6


def test_the_users_catalog_shows_nothing_of_ours(lab):
    tables = [r.tableName for r in lab.sql("SHOW TABLES")]
    lab.cache("r AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
    lab.hit(TOTALS)
    assert [r.tableName for r in lab.sql("SHOW TABLES")] == tables
    assert lab.sql("SHOW VIEWS") == []
