# ruff: noqa: E501 - tables of SQL read better unbroken
"""Base tables that are no longer what a snapshot read though their id and version say so: folders
put back from a copy, and columns that changed under a cache that may lag behind."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from test_text_door import Door

import cachemgr
from cachemgr.errors import CacheManagerError
from cachemgr.spark.api import _of
from tests.worlds.lab_star import JOIN

pytestmark = pytest.mark.spark

TOTALS = "SELECT region, SUM(amt) AS s FROM sales GROUP BY region"
CACHE = "r {} AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region"


def folder(lab, name="sales"):
    return Path(lab.plain.sql(f"DESCRIBE DETAIL {name}").first().location.removeprefix("file:"))


def copied(lab, name="sales"):
    place = folder(lab, name)
    copy = lab.folder / f"copy of {name}"
    shutil.copytree(place, copy)
    return place, copy


def put_back(place, copy, *, keep_times):
    """The folder as it was copied; the files keep their times or get those of now."""
    shutil.rmtree(place)
    shutil.copytree(copy, place, copy_function=shutil.copy2 if keep_times else shutil.copyfile)


def forget_logs(lab):
    """As a process that starts now would see the tables."""
    lab.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def commits(place):
    return sorted((place / "_delta_log").glob("*.json"))


def mode(lab, name="r"):
    """How the cache's last refresh was done, and why."""
    lab.sql(f"REFRESH RELATIONAL CACHE {name}")
    with lab.metastore() as store:
        cache = next(c for c in store.caches.all() if c.name == name)
        run = store.refreshes.of(cache.id, limit=1)[0]
        return run.mode, run.reason, run.state.value


def stored(lab, statement):
    """Change what the metastore holds, as a release before this one would have left it."""
    engine = create_engine(lab.url)
    with engine.begin() as connection:
        connection.execute(text(statement))
        connection.execute(text("UPDATE caches SET revision = revision + 1000"))
        connection.execute(text("UPDATE registry_revision SET revision = revision + 1000"))
    engine.dispose()
    _of(lab.spark).session.feed.sync()


@pytest.mark.parametrize(
    ("keep_times", "warm"),
    [(True, True), (False, False)],
    ids=["kept times, the same process", "new times, a new process"],
)
def test_a_folder_put_back_from_a_copy(lab, keep_times, warm):
    place, copy = copied(lab)
    lab.plain.sql("INSERT INTO sales VALUES (9, NULL, 'lost', 1, 100, 1, 1, 1)")
    lab.cache(CACHE.format("MAX STALENESS UNLIMITED"))
    lab.cache(CACHE.format("").replace("r ", "strict ", 1))
    lab.hit(TOTALS)
    door = Door(lab)
    door.hit(TOTALS)
    put_back(place, copy, keep_times=keep_times)
    if not warm:
        forget_logs(lab)
    lab.plain.sql("INSERT INTO sales VALUES (9, NULL, 'found', 1, 5, 1, 1, 1)")
    lab.miss(TOTALS, "TABLE_RECREATED")
    assert set(door.codes(TOTALS)) == {"TABLE_RECREATED"}
    assert "STALE" in str(lab.sql("DESCRIBE RELATIONAL CACHE r"))
    # one commit on: the snapshot's number is passed, its history is none of this table's
    lab.plain.sql("INSERT INTO sales VALUES (10, NULL, 'more', 1, 5, 1, 1, 1)")
    assert "TABLE_RECREATED" in lab.codes(TOTALS)
    lab.check(TOTALS, False)
    assert "TABLE_RECREATED" in door.codes(TOTALS)
    assert mode(lab)[0] == "FULL"
    lab.hit(TOTALS)
    door.hit(TOTALS)
    door.feed.close()


def test_a_refresh_of_a_folder_put_back_is_never_unchanged(lab):
    place, copy = copied(lab)
    lab.plain.sql("INSERT INTO sales VALUES (9, NULL, 'lost', 1, 100, 1, 1, 1)")
    lab.cache(CACHE.format(""))
    put_back(place, copy, keep_times=True)
    lab.plain.sql("INSERT INTO sales VALUES (9, NULL, 'found', 1, 5, 1, 1, 1)")
    told = lab.sql("EXPLAIN REFRESH r")
    assert "put back from a copy" in str(told)
    way, reason, _ = mode(lab)
    assert way == "FULL" and "put back from a copy" in reason
    lab.hit(TOTALS)
    assert mode(lab)[2] == "UNCHANGED"
    # and the same folder copied away and back is what it was
    put_back(place, shutil.copytree(place, lab.folder / "same"), keep_times=False)
    forget_logs(lab)
    lab.hit(TOTALS)
    assert mode(lab)[2] == "UNCHANGED"


def test_a_table_cut_off_at_the_snapshots_past(lab):
    """Put back and not written to: its head is before the snapshot's version."""
    place, copy = copied(lab)
    lab.plain.sql("INSERT INTO sales VALUES (9, NULL, 'lost', 1, 100, 1, 1, 1)")
    lab.cache(CACHE.format("MAX STALENESS UNLIMITED"))
    put_back(place, copy, keep_times=True)
    forget_logs(lab)
    lab.miss(TOTALS, "STALE")
    assert mode(lab)[0] == "FULL"
    lab.hit(TOTALS)


def test_a_commit_that_is_only_in_a_checkpoint_is_no_other_history(lab):
    """Delta itself needs the newest commit's file; those before it are cleaned from the log."""
    place = folder(lab)
    lab.cache(CACHE.format("MAX STALENESS UNLIMITED"))
    stored_rows = sorted(lab.hit(TOTALS), key=str)
    lab.plain.sql("INSERT INTO sales VALUES (9, NULL, 'new', 1, 100, 1, 1, 1)")
    lab.plain.sql("SELECT COUNT(*) FROM sales").collect()
    log = lab.spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(
        lab.plain._jsparkSession, str(place)
    )
    log.checkpoint()
    for commit in commits(place)[:-1]:
        commit.unlink()
    forget_logs(lab)
    hits = lab.hits()
    assert sorted(lab.spark.sql(TOTALS).collect(), key=str) == stored_rows
    assert lab.hits() == hits + 1
    assert mode(lab)[0] == "REPLACE" and mode(lab)[2] == "UNCHANGED"
    lab.hit(TOTALS)


def test_writers_that_give_no_transaction_id(lab):
    """A commit is then known by its content."""
    place, copy = copied(lab)
    head = len(commits(place))

    def commit(operation):
        actions = [{"commitInfo": {"timestamp": 1, "operation": operation}}]
        path = place / "_delta_log" / f"{head:020d}.json"
        path.write_text("".join(json.dumps(a) + "\n" for a in actions))

    commit("one")
    lab.cache(CACHE.format(""))
    lab.hit(TOTALS)
    door = Door(lab)
    door.hit(TOTALS)
    put_back(place, copy, keep_times=True)
    commit("one")
    forget_logs(lab)
    lab.hit(TOTALS)
    door.hit(TOTALS)
    time.sleep(0.05)
    commit("another writer's")
    forget_logs(lab)
    lab.miss(TOTALS, "TABLE_RECREATED")
    assert set(door.codes(TOTALS)) == {"TABLE_RECREATED"}
    assert mode(lab)[0] == "FULL"
    lab.hit(TOTALS)
    door.feed.close()


def test_a_table_whose_commits_a_catalog_manages_from_now_on(lab):
    """Its log does not tell how it stands: commits come there later, or never."""
    coordinated = lab.spark._jvm.org.apache.spark.sql.delta.coordinatedcommits
    coordinated.CatalogOwnedCommitCoordinatorProvider.registerBuilder(
        "spark_catalog", coordinated.InMemoryCommitCoordinatorBuilder(5)
    )
    place = folder(lab)
    lab.cache(CACHE.format("MAX STALENESS UNLIMITED"))
    lab.cache(CACHE.format("").replace("r ", "strict ", 1))
    lab.hit(TOTALS)
    door = Door(lab)
    door.hit(TOTALS)
    both, writer = ["catalogManaged", "vacuumProtocolCheck"], ["inCommitTimestamp", "invariants"]
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": both,
        "writerFeatures": [*both, *writer, "appendOnly"],
    }
    actions = [{"commitInfo": {"timestamp": 1, "operation": "UPGRADE"}}, {"protocol": protocol}]
    path = place / "_delta_log" / f"{len(commits(place)):020d}.json"
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))
    lab.miss(TOTALS, "UNSUPPORTED_RELATION")
    assert set(door.codes(TOTALS)) == {"FRESHNESS_UNKNOWN"}
    for statement, code in (
        ("REFRESH RELATIONAL CACHE strict", "TABLE_UNREADABLE"),
        ("CREATE RELATIONAL CACHE c AS SELECT id FROM sales", "CATALOG_MANAGED_TABLE"),
        (JOIN, "CATALOG_MANAGED_TABLE"),
    ):
        with pytest.raises(CacheManagerError, match=r"(?i)catalog") as refused:
            lab.sql(statement)
        assert refused.value.code == code
    assert "AVAILABLE" not in str(lab.sql("DESCRIBE RELATIONAL CACHE strict"))
    door.feed.close()


@pytest.mark.parametrize("moved", [False, True])
def test_a_snapshot_that_was_stored_before_this(lab, moved):
    """Proven by its commit's time it serves on, and the next refresh notes down what it lacks."""
    place = folder(lab)
    lab.cache(CACHE.format(""))
    stored(lab, "UPDATE snapshot_tables SET commit_id = NULL, columns = NULL")
    if moved:
        newest = commits(place)[-1]
        os.utime(newest, (newest.stat().st_mtime + 60, newest.stat().st_mtime + 60))
        forget_logs(lab)
    if moved:
        lab.miss(TOTALS, "TABLE_RECREATED")
        assert mode(lab)[0] == "FULL"
    else:
        lab.hit(TOTALS)
        way, reason, _ = mode(lab)
        assert way == "JOINS" and "which commits" in reason
    lab.hit(TOTALS)
    with lab.metastore() as store:
        [table] = store.snapshots.published(store.caches.all()[0].id).tables
    assert table.commit_id.startswith("txn:") and '"amt"' in table.columns
    assert mode(lab)[2] == "UNCHANGED"


def test_a_stale_snapshot_that_was_stored_before_this(lab):
    lab.cache(CACHE.format("MAX STALENESS UNLIMITED"))
    stored(lab, "UPDATE snapshot_tables SET commit_id = NULL, columns = NULL")
    lab.plain.sql("INSERT INTO sales VALUES (9, NULL, 'new', 1, 100, 1, 1, 1)")
    before = lab.hits()
    lab.sql(TOTALS)
    assert lab.hits() == before + 1
    lab.plain.sql("ALTER TABLE sales ALTER COLUMN id DROP NOT NULL")
    lab.sql(TOTALS)
    assert lab.hits() == before + 2, "the cache does not read it"


def test_a_key_found_unique_before_its_table_was_put_back(lab):
    lab.sql(
        "CREATE RECORD PRESERVING JOIN sc AS sales INNER JOIN cust ON cust = cid PRESERVES sales"
    )
    lab.cache("r AS SELECT cust, SUM(amt) AS s, COUNT(amt) AS n FROM sales GROUP BY cust")
    # an average of whole numbers is exact only where each row finds one customer
    query = "SELECT city, AVG(amt) AS a FROM sales JOIN cust ON cust = cid GROUP BY city"
    lab.hit(query)
    with lab.metastore() as store:
        [join] = store.joins.all()
        assert all(state.commit for state in join.validated_versions.values())
    place, copy = copied(lab, "cust")
    lab.plain.sql("INSERT INTO cust VALUES (4, 'Ulm', 'Germany')")
    lab.sql("VALIDATE RECORD PRESERVING JOIN sc")
    lab.hit(query)
    put_back(place, copy, keep_times=True)
    forget_logs(lab)
    lab.plain.sql("INSERT INTO cust VALUES (1, 'Rom', 'Italia')")
    lab.miss(query)  # the key is no longer unique, in a state that has the number of the one seen


@pytest.mark.parametrize("kept", ["by the file", "in the commit"])
def test_a_commit_from_the_future_makes_no_stale_cache_fresh(lab, kept):
    if kept == "in the commit":
        lab.plain.sql(
            "ALTER TABLE sales SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = true)"
        )
    lab.cache(CACHE.format("MAX STALENESS INTERVAL 1 HOUR"))
    lab.plain.sql("INSERT INTO sales VALUES (9, NULL, 'new', 1, 100, 1, 1, 1)")
    newest, tomorrow = commits(folder(lab))[-1], time.time() + 86_400
    if kept == "in the commit":
        first, *rest = newest.read_text().splitlines(keepends=True)
        info = json.loads(first)
        info["commitInfo"]["inCommitTimestamp"] = int(tomorrow * 1000)
        newest.write_text("".join([json.dumps(info) + "\n", *rest]))
        newest.with_suffix(".crc").unlink(missing_ok=True)
        newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)
    else:
        os.utime(newest, (tomorrow, tomorrow))
    forget_logs(lab)
    door = Door(lab)
    before = lab.hits()
    lab.sql(TOTALS)
    assert lab.hits() == before + 1 and door.ask(TOTALS).sql is not None, "refreshed just now"
    stored(lab, "UPDATE refresh_runs SET started_at = '2026-01-01 00:00:00.000000'")
    with lab.caches_alone():
        lab.miss(TOTALS, "STALE")
    assert door.codes(TOTALS) == ["STALE", "FRESH_IN_SPARK_ONLY"]
    door.feed.close()


# -- columns ------------------------------------------------------------------------------------

MAPPED = (
    "ALTER TABLE sales SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
    "'delta.enableTypeWidening' = 'true', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')"
)


ANOTHER = "column amt is another column"


@pytest.mark.parametrize(
    ("freshness", "changes", "told"),
    [
        ("UNLIMITED", ["RENAME COLUMN amt TO z", "RENAME COLUMN cost TO amt"], ANOTHER),
        ("INTERVAL 1 DAY", ["DROP COLUMN amt", "ADD COLUMN amt BIGINT"], ANOTHER),
        ("INTERVAL 1 DAY", ["ALTER COLUMN cust TYPE BIGINT"], "column cust was integer and is long"),
    ],
)  # fmt: skip
def test_a_stale_cache_over_columns_that_changed(lab, changes, told, freshness):
    lab.plain.sql(MAPPED)
    lab.cache(
        f"r MAX STALENESS {freshness} AS SELECT region, SUM(amt) AS s, SUM(cust) AS c, COUNT(id) AS n "
        "FROM sales GROUP BY region"
    )
    query = (
        "SELECT region, SUM(amt) AS s, SUM(cust) AS c, COUNT(id) AS n FROM sales GROUP BY region"
    )
    other = "SELECT COUNT(id) AS n FROM sales"
    door = Door(lab)
    lab.hit(query)
    for change in changes:
        lab.plain.sql(f"ALTER TABLE sales {change}")
    for text_ in (query, other):
        lab.miss(text_, "COLUMNS_CHANGED")
        assert "COLUMNS_CHANGED" in door.codes(text_)
    explained = cachemgr.explain(lab.spark, query).text()
    assert told in explained and "bug in cachemgr" not in explained
    described = str(lab.sql("DESCRIBE RELATIONAL CACHE EXTENDED r"))
    assert described.count(told) == 2, "of what answers, and of the table"
    assert mode(lab)[0] == "FULL"
    lab.hit(query)
    door.hit(query)
    door.feed.close()


def test_a_refresh_names_the_column_that_is_gone(lab):
    lab.plain.sql(MAPPED)
    lab.cache(CACHE.format("MAX STALENESS UNLIMITED"))
    lab.plain.sql("ALTER TABLE sales RENAME COLUMN amt TO z")
    lab.miss("SELECT region, SUM(z) AS s FROM sales GROUP BY region")
    with pytest.raises(CacheManagerError, match="no column amt any more"):
        lab.sql("REFRESH RELATIONAL CACHE r")


def test_a_refresh_follows_a_key_that_was_widened(lab):
    by_cust = "SELECT cust, SUM(amt) AS s FROM sales GROUP BY cust"
    lab.plain.sql(MAPPED)
    lab.cache(f"r MAX STALENESS UNLIMITED AS {by_cust}")
    lab.plain.sql("ALTER TABLE sales ALTER COLUMN cust TYPE BIGINT")
    lab.miss(by_cust, "COLUMNS_CHANGED")
    way, reason, _ = mode(lab)
    assert way == "FULL" and "column cust of" in reason and "was int and is bigint" in reason
    lab.hit(by_cust)
