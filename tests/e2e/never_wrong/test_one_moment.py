"""One moment a query: caches, tables, subqueries and writes that see the same versions."""

from __future__ import annotations

import threading

import pytest

import cachemgr
from cachemgr.spark import hook
from cachemgr.spark import session as session_module
from tests.e2e.never_wrong.sales_totals import TOTALS, stale_hit

pytestmark = pytest.mark.spark


def test_a_stale_cache_and_todays_dimension(lab):
    lab.cache("r MAX STALENESS UNLIMITED AS SELECT cust, SUM(amt) AS s FROM sales GROUP BY cust")
    query = (
        "SELECT city, total FROM (SELECT cust, SUM(amt) AS total FROM sales GROUP BY cust) t "
        "JOIN cust ON t.cust = cid"
    )
    lab.hit(query)
    lab.plain.sql("INSERT INTO sales SELECT * FROM sales WHERE id = 1")
    with lab.caches_alone():
        lab.miss(query, "MIXED_SNAPSHOTS")
    lab.hit(query)  # with what was appended, so as of now
    lab.plain.sql("DELETE FROM sales WHERE id = 2")
    lab.miss(query, "MIXED_SNAPSHOTS")
    assert stale_hit(lab, "SELECT cust, SUM(amt) FROM sales GROUP BY cust")[0]


def test_two_caches_with_different_snapshots(lab):
    lab.cache("r1 MAX STALENESS UNLIMITED AS SELECT cust, SUM(amt) AS s FROM sales GROUP BY cust")
    lab.plain.sql("INSERT INTO sales SELECT * FROM sales WHERE id = 1")
    lab.cache("r2 MAX STALENESS UNLIMITED AS SELECT cust, MAX(cost) AS m FROM sales GROUP BY cust")
    query = (
        "SELECT a.cust, s, m FROM (SELECT cust, SUM(amt) AS s FROM sales GROUP BY cust) a "
        "JOIN (SELECT cust, MAX(cost) AS m FROM sales GROUP BY cust) b ON a.cust = b.cust"
    )
    with lab.caches_alone():
        before = lab.hits()
        assert sorted(map(str, lab.sql(query))) == sorted(map(str, lab.plain.sql(query).collect()))
        assert lab.hits() == before + 1, "the current one serves, the stale one does not"
        assert cachemgr.explain(lab.spark, query).caches == (f"{lab.schema}.r2",)
    lab.hit(query)
    assert len(cachemgr.explain(lab.spark, query).caches) == 2, "one with what was appended since"


def test_a_stale_cache_beside_a_subquery(lab):
    lab.cache("r MAX STALENESS UNLIMITED AS SELECT cust, SUM(amt) AS s FROM sales GROUP BY cust")
    query = (
        "SELECT cust, SUM(amt) AS s FROM sales GROUP BY cust "
        "HAVING SUM(amt) >= (SELECT AVG(amt) FROM sales)"
    )
    lab.plain.sql("INSERT INTO sales SELECT 77, NULL, 'x', 1, 1000, 1, 1, 1")
    scalar = "SELECT city, (SELECT SUM(amt) FROM sales) AS t FROM cust"
    with lab.caches_alone():
        lab.miss(query, "MIXED_SNAPSHOTS")
        lab.miss(scalar)
    lab.hit(query)
    lab.hit(scalar)


def commits_after_decisions(lab, monkeypatch, commits):
    """What each of the coming decisions put in place, if anything; `commits` are the statements
    that run right after a decision, by its number."""
    decide = session_module.CacheSession.decide
    made = []

    def commit(statements) -> None:
        with hook.suspended(lab.plain):
            for statement in statements:
                lab.plain.sql(statement)

    def decide_then_commit(self, document, context):
        found = decide(self, document, context)
        made.append(bool(found))
        if len(made) in commits:
            # in a thread of its own, as this one may be in a transaction of Delta's
            other = threading.Thread(target=commit, args=[commits[len(made)]])
            other.start()
            other.join()
        return found

    monkeypatch.setattr(session_module.CacheSession, "decide", decide_then_commit)
    return made


@pytest.mark.parametrize(
    "query",
    [
        # the subquery is answered from the cache, its query reads the table
        "SELECT MAX(id), (SELECT SUM(amt) FROM sales) AS t FROM sales",
        # the query is answered from the cache, its subquery reads the table
        "SELECT SUM(amt) AS s FROM sales HAVING SUM(amt) <> (SELECT MAX(id) FROM sales)",
        # one subquery from the cache, one from the table, and a query over neither
        "SELECT (SELECT SUM(amt) FROM sales) AS t, (SELECT MAX(id) FROM sales) AS m FROM cust",
        "SELECT (SELECT MAX(id) FROM sales) AS m, (SELECT SUM(amt) FROM sales) AS t FROM cust",
    ],
)
def test_a_commit_between_the_decisions_on_a_query_and_its_subquery(lab, monkeypatch, query):
    lab.cache("r AS SELECT cust, SUM(amt) AS s FROM sales GROUP BY cust")
    expected = lab.plain.sql(query).collect()
    append = "INSERT INTO sales SELECT {}, NULL, 'x', 1, 1000, 1, 1, 1"
    commits = {number: [append.format(100 + number)] for number in (1, 2, 3)}
    made = commits_after_decisions(lab, monkeypatch, commits)
    assert lab.spark.sql(query).collect() == expected
    assert any(made)


@pytest.mark.parametrize(
    "write",
    [
        "INSERT INTO written {}",
        "CREATE OR REPLACE TABLE written USING delta AS {}",
        "INSERT OVERWRITE DIRECTORY '{{place}}' USING parquet {}",
    ],
)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1 AS part, SUM(amt) AS s FROM sales "
        "UNION ALL SELECT 2 AS part, SUM(amt) AS s FROM sales WHERE id >= 0",
        "SELECT 1 AS part, s FROM (SELECT SUM(amt) AS s FROM sales WHERE id >= 0) "
        "UNION ALL SELECT 2 AS part, (SELECT SUM(amt) FROM sales) AS s",
    ],
)
def test_a_write_sees_its_tables_at_one_moment(lab, monkeypatch, tmp_path, query, write):
    """One part of what is written is answered from the cache, the other reads the table."""
    lab.cache("r AS SELECT cust, SUM(amt) AS s FROM sales GROUP BY cust")
    lab.plain.sql("CREATE TABLE written (part INT, s BIGINT) USING delta")
    append = ["INSERT INTO sales SELECT 100, NULL, 'x', 1, 1000, 1, 1, 1"]
    made = commits_after_decisions(lab, monkeypatch, {n: append for n in range(1, 9)})
    place = tmp_path / "written"
    lab.spark.sql(write.format(query).replace("{place}", str(place)))
    written = lab.plain.read.parquet(str(place)) if place.exists() else lab.plain.table("written")
    first, second = sorted(written.collect())
    assert (first.part, second.part) == (1, 2) and first.s == second.s
    assert any(made)


@pytest.mark.parametrize("decision", [1, 2])
def test_a_merge_reads_its_source_at_one_moment(lab, monkeypatch, decision):
    """It is read twice, to find the files with matches and to write them again."""
    lab.plain.sql("CREATE TABLE base (k STRING, x INT) USING delta")
    lab.plain.sql("INSERT INTO base VALUES ('a', 6)")
    lab.plain.sql("CREATE TABLE merged (k STRING, s BIGINT) USING delta")
    lab.plain.sql("INSERT INTO merged VALUES ('a', 0)")
    lab.cache("c AS SELECT k, SUM(x) AS s FROM base GROUP BY k")
    made = commits_after_decisions(lab, monkeypatch, {decision: ["UPDATE base SET x = 1"]})
    with lab.conf(spark__databricks__delta__merge__materializeSource="none"):
        lab.spark.sql(
            "MERGE INTO merged USING (SELECT 'a' AS k, (SELECT SUM(x) FROM base) AS s) q "
            "ON merged.k = q.k AND q.s < 3 "
            "WHEN MATCHED THEN UPDATE SET s = q.s WHEN NOT MATCHED THEN INSERT *"
        )
    written = sorted(map(tuple, lab.plain.table("merged").collect()))
    assert written in ([("a", 0), ("a", 6)], [("a", 1)])
    assert any(made) and len(made) >= decision, made


def test_commits_after_the_decisions_on_two_subqueries(lab, monkeypatch):
    """One is answered from a cache, the other reads its table: as it was when it was decided."""
    lab.cache("r AS SELECT cust, SUM(amt) AS s FROM sales GROUP BY cust")
    lab.cache("of_cust AS SELECT nation, COUNT(*) AS n FROM cust GROUP BY nation")
    query = "SELECT (SELECT MAX(cid) FROM cust) AS m, (SELECT SUM(amt) FROM sales) AS t"
    expected = lab.plain.sql(query).collect()
    appends = [
        "INSERT INTO sales SELECT 100, NULL, 'x', 1, 1000, 1, 1, 1",
        "INSERT INTO cust SELECT 100, 'x', 'y'",
    ]
    made = commits_after_decisions(lab, monkeypatch, {2: appends})
    assert lab.spark.sql(query).collect() == expected
    assert sorted(made) == [False, True]


def fail_second(lab, made, decide):
    if made:
        raise RuntimeError("the second decision")
    return decide()


def disable_behind_the_first(lab, made, decide):
    """As when a server's sidecar ends meanwhile."""
    found = decide()
    cachemgr.disable(lab.spark)
    return found


@pytest.mark.parametrize("second", [fail_second, disable_behind_the_first])
def test_what_is_left_alone_behind_a_decision_on_a_subquery(lab, monkeypatch, second):
    """The subquery is answered from a cache by then: its query reads the table at that moment."""
    lab.cache("r AS SELECT cust, SUM(amt) AS s FROM sales GROUP BY cust")
    query = "SELECT MAX(id) AS m, (SELECT SUM(amt) FROM sales) AS t FROM sales"
    expected = lab.plain.sql(query).collect()
    append = "INSERT INTO sales SELECT 100, NULL, 'x', 1, 1000, 1, 1, 1"
    made = commits_after_decisions(lab, monkeypatch, {1: [append]})
    decide = session_module.CacheSession.decide

    def decide_or_not(self, document, context):
        return second(lab, made, lambda: decide(self, document, context))

    monkeypatch.setattr(session_module.CacheSession, "decide", decide_or_not)
    with lab.conf(spark__cachemgr__mode="rewrite"):
        assert lab.spark.sql(query).collect() == expected
    assert made == [True]


def left_to_delta(lab):
    return hook.counters(lab.spark).get("own_target", 0)


def test_a_write_that_reads_the_table_it_writes_is_left_to_delta(lab):
    lab.cache("r AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
    lab.plain.sql("CREATE TABLE totals (region STRING, total BIGINT) USING delta")
    before = lab.hits(), left_to_delta(lab)
    lab.sql(f"INSERT INTO totals {TOTALS}")
    assert lab.hits() > before[0] and left_to_delta(lab) == before[1]
    lab.sql("INSERT INTO sales SELECT 99, NULL, region, 1, total, 1, 1, 1 FROM "
            "(SELECT region, SUM(amt) AS total FROM sales GROUP BY region)")  # fmt: skip
    assert left_to_delta(lab) > before[1]
    rows = lab.plain.sql("SELECT region, amt FROM sales WHERE id = 99").collect()
    assert sorted(map(str, rows)) == sorted(
        str(r) for r in lab.plain.sql("SELECT region, total AS amt FROM totals").collect()
    )


@pytest.mark.parametrize(
    "select",
    [
        # the query of IN is answered from a cache, and what is around it reads the target
        "SELECT id + 100, day, region, cust, amt, cost, price, weight FROM sales "
        "WHERE cust IN (SELECT cid FROM cust)",
        # decided before its query
        "SELECT id + 100, day, region, cust, (SELECT COUNT(*) FROM cust), cost, price, weight "
        "FROM sales",
    ],
)
def test_delta_sees_what_a_write_reads_of_its_target_beside_a_cache(lab, select):
    lab.cache("r AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
    lab.cache("cities AS SELECT cid, COUNT(*) AS n FROM cust GROUP BY cid")
    before = left_to_delta(lab), lab.hits()
    lab.sql(f"INSERT INTO sales {select}")
    assert left_to_delta(lab) > before[0] and lab.hits() > before[1]
    [written] = lab.plain.sql("DESCRIBE HISTORY sales LIMIT 1").collect()
    assert written.isBlindAppend is False, "whoever deletes what it read is in conflict with it"


def test_a_write_to_its_source_sees_other_tables_at_one_moment(lab, monkeypatch):
    """The subquery is answered from a cache of `cust`, which its query reads beside its target."""
    lab.cache("r AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
    lab.cache("cities AS SELECT nation, COUNT(*) AS n FROM cust GROUP BY nation")
    more = ["INSERT INTO cust VALUES (9, 'Pisa', 'Italy')"]
    made = commits_after_decisions(lab, monkeypatch, {n: more for n in range(1, 9)})
    lab.spark.sql(
        "INSERT INTO sales SELECT 500, NULL, 'x', 1, m, (SELECT COUNT(*) FROM cust), 1, 1 FROM "
        "(SELECT COUNT(*) AS m FROM cust WHERE cid > 0) CROSS JOIN (SELECT MAX(id) FROM sales)"
    )
    [row] = lab.plain.sql("SELECT amt, cost FROM sales WHERE id = 500").collect()
    assert row.amt == row.cost and any(made)
