# ruff: noqa: E501 - tables of SQL read better unbroken
"""Base tables that got commits and kept their rows: caches over them are as exact as before."""

from __future__ import annotations

import shutil

import pytest
from pyspark.errors import AnalysisException
from test_base_states import folder, forget_logs, mode
from test_text_door import Door

import cachemgr

pytestmark = pytest.mark.spark

TOTALS = "SELECT region, SUM(amt) AS s FROM sales GROUP BY region"
CACHE = "r {} AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region"


def two_files(lab, more=""):
    lab.plain.sql(f"INSERT INTO sales VALUES (9, NULL, 'new', 1, 100, 1, 1, 1{more})")


@pytest.mark.parametrize("freshness", ["STRICT", "MAX STALENESS INTERVAL 1 SECOND"])
def test_a_cache_hits_after_its_table_was_compacted(lab, freshness):
    two_files(lab)
    lab.cache(CACHE.format(freshness))
    door = Door(lab)
    lab.plain.sql("OPTIMIZE sales")
    lab.plain.sql("ALTER TABLE sales ADD COLUMN more INT")
    lab.hit(TOTALS)
    assert door.hit(TOTALS).exact
    lab.hit(f"SELECT * FROM ({TOTALS}) JOIN cust ON s > cid")  # exact, so beside a table of now
    assert "UNCHANGED" in str(lab.sql("EXPLAIN REFRESH r")[0])
    assert "UNCHANGED" in str(lab.sql("REFRESH RELATIONAL CACHE r"))
    way, reason, state = mode(lab)
    assert (way, reason, state) == ("UNCHANGED", "no base table moved", "UNCHANGED")
    lab.hit(TOTALS)
    door.hit(TOTALS)
    two_files(lab, ", 2")
    with lab.caches_alone():
        lab.miss(TOTALS, "STALE")
        told = cachemgr.explain(lab.spark, TOTALS).text()
    assert door.codes(TOTALS) == ["STALE", "FRESH_IN_SPARK_ONLY"]
    if freshness == "STRICT":
        for text in (told, str([reason.detail for reason in door.ask(TOTALS).reasons])):
            assert "1 commit appended 1 row in 1 file" in text
    lab.sql("REFRESH RELATIONAL CACHE r")
    lab.hit(TOTALS)
    door.feed.close()


def test_a_refresh_moves_the_snapshot_on(lab):
    two_files(lab)
    lab.cache(CACHE.format(""))
    lab.plain.sql("OPTIMIZE sales")
    way, reason, state = mode(lab)
    assert (way, state) == ("UNCHANGED", "UNCHANGED") and "1 commit without data change" in reason
    with lab.metastore() as store:
        [table] = store.snapshots.published(store.caches.all()[0].id).tables
    now = lab.plain.sql("DESCRIBE HISTORY sales LIMIT 1").first().version
    assert table.version == now
    lab.hit(TOTALS)
    described = str(lab.sql("DESCRIBE RELATIONAL CACHE r"))
    assert "AVAILABLE" in described and "STALE" not in described.replace("STALENESS", "")


def test_rows_that_were_deleted_and_put_back(lab):
    lab.cache(CACHE.format(""))
    lab.plain.sql("DELETE FROM sales WHERE region = 'north'")
    lab.miss(TOTALS, "STALE")
    assert "changed rows" in cachemgr.explain(lab.spark, TOTALS).text()
    lab.plain.sql("RESTORE TABLE sales TO VERSION AS OF 1")
    lab.hit(TOTALS)


def test_noop_a_column_under_another_name_with_the_same_files(lab):
    """No row changed, and what the cache read is another column now."""
    lab.plain.sql(
        "ALTER TABLE sales SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')"
    )
    lab.cache(CACHE.format(""))
    lab.plain.sql("ALTER TABLE sales RENAME COLUMN amt TO old_amt")
    lab.plain.sql("ALTER TABLE sales RENAME COLUMN cost TO amt")
    lab.miss(TOTALS, "COLUMNS_CHANGED")
    assert mode(lab)[0] == "FULL"
    lab.hit(TOTALS)


def test_noop_a_lost_history_that_was_compacted(lab):
    """The number of the snapshot is passed in another history, which only compacted since."""
    place = folder(lab)
    shutil.copytree(place, lab.folder / "copy")
    lab.plain.sql("INSERT INTO sales VALUES (9, NULL, 'lost', 1, 100, 1, 1, 1)")
    lab.cache(CACHE.format(""))
    shutil.rmtree(place)
    shutil.copytree(lab.folder / "copy", place)
    forget_logs(lab)
    lab.plain.sql("INSERT INTO sales VALUES (9, NULL, 'found', 1, 5, 1, 1, 1)")
    lab.plain.sql("OPTIMIZE sales")
    lab.miss(TOTALS, "STALE")
    assert mode(lab)[0] == "FULL"
    lab.hit(TOTALS)


def test_a_dataframe_made_before_a_column_was_renamed_gets_the_error_of_spark(lab):
    """Even in the lab, where what fails in us is raised."""
    lab.plain.sql("ALTER TABLE sales SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    lab.cache(CACHE.format(""))
    asked, plain = (session.sql(TOTALS) for session in (lab.spark, lab.plain))
    lab.plain.sql("ALTER TABLE sales RENAME COLUMN cost TO costs")
    before = cachemgr.counters(lab.spark)
    for made in (plain, asked):
        with pytest.raises(AnalysisException, match="DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"):
            made.collect()
    after = cachemgr.counters(lab.spark)
    assert after.get("errors", 0) == before.get("errors", 0)
    assert after["misses"] == before["misses"], "it was never planned, so that nothing is told"
    lab.hit(TOTALS)
