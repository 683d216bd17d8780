# ruff: noqa: E501 - tables of SQL read better unbroken
"""`GROUP BY window(…)` from caches of the same, of finer windows, and of rows."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from cachemgr.errors import CacheManagerError
from tests.worlds.lab_star import same

pytestmark = pytest.mark.spark

ROWS = """INSERT INTO ev VALUES
 (TIMESTAMP'2024-03-31 00:03:00', TIMESTAMP_NTZ'2024-03-31 00:03:00', 1, 10), (TIMESTAMP'2024-03-31 00:55:00', TIMESTAMP_NTZ'2024-03-31 01:03:00', 1, 20),
 (TIMESTAMP'2024-03-31 01:00:00', TIMESTAMP_NTZ'2024-03-31 02:30:00', 1, 30), (TIMESTAMP'2024-03-31 00:59:59.999999', NULL, 2, 40), (NULL, NULL, 1, 5),
 (TIMESTAMP'1969-12-31 23:59:59.5', TIMESTAMP_NTZ'1900-01-01 01:03:00', 2, 21), (TIMESTAMP'1883-11-18 12:03:58', NULL, 2, 22), (TIMESTAMP'2024-10-27 01:30:00', NULL, 2, 23)"""
FIVE = "f AS SELECT window(ts, '5 minutes') AS w, k, SUM(v) AS s, COUNT(*) AS n FROM ev GROUP BY window(ts, '5 minutes'), k"
SERVED = [
    "SELECT window(ts, '5 minutes') AS w, k, SUM(v) AS s FROM ev GROUP BY window(ts, '5 minutes'), k",
    "SELECT window.start AS a, SUM(v) AS s FROM ev GROUP BY window(ts, '5 minutes')",
    "SELECT window(ts, '1 hour') AS w, k, SUM(v) AS s FROM ev GROUP BY window(ts, '1 hour'), k",
    "SELECT window.start, window.end, COUNT(*) AS n FROM ev GROUP BY window(ts, '1 hour')",
    "SELECT window(ts, '1 hour', '1 hour', '5 minutes') AS w, SUM(v) AS s FROM ev GROUP BY window(ts, '1 hour', '1 hour', '5 minutes')",
    "SELECT window(ts, '1 hour', '1 hour', '-10 minutes') AS w, SUM(v) AS s FROM ev GROUP BY window(ts, '1 hour', '1 hour', '-10 minutes')",
    "SELECT window(ts, '1 day') AS w, SUM(v) AS s FROM ev GROUP BY window(ts, '1 day') ORDER BY w.start",
]
LEFT_ALONE = [
    "SELECT window(ts, '7 minutes') AS w, SUM(v) AS s FROM ev GROUP BY window(ts, '7 minutes')",
    "SELECT window(ts, '1 hour', '1 hour', '2 minutes') AS w, SUM(v) AS s FROM ev GROUP BY window(ts, '1 hour', '1 hour', '2 minutes')",
    "SELECT window(ts, '1 minute') AS w, SUM(v) AS s FROM ev GROUP BY window(ts, '1 minute')",
    "SELECT window(ts, '1 hour', '30 minutes') AS w, SUM(v) AS s FROM ev GROUP BY window(ts, '1 hour', '30 minutes')",
    "SELECT session_window(ts, '1 hour') AS w, SUM(v) AS s FROM ev GROUP BY session_window(ts, '1 hour')",
    "SELECT window(tn, '1 hour') AS w, SUM(v) AS s FROM ev GROUP BY window(tn, '1 hour')",
    "SELECT window(ts, '1 hour') AS w, SUM(v) AS s FROM ev WHERE ts >= '2024-03-31 00:04:00' GROUP BY window(ts, '1 hour')",
    "SELECT date_trunc('HOUR', ts) AS w, SUM(v) AS s FROM ev WHERE ts IS NOT NULL GROUP BY ALL",
    "SELECT SUM(v) AS s FROM ev",
]


@pytest.fixture
def events(lab):
    lab.plain.sql("CREATE TABLE ev (ts TIMESTAMP, tn TIMESTAMP_NTZ, k INT, v BIGINT) USING delta")
    lab.plain.sql(ROWS)
    return lab


def test_windows_from_windows(events):
    with events.conf(spark__sql__session__timeZone="Europe/Berlin"):
        events.cache(FIVE)
        for query in SERVED:
            events.hit(query)
        for query in LEFT_ALONE:
            events.miss(query)
        assert "sliding window" in str(_reasons(events, LEFT_ALONE[3]))
        events.plain.sql("INSERT INTO ev VALUES (TIMESTAMP'2024-03-31 00:04:00', NULL, 1, 7)")
        events.sql("REFRESH RELATIONAL CACHE f")
        events.hit(SERVED[0])
        events.hit(SERVED[2])


def _reasons(lab, query):
    import cachemgr

    return cachemgr.explain(lab.spark, query).reasons


def test_windows_from_rows(events):
    """Spark computes any window above the rows of a cache."""
    events.cache("r AS SELECT ts, tn, k, v FROM ev")
    for query in [*SERVED[2:5], *LEFT_ALONE[:6]]:
        events.hit(query)


def test_a_dataframe(events):
    events.cache(FIVE)
    frames = [
        s.table("ev").groupBy(F.window("ts", "30 minutes")).agg(F.sum("v").alias("s"))
        for s in (events.spark, events.plain)
    ]
    before = events.hits()
    same(frames[0], frames[0].collect(), frames[1], False)
    assert events.hits() > before


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("window(ts, '1 hour', '30 minutes')", "sliding window"),
        ("session_window(ts, '1 hour')", "cannot be stored"),
        ("window(tn, '1 hour')", "cannot be stored"),
    ],
)
def test_what_no_cache_groups_by(events, key, words):
    with pytest.raises(CacheManagerError, match=words):
        events.cache(f"x AS SELECT {key} AS w, SUM(v) AS s FROM ev GROUP BY {key}")
