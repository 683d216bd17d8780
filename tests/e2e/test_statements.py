# ruff: noqa: E501 - tables of SQL read better unbroken
"""Every statement of the DDL, through spark.sql, against real Spark, Delta and a real metastore."""

from __future__ import annotations

import json

import pytest

import cachemgr
from cachemgr.errors import AlreadyExistsError, NotFoundError, RefreshError
from tests.worlds.lab_star import JOIN, make_lab

pytestmark = pytest.mark.spark

BY_REGION = "by_region AS SELECT region, SUM(amt) AS s, COUNT(*) AS n FROM sales GROUP BY region"
CUBE = (
    "cube COMMENT 'all' REFRESH EVERY 1 HOUR AUTO MAX STALENESS INTERVAL 2 HOURS AS "
    "SELECT region, day, city, GROUPING_ID(), SUM(amt) AS s, COUNT(*) AS n FROM sales, cust "
    "WHERE cust = cid GROUP BY region, day, city "
    "GROUPING SETS ((region, day), (city), (day, region))"
)


def items(rows):
    found = {}
    for row in rows:
        found.setdefault(row[0], []).append(row[1])
    return found


def test_create_refresh_show_describe_drop(lab):
    assert [tuple(r) for r in lab.sql(f"CREATE RELATIONAL CACHE {BY_REGION}")] == [
        (f"{lab.schema}.by_region", "created")
    ]
    shown = lab.sql("SHOW RELATIONAL CACHES")
    assert [(r.name, r.status, r.rows) for r in shown] == [("by_region", "NOT_REFRESHED", None)]
    refreshed = lab.sql("REFRESH RELATIONAL CACHE by_region")[0]
    assert (refreshed.result, refreshed.rows) == ("PUBLISHED", 4)
    assert lab.sql("REFRESH RELATIONAL CACHE by_region")[0].result == "UNCHANGED"
    shown = lab.sql("SHOW RELATIONAL CACHES LIKE 'BY*|zzz'")
    assert [(r.name, r.status, r.rows, r.rewrite) for r in shown] == [
        ("by_region", "HEALTHY", 4, "ENABLED")
    ]
    assert lab.sql("SHOW RELATIONAL CACHES LIKE 'nothing'") == []
    assert lab.sql("DROP RELATIONAL CACHE by_region")[0].result == "dropped"
    assert lab.sql("SHOW RELATIONAL CACHES") == []
    assert "did not exist" in lab.sql("DROP RELATIONAL CACHE IF EXISTS by_region")[0].result
    with pytest.raises(NotFoundError, match="no relational cache by_region"):
        lab.sql("DROP RELATIONAL CACHE by_region")


def test_answers_are_dataframes_of_rows(lab):
    frame = lab.spark.sql("SHOW RELATIONAL CACHES")
    assert frame.columns[:3] == ["namespace", "name", "status"]
    assert frame.where("name = 'x'").count() == 0
    lab.cache(BY_REGION, refresh=False)
    assert lab.spark.sql("show relational caches").select("name").first()[0] == "by_region"


def test_create_of_an_existing_name(lab):
    lab.cache(BY_REGION)
    with pytest.raises(AlreadyExistsError, match="OR REPLACE or IF NOT EXISTS"):
        lab.sql(f"CREATE RELATIONAL CACHE {BY_REGION}")
    kept = lab.sql(f"CREATE RELATIONAL CACHE IF NOT EXISTS {BY_REGION}")[0]
    assert kept.result == "exists already, nothing was changed"
    spelled = BY_REGION.replace("SELECT region", "select /* of sales */\n  REGION", 1)
    kept = lab.sql(f"CREATE RELATIONAL CACHE IF NOT EXISTS {spelled}")[0]
    assert kept.result == "exists already, nothing was changed"
    for other, said in (
        (f"{BY_REGION} HAVING SUM(amt) > 1", "its SELECT differs from"),
        (BY_REGION.replace(" AS ", " REFRESH ON COMMIT AS ", 1), "its refresh differs from"),
        (
            f"{BY_REGION.replace(' AS ', ' DISABLE REWRITE AS ', 1)} HAVING region = 'NORTH'",
            "its rewrite_enabled, SELECT differ from",
        ),
    ):
        kept = lab.sql(f"CREATE RELATIONAL CACHE IF NOT EXISTS {other}")[0]
        assert f"nothing was changed; {said} the statement's" in kept.result
    lab.hit("SELECT region, SUM(amt) FROM sales GROUP BY region")
    other = BY_REGION.replace("SUM(amt) AS s", "MAX(amt) AS m")
    assert lab.sql(f"CREATE OR REPLACE RELATIONAL CACHE {other}")[0].result == "replaced"
    lab.miss("SELECT region, SUM(amt) FROM sales GROUP BY region")
    lab.sql("REFRESH RELATIONAL CACHE BY_REGION")
    lab.hit("SELECT region, MAX(amt) FROM sales GROUP BY region")


def test_show_create_makes_the_same_cache_again(lab):
    lab.sql(JOIN)
    lab.cache(CUBE)
    text = lab.sql("SHOW CREATE RELATIONAL CACHE cube")[0].createtab_stmt
    assert "EVERY 1 HOUR" in text and "MAX STALENESS INTERVAL 2 HOURS" in text and "'all'" in text
    lab.sql("DROP RELATIONAL CACHE cube")
    lab.sql(text)
    assert lab.sql("SHOW CREATE RELATIONAL CACHE cube")[0].createtab_stmt == text


def test_describe_says_how_to_read_it_right(lab):
    lab.sql(JOIN)
    lab.cache(CUBE)
    plain = lab.sql("DESCRIBE RELATIONAL CACHE cube")
    assert [r.col_name for r in plain[:5]] == ["region", "day", "city", "s", "n"]
    found = items(plain)
    assert found["status"] == ["HEALTHY"] and found["availability"] == ["AVAILABLE"]
    read = lab.plain.sql(found["read it with"][0])
    assert read.columns == ["__grouping_id", "region", "day", "city", "s", "n"]
    sets = read.select("__grouping_id").distinct().count()
    assert sets == 2, "the set that was written twice is stored once"
    extended = items(lab.sql("DESCRIBE RELATIONAL CACHE EXTENDED cube"))
    assert extended["hidden column"] and extended["lag"] == ["0 s"]
    assert extended["record-preserving join"] == ["sc"]
    assert any(key.startswith("grouping set ") for key in extended)
    assert "spark.sql.session.timeZone" in "".join(extended)
    lab.plain.sql("INSERT INTO sales SELECT * FROM sales LIMIT 1")
    # it answers from its snapshot for two hours
    assert items(lab.sql("DESCRIBE RELATIONAL CACHE cube"))["status"] == ["STALE"]


def test_a_cache_that_cannot_be_refreshed_never_looks_healthy(lab):
    lab.cache(BY_REGION)
    lab.plain.sql("DROP TABLE sales")
    with pytest.raises(RefreshError):
        lab.sql("REFRESH RELATIONAL CACHE by_region")
    assert lab.sql("SHOW RELATIONAL CACHES")[0].status == "BROKEN"
    described = items(lab.sql("DESCRIBE RELATIONAL CACHE EXTENDED by_region"))
    assert (
        described["refresh status"] == ["FAILED"] and "sales" in described["last refresh error"][0]
    )
    assert f"base table {lab.schema}.sales is gone" in described["broken"][0]
    assert "before base table" in described["answers"][0]


def test_alter_every_action(lab):
    lab.cache(BY_REGION)
    query = "SELECT region, SUM(amt) FROM sales GROUP BY region"
    alter = "ALTER RELATIONAL CACHE by_region "
    lab.sql(alter + "DISABLE REWRITE")
    lab.miss(query, "CACHE_DISABLED")
    lab.sql(alter + "ENABLE REWRITE")
    lab.hit(query)
    lab.sql(alter + "PAUSE")
    assert "paused" in items(lab.sql("DESCRIBE RELATIONAL CACHE by_region"))["refresh"][0]
    (shown,) = lab.sql("SHOW RELATIONAL CACHES")
    assert shown.refresh == "REFRESH ON DEMAND AUTO (paused)"
    lab.sql(alter + "RESUME")
    lab.sql(alter + "SET REFRESH CRON '0 6 * * *' AT TIME ZONE 'Europe/Zurich' FULL")
    lab.sql(alter + "SET MAX STALENESS INTERVAL 3 DAYS")
    lab.sql(alter + "SET TBLPROPERTIES ('a' = '1')")
    text = lab.sql("SHOW CREATE RELATIONAL CACHE by_region")[0].createtab_stmt
    assert "CRON '0 6 * * *' AT TIME ZONE 'Europe/Zurich' FULL" in text
    assert "MAX STALENESS INTERVAL 3 DAYS" in text and "TBLPROPERTIES" in text
    lab.sql(alter + "SET STRICT")
    lab.sql(alter + "RENAME TO regions")
    assert [r.name for r in lab.sql("SHOW RELATIONAL CACHES")] == ["regions"]
    lab.hit(query)
    assert cachemgr.explain(lab.spark, query).caches == (f"{lab.schema}.regions",)
    with pytest.raises(NotFoundError):
        lab.sql(alter + "PAUSE")


def test_grant_and_revoke_narrow_who_may_use_it(lab):
    lab.cache(BY_REGION)
    query = "SELECT region, SUM(amt) FROM sales GROUP BY region"
    (first,) = lab.sql("GRANT USE ON RELATIONAL CACHE by_region TO somebody")
    assert first.result == "granted to somebody, and from now on to nobody else"
    lab.miss(query, "NOT_GRANTED")
    (told,) = items(lab.sql("DESCRIBE RELATIONAL CACHE by_region"))["answers"]
    assert told.startswith("not you: it is granted to others") and told.endswith(
        "those who may use it: yes: it holds what its base tables hold"
    )
    (second,) = lab.sql(f"GRANT USE ON RELATIONAL CACHE by_region TO `{lab.me}`")
    assert second.result == f"granted to {lab.me}"
    lab.hit(query)
    (told,) = items(lab.sql("DESCRIBE RELATIONAL CACHE by_region"))["answers"]
    assert told == "yes: it holds what its base tables hold"
    (mine,) = lab.sql(f"REVOKE USE ON RELATIONAL CACHE by_region FROM `{lab.me}`")
    assert mine.result == f"revoked from {lab.me}"
    lab.miss(query, "NOT_GRANTED")
    (last,) = lab.sql("REVOKE USE ON RELATIONAL CACHE by_region FROM somebody")
    assert last.result.startswith("revoked from somebody; nobody may use the cache now")
    lab.miss(query, "NOT_GRANTED")


def test_explain_rewrite_in_words_and_as_json(lab):
    lab.sql(JOIN)
    lab.cache(CUBE)
    found = items(lab.sql("EXPLAIN REWRITE SELECT region, SUM(amt) FROM sales GROUP BY region"))
    assert found["result"] == ["hit"] and found["cache"] == [f"{lab.schema}.cube"]
    assert found["grouping set"] == ["(region, day)"]
    assert found["record-preserving join"] == ["sc"]
    assert "SELECT" in found["rewritten SQL"][0] and found["compensation"]
    told = lab.sql("EXPLAIN REWRITE FORMAT JSON SELECT region, MAX(amt) FROM sales GROUP BY region")
    data = json.loads(told[0][0])
    assert data["hit"] is False and data["rewrittenSql"] is None
    codes = {r["code"] for c in data["candidates"] for r in c["reasons"]}
    assert "AGG_NOT_DERIVABLE" in codes
    assert {c["outcome"] for c in data["candidates"]} == {"refused"}
    nothing = items(lab.sql("EXPLAIN REWRITE SELECT 1"))
    assert nothing["result"] == ["miss"] and "no table is left to read" in nothing["note"][0]


SUMS = "SELECT region, SUM(amt) FROM sales GROUP BY region"


def test_explain_rewrite_says_what_the_settings_do(lab):
    lab.cache(BY_REGION)
    assert "note" not in items(lab.sql(f"EXPLAIN REWRITE {SUMS}"))
    for setting, value, result, told in (
        ("enabled", "false", "miss", "SETTINGS_DIFFER: spark.cachemgr.enabled is false"),
        ("mode", "off", "miss", "SETTINGS_DIFFER: spark.cachemgr.mode is off"),
        ("mode", "planOnly", "hit", "spark.cachemgr.mode is planOnly"),
        ("freshHit", "true", "hit", "did you mean spark.cachemgr.freshHits?"),
    ):
        lab.spark.conf.set(f"spark.cachemgr.{setting}", value)
        try:
            found = items(lab.sql(f"EXPLAIN REWRITE {SUMS}"))
        finally:
            lab.spark.conf.unset(f"spark.cachemgr.{setting}")
        assert found["result"] == [result]
        assert told in str(found["reason" if result == "miss" else "note"])


def test_explain_rewrite_says_that_an_answer_is_of_an_earlier_moment(lab):
    lab.cache(f"{BY_REGION.replace(' AS', ' MAX STALENESS INTERVAL 1 HOUR AS', 1)}")
    assert "behind its tables" not in items(lab.sql(f"EXPLAIN REWRITE {SUMS}"))
    read = lab.sql("DESCRIBE HISTORY sales LIMIT 1")[0].version
    lab.plain.sql("INSERT INTO sales (id, region, amt) VALUES (50, 'north', 3)")
    (told,) = items(lab.sql(f"EXPLAIN REWRITE {SUMS}"))["behind its tables"]
    assert f"sales at version {read})" in told and "MAX STALENESS of 3600 s" in told
    (data,) = json.loads(lab.sql(f"EXPLAIN REWRITE FORMAT JSON {SUMS}")[0][0])["behind"]
    assert data["maxStalenessSeconds"] == 3600 and data["detail"] == told


def test_explain_refresh_shows_the_stages_and_does_nothing(lab):
    lab.cache(BY_REGION, refresh=False)
    stages = lab.sql("EXPLAIN REFRESH by_region")
    assert stages[0].stage == "FULL" and "PinVersions" in [r.stage for r in stages]
    assert lab.sql("SHOW RELATIONAL CACHES")[0].status == "NOT_REFRESHED"
    lab.sql("REFRESH RELATIONAL CACHE by_region FULL")
    assert lab.sql("EXPLAIN REFRESH by_region")[0].stage == "UNCHANGED"


def test_refresh_modes(lab):
    lab.cache(BY_REGION, refresh=False)
    first = lab.sql("REFRESH RELATIONAL CACHE by_region INCREMENTAL ONLY")[0]
    assert first.mode == "FULL" and first.reason.startswith("NEVER_REFRESHED")
    lab.plain.sql("INSERT INTO sales (id, region, amt) VALUES (50, 'north', 3)")
    assert lab.sql("EXPLAIN REFRESH by_region INCREMENTAL")[0].stage == "REPLACE"
    added = lab.sql("REFRESH RELATIONAL CACHE by_region INCREMENTAL ONLY")[0]
    assert added.mode == "REPLACE" and "appended 1 row" in added.reason
    lab.plain.sql("DELETE FROM sales WHERE id = 50")
    assert lab.sql("REFRESH RELATIONAL CACHE by_region INCREMENTAL ONLY")[0].mode == "REPLACE"
    lab.cache("most AS SELECT region, MAX(amt) AS m FROM sales GROUP BY region")
    lab.plain.sql("DELETE FROM sales WHERE id = 1")
    with pytest.raises(RefreshError, match="cannot be refreshed incrementally: ROWS_REMOVED"):
        lab.sql("REFRESH RELATIONAL CACHE most INCREMENTAL ONLY")
    fell = lab.sql("REFRESH RELATIONAL CACHE most INCREMENTAL")[0]
    assert fell.mode == "FULL" and "running FULL, because ROWS_REMOVED" in fell.reason


def test_explain_create_says_how_it_would_be_stored_and_stores_nothing(lab):
    found = items(lab.sql(f"EXPLAIN CREATE RELATIONAL CACHE {CUBE}"))
    assert found["key"] == ["region string", "day date", "city string"]
    assert found["hidden column"] == ["__count_0 bigint"]
    assert len([k for k in found if k.startswith("stored set")]) == 2
    assert found["stored as"][0].startswith("SELECT")
    assert lab.sql("SHOW RELATIONAL CACHES") == []


def test_would_answer_judges_an_unbuilt_cache(lab):
    told = cachemgr.would_answer(
        lab.spark,
        f"CREATE RELATIONAL CACHE {BY_REGION}",
        ["SELECT region, SUM(amt) FROM sales GROUP BY region", "SELECT MAX(day) FROM sales"],
    )
    assert [e.hit for e in told] == [True, False]
    assert told[1].reasons
    assert lab.sql("SHOW RELATIONAL CACHES") == []


def test_record_preserving_joins_create_show_validate_drop(lab):
    lab.sql(JOIN)
    row = lab.sql("SHOW RECORD PRESERVING JOINS")[0]
    assert (row.name, row.keys, row.state) == ("sc", "cust = cid", "VALID")
    with pytest.raises(AlreadyExistsError):
        lab.sql(JOIN)
    again = JOIN.replace("JOIN sc", "JOIN IF NOT EXISTS sc", 1)
    assert "exists already" in lab.sql(again)[0].result
    lab.plain.sql("INSERT INTO cust VALUES (1, 'Twin', 'Italy')")
    told = lab.sql("VALIDATE RECORD PRESERVING JOIN sc")[0]
    assert told.state == "BROKEN" and "multiplied" in told.message and "cid = 1" in told.message
    assert lab.sql("SHOW RECORD PRESERVING JOINS")[0].state == "BROKEN"
    lab.plain.sql("DELETE FROM cust WHERE city = 'Twin'")
    assert lab.sql("VALIDATE RECORD PRESERVING JOIN sc")[0].state == "VALID"
    lab.sql("DROP RECORD PRESERVING JOIN sc")
    assert lab.sql("SHOW RECORD PRESERVING JOINS") == []
    lab.sql("DROP RECORD PRESERVING JOIN IF EXISTS sc")
    with pytest.raises(NotFoundError):
        lab.sql("VALIDATE RECORD PRESERVING JOIN sc")


@pytest.mark.parametrize(
    "text",
    [
        "CREATE RECORD PRESERVING JOIN s2 AS cust c INNER JOIN sales s ON c.cid = s.cust PRESERVES s",
        "CREATE RECORD PRESERVING JOIN s2 AS sales INNER JOIN cust ON cid = cust PRESERVES sales",
        "CREATE RECORD PRESERVING JOIN s2 AS sales INNER JOIN cust ON SALES.CUST = CUST.CID PRESERVES sales",
    ],
)
def test_a_join_is_the_same_however_it_is_written(lab, text):
    lab.sql(text)
    row = lab.sql("SHOW RECORD PRESERVING JOINS")[0]
    assert row.keys == "cust = cid" and row.preserved.endswith("sales")


@pytest.mark.postgres
def test_the_same_on_postgresql(spark, tmp_path, postgres_url):
    for lab in make_lab(spark, tmp_path, postgres_url):
        lab.sql(JOIN)
        lab.cache(CUBE)
        lab.hit("SELECT city, SUM(amt) FROM sales, cust WHERE cust = cid GROUP BY city")
        lab.sql("ALTER RELATIONAL CACHE cube DISABLE REWRITE")
        lab.miss("SELECT city, SUM(amt) FROM sales, cust WHERE cust = cid GROUP BY city")
        assert lab.sql("SHOW RELATIONAL CACHES")[0].rewrite == "DISABLED"
