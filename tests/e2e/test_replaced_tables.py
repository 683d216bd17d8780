# ruff: noqa: E501 - tables of SQL read better unbroken
"""Base tables that got columns, wider columns, or were replaced as a nightly job does it: the cache
follows by itself, by hand and by its schedule, and says why; what it does not follow it names."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest
from pyspark.errors import PySparkException
from test_text_door import Door

from cachemgr.errors import CacheManagerError
from cachemgr.refresh import run as refresh
from cachemgr.spark.api import _of
from cachemgr.spark.definitions import replan
from cachemgr.spark.refresher import SparkRefresher
from cachemgr.vocabulary import RunState
from cachemgr.worker import put_right
from cachemgr.worker.schedule import Watch, ask_for_due
from cachemgr.worker.worker import Worker
from tests.worlds.lab_star import JOIN, exact

pytestmark = pytest.mark.spark

BY_CUST = "SELECT cust, SUM(amt) AS s, COUNT(*) AS n FROM sales GROUP BY cust"
STAR = "SELECT * FROM sales"
OF_STAR = "SELECT id, region, amt FROM sales"
MORE = "INSERT INTO sales (id, region, cust, amt) VALUES (100, 'new', 7, 70), (101, NULL, 1, 1)"
WIDENING = "ALTER TABLE sales SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
AS_BIGINT = "SELECT * EXCEPT (cust), CAST(cust AS BIGINT) AS cust FROM copy"
ELSEWHERE = "DROP TABLE sales; CREATE TABLE sales USING delta LOCATION '{folder}/elsewhere' AS SELECT * FROM copy"
OVERWRITE = "overwrite: "


@dataclass(frozen=True)
class Change:
    """A definition, a query that it answers, what a job does to the tables, and what is told."""

    definition: str
    query: str
    job: str
    miss: str
    reason: str


CHANGES = {
    "star, column added": Change(STAR, OF_STAR, f"ALTER TABLE sales ADD COLUMN extra STRING; {MORE}", "", "appended"),
    "star, replaced with more columns": Change(STAR, OF_STAR, "CREATE OR REPLACE TABLE sales USING delta AS SELECT 1 AS more, * FROM copy", "TABLE_RECREATED", "TABLE_RECREATED: .*sales was re-created"),
    "star, replaced with columns in another order": Change(STAR, OF_STAR, "CREATE OR REPLACE TABLE sales USING delta AS SELECT weight, region, * EXCEPT (weight, region) FROM copy", "TABLE_RECREATED", "TABLE_RECREATED"),
    "grouped by all of a star": Change("SELECT DISTINCT * FROM cust", "SELECT DISTINCT cid, city, nation FROM cust", "ALTER TABLE cust ADD COLUMN zip STRING; INSERT INTO cust VALUES (1, 'Rome', 'Italy', '1'), (1, 'Rome', 'Italy', '2'), (4, 'Bonn', NULL, '')", "", "appended"),
    "a count of a star": Change("SELECT COUNT(DISTINCT *) AS n FROM cust", "SELECT COUNT(DISTINCT cid, city, nation) AS n FROM cust", "ALTER TABLE cust ADD COLUMN zip STRING; INSERT INTO cust VALUES (1, 'Rome', 'Italy', '1'), (1, 'Rome', 'Italy', '2'), (4, 'Bonn', 'Germany', '')", "STALE", ""),
    "a column that makes a name ambiguous": Change("SELECT region, city, COUNT(*) AS n FROM sales JOIN cust ON cust = cid GROUP BY region, city", "SELECT sales.region, city, COUNT(*) AS n FROM sales JOIN cust ON cust = cid GROUP BY sales.region, city", f"ALTER TABLE cust ADD COLUMN region STRING; {MORE}", "", ""),
    "widened by ALTER": Change(BY_CUST, BY_CUST, f"{WIDENING}; ALTER TABLE sales ALTER COLUMN cust TYPE BIGINT; {MORE}", "COLUMNS_CHANGED", "COLUMNS_CHANGED: column cust of .*sales was int and is bigint"),
    "widened by CREATE OR REPLACE": Change(BY_CUST, BY_CUST, f"CREATE OR REPLACE TABLE sales USING delta AS {AS_BIGINT}", "TABLE_RECREATED", "TABLE_RECREATED: .*sales was re-created; column cust of .*sales was int and is bigint"),
    "widened by an overwrite": Change(BY_CUST, BY_CUST, f"{OVERWRITE}{AS_BIGINT}", "COLUMNS_CHANGED", "COLUMNS_CHANGED: column cust of .*sales was int and is bigint"),
    "star, widened": Change(STAR, OF_STAR.replace("amt", "amt, cust"), f"{WIDENING}; ALTER TABLE sales ALTER COLUMN cust TYPE BIGINT; {MORE}", "COLUMNS_CHANGED", "COLUMNS_CHANGED"),
    "replaced as it was": Change(BY_CUST, BY_CUST, "CREATE OR REPLACE TABLE sales USING delta AS SELECT * FROM copy", "TABLE_RECREATED", "TABLE_RECREATED: .*sales was re-created"),
    "overwritten with more columns": Change(BY_CUST, BY_CUST, f"{OVERWRITE}SELECT *, 1 AS more FROM copy", "STALE", ""),
    "dropped and created again": Change(BY_CUST, BY_CUST, "DROP TABLE sales; CREATE TABLE sales USING delta AS SELECT * FROM copy", "TABLE_RECREATED", "TABLE_RECREATED: .*sales was re-created"),
    "dropped and created elsewhere": Change(BY_CUST, BY_CUST, ELSEWHERE, "TABLE_RECREATED", "TABLE_RECREATED: .*sales is another table now, at .*/elsewhere"),
}  # fmt: skip


def run_job(lab, job):
    """What a job does, the first statement on a copy of its table; it runs in another session."""
    lab.plain.sql("CREATE TABLE IF NOT EXISTS copy USING delta AS SELECT * FROM sales")
    if job.startswith(OVERWRITE):
        rows = lab.plain.sql(job.removeprefix(OVERWRITE))
        over = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        over.saveAsTable("sales")
        return
    for statement in job.format(folder=lab.folder).split("; "):
        lab.plain.sql(statement)


def by_hand(lab):
    """Refresh in the session; how, and why."""
    told = lab.sql("EXPLAIN REFRESH c")[0]
    (row,) = lab.sql("REFRESH RELATIONAL CACHE c")
    assert row.reason == told.detail
    return row.mode, row.reason


def by_schedule(lab):
    """Have a worker look and refresh; how, and why."""
    with lab.metastore() as store:
        worker_looks(lab, store)
        cache = store.caches.named(lab.schema, "c")
        run = store.refreshes.of(cache.id, limit=1)[0]
        assert not cache.paused and run.state is RunState.PUBLISHED, run.error
        assert run.origin == "SCHEDULE"
        return run.mode, run.reason


def worker_looks(lab, store):
    refresher = SparkRefresher(lambda: lab.spark, store, lease_seconds=20.0)
    Watch(store, refresher).look()
    ask_for_due(store)
    worker = Worker(store, refresher, holder="w1", lease_seconds=20.0)
    taken = worker.take()
    assert worker.stop(60) == ()
    _of(lab.spark).session.feed.sync()
    return taken


@pytest.mark.parametrize(
    ("refresh", "freshness"),
    [(by_hand, ""), (by_schedule, "MAX STALENESS UNLIMITED")],
    ids=["by hand, strict", "by schedule, may lag"],
)
@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_table_is_followed(lab, name, refresh, freshness):
    change = CHANGES[name]
    lab.cache(f"c REFRESH ON COMMIT {freshness} AS {change.definition}")
    lab.hit(change.query)
    columns = [(c.col_name, c.data_type) for c in described(lab)]
    run_job(lab, change.job)
    if change.miss and not (freshness and change.miss == "STALE"):
        with lab.caches_alone():
            lab.miss(change.query, change.miss)
    mode, reason = refresh(lab)
    if change.reason and change.reason != "appended":
        assert mode == "FULL"
        assert matches(change.reason, reason), reason
    with lab.caches_alone():
        lab.hit(change.query)
    after = [(c.col_name, c.data_type) for c in described(lab)]
    assert [c[0] for c in after] == [c[0] for c in columns], "SELECT * means the columns at CREATE"
    # and it is refreshed as ever from then on
    lab.plain.sql("INSERT INTO sales (id, region, cust, amt) VALUES (200, 'last', 1, 5)")
    lab.sql("REFRESH RELATIONAL CACHE c")
    with lab.caches_alone():
        lab.hit(change.query)


def matches(pattern, text):
    import re

    return re.search(pattern, text) is not None


def described(lab):
    """The columns of the cache as DESCRIBE shows them."""
    rows = lab.sql("DESCRIBE RELATIONAL CACHE c")
    return rows[: next(i for i, row in enumerate(rows) if not row.col_name)]


NARROWED = {
    "a key": ("CAST(cust AS SMALLINT) AS cust", "cust", "smallint", "int"),
    "a summed number": ("CAST(amt AS INT) AS amt", "amt", "int", "bigint"),
    "a number that became a text": ("CAST(amt AS STRING) AS amt", "amt", "string", "bigint"),
}


@pytest.mark.parametrize("name", NARROWED)
def test_a_narrower_or_other_type_is_named_and_followed_once_it_is_put_right(
    lab, name, monkeypatch
):
    expression, column, now, then = NARROWED[name]
    lab.cache(f"c REFRESH ON COMMIT AS {BY_CUST}")
    run_job(
        lab,
        f"CREATE OR REPLACE TABLE sales USING delta AS SELECT * EXCEPT ({column}), {expression} FROM copy",
    )
    lab.miss(BY_CUST, None if now == "string" else "TABLE_RECREATED")
    with pytest.raises(
        CacheManagerError,
        match=f"column {column} of .*sales is {now} now and was {then} .*OR REPLACE",
    ) as caught:
        lab.sql("REFRESH RELATIONAL CACHE c")
    assert caught.value.code == "BASE_COLUMN_CHANGED"
    lab.miss(BY_CUST)
    with lab.metastore() as store:
        worker_looks(lab, store)
        schedule = store.schedules.of(store.caches.named(lab.schema, "c").id)
        assert schedule.cache.paused and f"column {column}" in schedule.paused_because
        monkeypatch.setattr(put_right, "_FIRST_SECONDS", 0.0)
        # the next night's job is right again: the cache goes on by itself
        run_job(lab, "CREATE OR REPLACE TABLE sales USING delta AS SELECT * FROM copy")
        worker_looks(lab, store)
        assert not store.schedules.of(schedule.cache.id).cache.paused
    with lab.caches_alone():
        lab.hit(BY_CUST)


def test_a_column_that_is_gone_is_named(lab):
    lab.cache(f"c MAX STALENESS UNLIMITED AS {BY_CUST}")
    lab.cache(f"star MAX STALENESS UNLIMITED AS {STAR}")
    run_job(lab, "CREATE OR REPLACE TABLE sales USING delta AS SELECT * EXCEPT (cust) FROM copy")
    for query in (BY_CUST, "SELECT cust FROM sales"):
        with pytest.raises(Exception, match="cust"):
            lab.sql(query)
    lab.miss("SELECT id, region FROM sales", "TABLE_RECREATED")
    for cache in ("c", "star"):
        with pytest.raises(CacheManagerError, match="no column cust any more"):
            lab.sql(f"REFRESH RELATIONAL CACHE {cache}")
    lab.miss("SELECT id, region FROM sales", "TABLE_RECREATED")


def test_describe_says_which_columns_a_star_means(lab):
    lab.cache(f"c AS {STAR}")
    lab.cache("plain AS SELECT cust * 2 AS twice, COUNT(*) AS n FROM sales GROUP BY cust * 2")
    run_job(lab, "ALTER TABLE sales ADD COLUMN extra STRING")
    lab.sql("REFRESH RELATIONAL CACHE c")
    (told,) = [
        r.data_type for r in lab.sql("DESCRIBE RELATIONAL CACHE c") if r.col_name == "select *"
    ]
    assert "CREATE" in told and "OR REPLACE" in told
    assert "select *" not in str(lab.sql("DESCRIBE RELATIONAL CACHE plain"))
    lab.miss("SELECT id, extra FROM sales")
    lab.sql(f"CREATE OR REPLACE RELATIONAL CACHE c AS {STAR}")
    lab.sql("REFRESH RELATIONAL CACHE c")
    lab.hit("SELECT id, extra FROM sales")


def test_a_cache_over_a_cache_and_a_view_keep_their_columns(lab):
    lab.plain.sql("CREATE VIEW v AS SELECT id, region FROM sales")
    lab.cache("c AS SELECT * FROM sales")
    lab.cache("over AS SELECT * FROM c")
    lab.cache("of_view AS SELECT * FROM v")
    run_job(
        lab,
        f"ALTER TABLE sales ADD COLUMN extra STRING; {MORE}; CREATE OR REPLACE VIEW v AS SELECT id, region, amt, extra FROM sales",
    )
    for cache in ("c", "over", "of_view"):
        lab.sql(f"REFRESH RELATIONAL CACHE {cache}")
        columns = [r.col_name for r in lab.sql(f"DESCRIBE RELATIONAL CACHE {cache}")]
        assert "extra" not in columns[: columns.index("")]
    lab.plain.sql("CREATE OR REPLACE VIEW v AS SELECT id, CAST(id AS STRING) AS region FROM sales")
    with pytest.raises(CacheManagerError, match="COLUMNS_CHANGED"):
        lab.plain.sql("CREATE OR REPLACE VIEW v AS SELECT id, amt AS region FROM sales")
        lab.sql("REFRESH RELATIONAL CACHE of_view")


def test_by_text_it_misses_and_hits_as_in_a_session(lab):
    lab.cache(f"c AS {BY_CUST}")
    door = Door(lab)
    door.hit(BY_CUST)
    run_job(lab, f"CREATE OR REPLACE TABLE sales USING delta AS {AS_BIGINT}")
    assert "TABLE_RECREATED" in door.codes(BY_CUST)
    lab.sql("REFRESH RELATIONAL CACHE c")
    door.hit(BY_CUST)
    run_job(lab, ELSEWHERE.replace("SELECT * FROM copy", AS_BIGINT))
    assert set(door.codes(BY_CUST)) <= {"TABLE_RECREATED", "FRESHNESS_UNKNOWN", "STALE"}
    lab.sql("REFRESH RELATIONAL CACHE c")
    door.hit(BY_CUST)
    door.feed.close()


OF_CITY = (
    "SELECT region, city, SUM(amt) AS s FROM sales JOIN cust ON cust = cid GROUP BY region, city"
)
TOTALS = "SELECT region, SUM(amt) AS s FROM sales GROUP BY region"
REPLACED = {
    "at its place": "CREATE OR REPLACE TABLE cust USING delta AS SELECT * FROM others",
    "dropped and created": "DROP TABLE cust; CREATE TABLE cust USING delta AS SELECT * FROM others",
    "under its name": "DROP TABLE cust; CREATE TABLE cust USING delta LOCATION '{folder}/people' AS SELECT * FROM others",
    "under its name, its files left": "ALTER TABLE cust RENAME TO old_cust; CREATE TABLE cust USING delta LOCATION '{folder}/people' AS SELECT * FROM others",
}


@pytest.mark.parametrize("way", REPLACED)
def test_declared_joins_and_restrictions_follow(lab, way):
    lab.plain.sql("CREATE TABLE others USING delta AS SELECT * FROM cust")
    lab.sql(JOIN)
    lab.cache(f"c AS {OF_CITY}")
    lab.hit(TOTALS)
    run_job(lab, REPLACED[way])
    lab.sql("REFRESH RELATIONAL CACHE c")
    lab.hit(TOTALS)
    lab.hit(OF_CITY)
    # it is checked at the table that is there now
    lab.plain.sql("INSERT INTO cust VALUES (1, 'twice', NULL)")
    lab.sql("REFRESH RELATIONAL CACHE c")
    lab.miss(TOTALS)
    assert "BROKEN" in str(lab.sql("SHOW RECORD PRESERVING JOINS"))


@pytest.mark.parametrize("way", REPLACED)
def test_a_restricted_table_stays_so_when_it_is_replaced(lab, way):
    lab.plain.sql("CREATE TABLE others USING delta AS SELECT * FROM cust")
    lab.cache(f"c AS {OF_CITY}")
    lab.sql("RESTRICT BASE TABLE cust")
    run_job(lab, REPLACED[way])
    lab.sql("REFRESH RELATIONAL CACHE c")
    lab.miss(OF_CITY, "TABLE_RESTRICTED")
    lab.sql(f"GRANT USE ON RELATIONAL CACHE c TO `{lab.me}`")
    lab.hit(OF_CITY)
    lab.sql(f"REVOKE USE ON RELATIONAL CACHE c FROM `{lab.me}`")
    # and what it was replaced by stays so under another name
    lab.plain.sql("ALTER TABLE cust RENAME TO clients")
    lab.cache("d AS " + OF_CITY.replace("JOIN cust", "JOIN clients"))
    lab.miss(OF_CITY.replace("JOIN cust", "JOIN clients"), "TABLE_RESTRICTED")
    lab.sql("UNRESTRICT BASE TABLE clients")
    assert lab.sql("SHOW RESTRICTED BASE TABLES") == []
    lab.hit(OF_CITY.replace("JOIN cust", "JOIN clients"))


def test_the_schedule_sees_that_a_name_was_given_to_another_table(lab):
    """The old table stays where it was and does not move."""
    lab.cache(f"c REFRESH ON COMMIT AS {BY_CUST}")
    with lab.metastore() as store:
        assert worker_looks(lab, store) == 0
        run_job(
            lab,
            "ALTER TABLE sales RENAME TO old_sales; CREATE TABLE sales USING delta LOCATION '{folder}/elsewhere' AS SELECT * FROM copy WHERE id > 2",
        )
        lab.miss(BY_CUST, "TABLE_RECREATED")
        assert worker_looks(lab, store) == 1
        assert worker_looks(lab, store) == 0
    lab.hit(BY_CUST)


def test_a_worker_whose_catalog_does_not_know_the_table_follows_its_columns(lab, monkeypatch):
    """It knows the tables by their places, and their types by what is there now."""
    lab.cache(f"c REFRESH ON COMMIT AS {BY_CUST}")
    lab.cache(f"star REFRESH ON COMMIT AS {STAR}")
    run_job(
        lab,
        f"{WIDENING}; ALTER TABLE sales ADD COLUMN extra INT; ALTER TABLE sales ALTER COLUMN cust TYPE BIGINT; {MORE}",
    )

    def unknown(*_):
        raise CacheManagerError("DEFINITION_BROKEN", "[SCHEMA_NOT_FOUND] …")

    monkeypatch.setattr(replan, "replan", unknown)
    with lab.metastore() as store:
        for name in ("c", "star"):
            cache = store.caches.named(lab.schema, name)
            plan = replan.replan_anywhere(lab.spark, cache, store)
            assert {r.name for r in plan.relations} == {f"{lab.schema}.sales"}
            refresh.run_refresh(
                lab.spark,
                store,
                cache.id,
                now=lambda: None,
                holder="w",
                replan=lambda plan=plan: plan,
            )
    lab.hit(BY_CUST)
    lab.hit("SELECT id, cust FROM sales WHERE amt > 0")


@pytest.mark.parametrize("left", [1, 2])
def test_a_table_that_is_replaced_while_a_refresh_looks(lab, left):
    """Between the definition's look at the table and the versions that are read."""
    lab.cache(f"c AS {BY_CUST}")
    seen = []
    real = refresh.pin_versions

    def pinned(*args):
        if len(seen) < left:
            seen.append(1)
            kind = ("BIGINT", "DECIMAL(20,0)")[len(seen) - 1]
            run_job(
                lab,
                f"CREATE OR REPLACE TABLE sales USING delta AS SELECT * EXCEPT (cust), CAST(cust AS {kind}) AS cust FROM copy",
            )
        return real(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refresh, "pin_versions", pinned)
        lab.sql("REFRESH RELATIONAL CACHE c")
    lab.hit(BY_CUST)


ANEW = (
    "CREATE TABLE other USING delta AS SELECT id, day, region, cust, amt * 1000 AS amt, cost, price, weight FROM copy; "
    "DROP TABLE sales; CREATE TABLE sales USING delta AS SELECT * FROM other; INSERT INTO sales SELECT * FROM other"
)


@pytest.mark.parametrize("step", ["pinned", "writing", "written"])
def test_a_table_that_is_replaced_while_a_refresh_reads(lab, step):
    """It publishes one version or fails; never a mix of both, nor one under the other's name."""
    lab.cache(f"c MAX STALENESS UNLIMITED AS {BY_CUST}")
    published = [rows_of(lab.plain.sql(BY_CUST))]
    lab.plain.sql(MORE)
    published.append(rows_of(lab.plain.sql(BY_CUST)))
    run_job(lab, "SELECT 1")
    with lab.metastore() as store:
        cache = store.caches.named(lab.schema, "c")
        try:
            refresh.run_refresh(
                lab.spark, store, cache.id, now=lambda: None, holder="t",
                checkpoint=lambda name: run_job(lab, ANEW) if name == step else None,
            )  # fmt: skip
        except CacheManagerError as error:
            assert error.code in ("REFRESH_FAILED", "BASE_TABLES_MOVING"), error
        lab.miss(BY_CUST, "TABLE_RECREATED")
        version = store.snapshots.published(cache.id).run.cache_version
    reader = lab.plain.read.format("delta").option("versionAsOf", version)
    assert rows_of(reader.load(cache.location).select("cust", "s", "n")) in published
    lab.sql("REFRESH RELATIONAL CACHE c")
    lab.hit(BY_CUST)


def rows_of(frame):
    return Counter(map(exact, frame.collect()))


@pytest.mark.parametrize("kept", ["*", "CAST(amt * 2 AS BIGINT) AS amt, * EXCEPT (amt)"])
def test_a_query_that_was_made_before_its_table_was_replaced(lab, kept):
    """It answers, or fails, as it would without us."""
    lab.cache(f"c AS {BY_CUST}")
    ours, plain = lab.spark.sql(BY_CUST), lab.plain.sql(BY_CUST)
    planned = lab.spark.sql(BY_CUST)
    rows = rows_of(planned)
    run_job(lab, f"CREATE OR REPLACE TABLE sales USING delta AS SELECT {kept} FROM copy")
    assert outcome(ours) == outcome(plain)
    assert rows_of(planned) == rows


def outcome(frame):
    try:
        return rows_of(frame)
    except PySparkException as error:
        return error.getCondition()
