# ruff: noqa: E501 - tables of SQL read better unbroken
"""Views keep the time zone and the ANSI setting of their creation: what means the same under the
session's is answered from a cache, and what does not names the setting."""

from __future__ import annotations

import pytest

from cachemgr.errors import CacheManagerError

pytestmark = pytest.mark.spark

CACHE = (
    "g AS SELECT region, cust, day, SUM(amt) AS s, COUNT(amt) AS c, SUM(price) AS sp, COUNT(price) AS cp, AVG(price) AS ap, "
    "AVG(amt) AS aa, SUM(CAST(cust AS BIGINT)) AS sc, SUM(amt + 1) AS s1, SUM(price * price) AS pp, MIN(amt) AS mi FROM sales GROUP BY region, cust, day"
)
LEGACY = {"spark__sql__ansi__enabled": "false"}
TOKYO = {"spark__sql__session__timeZone": "Asia/Tokyo"}
# name: settings of the view, its body, the query over it
SAME = {
    "plain columns": (
        LEGACY | TOKYO,
        "SELECT region, cust, amt, day FROM sales",
        "SELECT region, SUM(amt) AS s FROM v GROUP BY region",
    ),
    "a filter": (
        LEGACY | TOKYO,
        "SELECT region, amt FROM sales WHERE day >= '2024-01-02' AND year(day) = 2024",
        "SELECT region, SUM(amt) AS s FROM v GROUP BY region",
    ),
    "a wider type": (
        LEGACY,
        "SELECT region, CAST(cust AS BIGINT) AS k, amt FROM sales",
        "SELECT k, SUM(amt) AS s FROM v GROUP BY k",
    ),
    "a number as text": (
        LEGACY,
        "SELECT CAST(cust AS STRING) AS k, amt FROM sales",
        "SELECT k, SUM(amt) AS s FROM v GROUP BY k",
    ),
    "a day as text": (
        LEGACY | TOKYO,
        "SELECT CAST(day AS STRING) AS k, amt FROM sales",
        "SELECT k, SUM(amt) AS s FROM v GROUP BY k",
    ),
    "a half": (
        LEGACY,
        "SELECT cust / 2 AS k, amt FROM sales",
        "SELECT k, COUNT(*) AS n FROM v GROUP BY k",
    ),
    "a remainder": (
        LEGACY,
        "SELECT cust % 2 AS k, amt FROM sales",
        "SELECT k, COUNT(*) AS n FROM v GROUP BY k",
    ),
    "decimals multiplied": (
        LEGACY,
        "SELECT region, price * price AS p FROM sales",
        "SELECT region, SUM(p) AS s FROM v GROUP BY region",
    ),
    "sums of decimals": (
        LEGACY,
        "SELECT region, SUM(price) AS s FROM sales GROUP BY region",
        "SELECT * FROM v",
    ),
    "sums of the stored groups": (
        LEGACY,
        "SELECT region, cust, day, SUM(amt) AS s FROM sales GROUP BY region, cust, day",
        "SELECT * FROM v",
    ),
    "sums that are proven small": (
        LEGACY,
        "SELECT region, SUM(amt) AS s FROM sales GROUP BY region",
        "SELECT * FROM v",
    ),
    "averages of whole numbers": (
        LEGACY,
        "SELECT region, AVG(amt) AS s FROM sales GROUP BY region",
        "SELECT * FROM v",
    ),
    "extremes and counts": (
        LEGACY | TOKYO,
        "SELECT region, MIN(amt) AS s, COUNT(*) AS n FROM sales GROUP BY region",
        "SELECT * FROM v",
    ),
}
DIFFER = {
    "a day's start": (
        TOKYO,
        "SELECT CAST(day AS TIMESTAMP) AS k, amt FROM sales",
        "SELECT k, SUM(amt) AS s FROM v GROUP BY k",
        "spark.sql.session.timeZone = Asia/Tokyo",
    ),
    "a month's start": (
        TOKYO,
        "SELECT date_trunc('MONTH', day) AS k, amt FROM sales",
        "SELECT k, SUM(amt) AS s FROM v GROUP BY k",
        "spark.sql.session.timeZone = Asia/Tokyo",
    ),
    "a sum that may overflow": (
        LEGACY,
        "SELECT region, amt + 1 AS a FROM sales",
        "SELECT region, SUM(a) AS s FROM v GROUP BY region",
        "spark.sql.ansi.enabled = false",
    ),
    "a cast that may fail": (
        LEGACY,
        "SELECT CAST(region AS INT) AS k, amt FROM sales",
        "SELECT k, SUM(amt) AS s FROM v GROUP BY k",
        "spark.sql.ansi.enabled = false",
    ),
    "a narrower type": (
        LEGACY,
        "SELECT CAST(amt AS INT) AS k, amt FROM sales",
        "SELECT SUM(k) AS s FROM v GROUP BY k",
        "spark.sql.ansi.enabled = false",
    ),
    "decimals as text": (
        LEGACY,
        "SELECT region, CAST(price AS STRING) AS k FROM sales",
        "SELECT MAX(k) AS k FROM v GROUP BY region",
        "spark.sql.ansi.enabled = false",
    ),
    "a sum that is not stored": (
        LEGACY,
        "SELECT region, SUM(cost) AS s FROM sales GROUP BY region",
        "SELECT * FROM v",
        "spark.sql.ansi.enabled = false",
    ),
}


def test_what_means_the_same_under_both_settings(lab):
    lab.cache(CACHE)
    wrong = {}
    for title, (conf, body, query) in SAME.items():
        with lab.conf(**conf):
            lab.plain.sql(f"CREATE OR REPLACE VIEW v AS {body}")
        try:
            lab.hit(query)
        except AssertionError as error:
            wrong[title] = str(error)
    assert not wrong


def test_what_differs_names_the_setting(lab):
    lab.cache(CACHE)
    wrong = {}
    for title, (conf, body, query, words) in DIFFER.items():
        with lab.conf(**conf):
            lab.plain.sql(f"CREATE OR REPLACE VIEW v AS {body}")
        try:
            if title != "a cast that may fail":  # its rows are numbers in neither session
                lab.miss(query)
            text = "\n".join(
                r.detail for r in _reasons(lab, query) if r.code.value == "SETTINGS_DIFFER"
            )
            assert words in text, _reasons(lab, query)
        except AssertionError as error:
            wrong[title] = str(error)
    assert not wrong


def _reasons(lab, query):
    import cachemgr

    return cachemgr.explain(lab.spark, query).reasons


def test_a_session_without_ansi_does_not_take_over_what_raises(lab):
    lab.plain.sql("CREATE VIEW v AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
    lab.plain.sql("CREATE VIEW w AS SELECT CAST(cust AS BIGINT) AS k, amt FROM sales")
    with lab.conf(**LEGACY):
        lab.cache(CACHE)
        lab.miss("SELECT * FROM v", "SETTINGS_DIFFER")
        lab.hit("SELECT k, COUNT(*) AS n FROM w GROUP BY k")


def test_sums_that_are_not_proven_small_wrap_in_the_view_alone(lab):
    """9223372036854775807 + 1 is -9223372036854775808 without ANSI, and an error with it."""
    lab.plain.sql(
        "INSERT INTO sales (id, region, cust, amt) VALUES (90, 'far', 1, 9223372036854775807), (91, 'far', 2, 1)"
    )
    lab.cache(
        "g AS SELECT region, cust, SUM(amt) AS s, COUNT(*) AS n FROM sales GROUP BY region, cust"
    )
    with lab.conf(**LEGACY):
        lab.plain.sql("CREATE VIEW v AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
    rows = lab.miss("SELECT * FROM v", "SETTINGS_DIFFER")
    assert -(2**63) in {row.s for row in rows}


def test_a_cache_over_the_view_has_its_settings(lab):
    with lab.conf(**TOKYO):
        lab.plain.sql("CREATE VIEW v AS SELECT CAST(day AS TIMESTAMP) AS k, amt FROM sales")
    text = "t AS SELECT k, SUM(amt) AS s, COUNT(*) AS n FROM v GROUP BY k"
    query = "SELECT k, SUM(amt) AS s FROM v GROUP BY k"
    with pytest.raises(CacheManagerError, match="Asia/Tokyo"):
        lab.cache(text)
    with lab.conf(**TOKYO):
        lab.cache(text)
        lab.hit(query)
    lab.miss(query)
    lab.miss("SELECT CAST(day AS TIMESTAMP) AS k, SUM(amt) AS s FROM sales GROUP BY ALL")


def test_times_in_a_text_of_a_struct_array_or_map(lab):
    lab.plain.sql(
        "CREATE TABLE t (id INT, st STRUCT<at: TIMESTAMP>, ar ARRAY<TIMESTAMP>, m MAP<INT, TIMESTAMP>, ds ARRAY<DATE>) USING delta"
    )
    at = "TIMESTAMP_SECONDS(0)"
    lab.plain.sql(
        f"INSERT INTO t SELECT 1, named_struct('at', {at}), array({at}), map(1, {at}), array(DATE'2024-01-01')"
    )
    texts = [f"CAST({name} AS STRING) AS {name}" for name in ("st", "ar", "m", "ds")]
    body = f"SELECT id, {', '.join(texts)} FROM t"
    with lab.conf(**TOKYO):
        lab.plain.sql(f"CREATE VIEW v AS {body}")
    lab.cache(f"c AS {body}")
    lab.hit(body)
    lab.hit("SELECT ds, COUNT(*) AS n FROM v GROUP BY ds")
    for name in ("st", "ar", "m"):
        lab.miss(f"SELECT {name}, COUNT(*) AS n FROM v GROUP BY {name}")
    with lab.conf(**TOKYO):
        lab.miss(body)


def test_the_size_of_null(lab):
    """It is -1 without ANSI and NULL with it: a view keeps which."""
    lab.plain.sql("CREATE TABLE t (id INT, tags ARRAY<STRING>) USING delta")
    lab.plain.sql("INSERT INTO t VALUES (1, array('a', 'b')), (2, NULL), (3, array())")
    body = "SELECT id, size(tags) AS n FROM t"
    lab.plain.sql(f"CREATE VIEW w AS {body}")
    with lab.conf(**LEGACY):
        lab.plain.sql(f"CREATE VIEW v AS {body}")
        lab.cache("raw AS SELECT id, tags FROM t")
        for query in ("SELECT id, n FROM w", "SELECT id, array_size(tags) AS n FROM t"):
            lab.hit(query)  # worked out above what is stored, by Spark
        lab.hit("SELECT id, n FROM v")
        lab.sql("DROP RELATIONAL CACHE raw")
    lab.cache(f"sizes AS {body}")
    lab.hit("SELECT id, n FROM w")
    for query in ("SELECT id, n FROM v", "SELECT id FROM v WHERE n = -1", "SELECT MIN(n) FROM v"):
        lab.miss(query)


def test_a_wrapping_sum_is_no_measure(lab):
    with lab.conf(**LEGACY):
        lab.plain.sql("CREATE VIEW v AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
    with pytest.raises(
        CacheManagerError, match=r"SUM as a view with spark.sql.ansi.enabled=false has it cannot"
    ):
        lab.cache("t AS SELECT * FROM v")
