"""What is told of refreshes and of hits between them: DESCRIBE, SHOW, EXPLAIN CREATE, and the
switch of one cache."""

from __future__ import annotations

import pytest

import cachemgr
from cachemgr.errors import CacheManagerError
from cachemgr.refresh.by_change import incremental

pytestmark = pytest.mark.spark

TOTALS = "SELECT region, SUM(amt) AS s FROM sales GROUP BY region"
MORE = "INSERT INTO sales VALUES (9, DATE'2024-03-01', 'north', 2, 5, 1, 4.00, 0.5)"


def described(lab, name: str = "r", *, extended: bool = True) -> dict[str, str]:
    word = "EXTENDED " if extended else ""
    rows = lab.sql(f"DESCRIBE RELATIONAL CACHE {word}{name}")
    return {row.col_name: row.data_type for row in rows}


def status(lab) -> str:
    return lab.sql("SHOW RELATIONAL CACHES")[0].status


def run_of(lab):
    with lab.metastore() as store:
        return store.refreshes.of(store.caches.all()[0].id, limit=1)[0]


def test_the_way_and_its_cost_are_noted_down_and_told(lab) -> None:
    lab.cache("r AS SELECT region, SUM(amt) AS s, MAX(amt) AS m FROM sales GROUP BY region")
    first = described(lab)
    assert first["why full"].startswith("NEVER_REFRESHED: ")
    assert first["what to do"] == "nothing: the next one can be incremental"
    assert first["last refresh"].startswith("PUBLISHED FULL, ")
    account = run_of(lab).account
    assert (account.way, account.code, account.change_estimate) == ("FULL", "NEVER_REFRESHED", None)
    assert account.rows_written == run_of(lab).rows and account.bytes_written > 0
    lab.plain.sql(MORE)
    lab.sql("REFRESH RELATIONAL CACHE r INCREMENTAL")
    account = run_of(lab).account
    assert (account.way, account.code, account.changed_rows) == ("REPLACE", None, 1)
    assert account.change_estimate > 0 and account.full_estimate > 0
    assert account.rows_written == run_of(lab).rows, "few groups are written anew"
    found = described(lab)
    assert "why full" not in found and "1 row appended" in found["last refresh cost"]
    lab.plain.sql("OPTIMIZE sales")
    lab.sql("REFRESH RELATIONAL CACHE r")
    account = run_of(lab).account
    assert (account.way, account.changed_rows, account.bytes_written) == ("UNCHANGED", 0, None)
    lab.plain.sql("DELETE FROM sales WHERE id = 9")
    with pytest.raises(CacheManagerError, match="ROWS_REMOVED"):
        lab.sql("REFRESH RELATIONAL CACHE r INCREMENTAL ONLY")
    failed = run_of(lab)
    assert failed.state == "FAILED" and failed.account.way is None
    assert "last refresh reason" not in described(lab)
    assert failed.account.code == "ROWS_REMOVED" and failed.account.cure
    lab.sql("REFRESH RELATIONAL CACHE r")
    found = described(lab)
    assert found["why full"].startswith("ROWS_REMOVED: ") and found["what to do"]
    assert run_of(lab).account.changed_rows is None


def test_what_past_runs_took_is_what_the_next_ones_are_expected_to_take(lab) -> None:
    lab.cache("r AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
    first = run_of(lab)
    for _ in range(2):
        lab.plain.sql(MORE)
        lab.sql("REFRESH RELATIONAL CACHE r INCREMENTAL")
    account = run_of(lab).account
    # a full run is expected to take what the first one took, and it has more to read by now
    assert account.full_seconds >= first.seconds - 0.01 and account.change_seconds > 0
    lab.plain.sql("OPTIMIZE sales")
    lab.sql("REFRESH RELATIONAL CACHE r")
    assert run_of(lab).account.change_seconds is None, "there was no choice"
    lab.plain.sql(MORE)
    (head, *_) = lab.sql("EXPLAIN REFRESH r INCREMENTAL")
    assert "by its last runs, the change is expected to take" in str(head)
    lab.sql("REFRESH RELATIONAL CACHE r INCREMENTAL")
    assert "for a full refresh, by past runs" in described(lab)["last refresh cost"]


def test_commits_without_data_change_make_no_cache_stale(lab) -> None:
    lab.plain.sql(MORE)
    lab.cache(f"r AS {TOTALS}")
    lab.plain.sql("OPTIMIZE sales")
    lab.plain.sql("COMMENT ON TABLE sales IS 'x'")
    found = described(lab)
    assert (status(lab), found["availability"], found["lag"]) == ("HEALTHY", "AVAILABLE", "0 s")
    assert found["answers"] == "yes: it holds what its base tables hold"
    assert any("2 commits without data change" in value for value in found.values())
    lab.hit(TOTALS)


def test_appended_rows_are_told_apart_from_misses(lab) -> None:
    lab.cache(f"r AS {TOTALS}")
    lab.plain.sql(MORE)
    found = described(lab)
    assert status(lab) == found["availability"] == "APPENDED"
    assert found["answers"].startswith("yes: with the appended rows")
    assert "1 commit appended 1 row in 1 file" in found["answers"]
    assert int(found["lag"].removesuffix(" s")) >= 0
    lab.hit(TOTALS)
    lab.plain.sql("DELETE FROM sales WHERE id = 1")
    found = described(lab)
    assert status(lab) == "STALE" and found["answers"].startswith("no: not before its next refresh")
    lab.miss(TOTALS, "STALE")
    lab.sql("REFRESH RELATIONAL CACHE r")
    assert status(lab) == "HEALTHY"


def test_a_cache_with_another_column_by_now_answers_nothing(lab) -> None:
    by_cust = "SELECT region, SUM(cust) AS s FROM sales GROUP BY region"
    lab.cache(f"r MAX STALENESS UNLIMITED AS {by_cust}")
    lab.plain.sql("ALTER TABLE sales SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    lab.plain.sql("ALTER TABLE sales ALTER COLUMN cust TYPE BIGINT")
    lab.miss(by_cust, "COLUMNS_CHANGED")
    found = described(lab, extended=False)
    assert status(lab) == "STALE" and found["answers"].startswith("no: ")
    assert "column cust was integer and is long" in found["answers"]


def test_a_table_that_was_overwritten_with_a_column_of_another_type(lab) -> None:
    by_region = "SELECT region, SUM(amt) AS s FROM sales GROUP BY region"
    lab.cache(f"r AS {by_region}")
    rows = lab.plain.sql("SELECT * EXCEPT (amt), CAST(amt AS DECIMAL(20,2)) AS amt FROM sales")
    over = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    over.saveAsTable("sales")
    lab.miss(by_region, "COLUMNS_CHANGED")
    assert "again with OR REPLACE" in cachemgr.explain(lab.spark, by_region).text()
    with pytest.raises(CacheManagerError, match="create the cache again with OR REPLACE"):
        lab.sql("REFRESH RELATIONAL CACHE r")
    lab.sql(f"CREATE OR REPLACE RELATIONAL CACHE r AS {by_region}")
    lab.sql("REFRESH RELATIONAL CACHE r")
    lab.hit(by_region)


def test_a_change_whose_own_sum_overflows_is_computed_with_everything(
    lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incremental, "FEW_ROWS", -1)  # partial rows are appended
    monkeypatch.setattr(incremental, "MOST_PARTIALS", 1e9)
    lab.sql("DELETE FROM sales")
    row = "({id}, DATE'2024-03-01', 'north', 1, {amt}, 1, 4.00, 0.5)"
    amounts = (2**62, -(2**62), -(2**62))  # no sum overflows on the way
    rows = ", ".join(row.format(id=n, amt=amt) for n, amt in enumerate(amounts))
    lab.plain.sql(f"INSERT INTO sales SELECT /*+ COALESCE(1) */ * FROM VALUES {rows}")
    lab.cache("big AS SELECT region, SUM(amt) AS amt, COUNT(*) AS n FROM sales GROUP BY region")
    lab.plain.sql("DELETE FROM sales WHERE amt < 0")
    (done,) = lab.sql("REFRESH RELATIONAL CACHE big INCREMENTAL")
    assert (done["result"], done["mode"]) == ("PUBLISHED", "FULL")
    assert "a sum of the changed rows alone does not fit its column" in done["reason"]
    lab.hit("SELECT region, SUM(amt) AS a FROM sales GROUP BY region")


def test_the_switch_of_one_cache(lab) -> None:
    lab.cache(f"r TBLPROPERTIES ('cachemgr.freshHits' = 'false', 'team' = 'bi') AS {TOTALS}")
    lab.plain.sql(MORE)
    lab.miss(TOTALS, "STALE")
    assert "cachemgr.freshHits is false" in cachemgr.explain(lab.spark, TOTALS).text()
    assert status(lab) == "STALE" and "cachemgr.freshHits" in described(lab)["answers"]
    lab.sql("ALTER RELATIONAL CACHE r SET TBLPROPERTIES ('cachemgr.freshHits' = 'true')")
    lab.hit(TOTALS)
    assert status(lab) == "APPENDED"
    lab.sql("ALTER RELATIONAL CACHE r SET TBLPROPERTIES ('cachemgr.freshHits' = 'false')")
    lab.miss(TOTALS, "STALE")
    lab.sql("REFRESH RELATIONAL CACHE r")
    lab.hit(TOTALS)
    with pytest.raises(CacheManagerError, match=r"did you mean cachemgr\.freshHits"):
        lab.sql("ALTER RELATIONAL CACHE r SET TBLPROPERTIES ('cachemgr.freshHit' = 'true')")
    create = lab.sql("SHOW CREATE RELATIONAL CACHE r")[0][0]
    assert "'cachemgr.freshHits' = 'false'" in create
    with lab.metastore() as store:
        place = store.caches.all()[0].location
    stored = lab.plain.sql(f"SHOW TBLPROPERTIES delta.`{place}`").collect()
    assert {row.key for row in stored} >= {"team"}
    assert not [row.key for row in stored if row.key.startswith("cachemgr")]


def test_explain_create_says_which_ways_there_will_be(lab) -> None:
    joined = "SELECT city, SUM(amt) AS s FROM sales LEFT JOIN cust ON cust = cid GROUP BY city"
    rows = lab.sql(f"EXPLAIN CREATE RELATIONAL CACHE c AS {joined}")
    ways = {r.item: r.value for r in rows if r.item.startswith("refresh after")}
    appended = [name for name in ways if "rows appended in" in name]
    sales, cust = (next(n for n in appended if n.endswith(t)) for t in ("sales", "cust"))
    assert len(ways) == 4 and ways[sales].startswith("REPLACE or PARTIALS")
    assert ways[cust].startswith("FULL: DELTA_NOT_LINEAR: ")
    removed = {name: value for name, value in ways.items() if "removed or updated" in name}
    assert len(removed) == 2
    assert next(v for n, v in removed.items() if n.endswith("sales")).startswith("REPLACE or")
    rows = lab.sql(f"EXPLAIN CREATE RELATIONAL CACHE c REFRESH ON DEMAND FULL AS {joined}")
    assert ["FULL: the REFRESH clause asks for that"] == [
        r.value for r in rows if r.item.startswith("refresh")
    ]
    with pytest.raises(CacheManagerError, match=r"cachemgr\.zzz"):
        lab.sql(f"EXPLAIN CREATE RELATIONAL CACHE c TBLPROPERTIES (cachemgr.zzz = 1) AS {joined}")
