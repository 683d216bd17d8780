"""Many sessions of one application: what does not depend on a session is there once, and each
decides by its own settings and principal."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

import cachemgr
from cachemgr.spark import api

pytestmark = pytest.mark.spark

NONE = dict.fromkeys(
    (
        *(
            "hits",
            "misses",
            "errors",
            "local_hits",
            "prepared_hits",
            "fresh_hits",
            "tail_hits",
            "fresh_rows",
        ),
        *("pin_hits", "pin_misses"),
    ),
    0,
)
TOTALS = "SELECT region, SUM(amt) AS total FROM sales GROUP BY region"
CACHE = "r AS SELECT region, day, SUM(amt) AS s FROM sales GROUP BY region, day"
URLS = ("spark.cachemgr.metastore.url", "spark.cachemgr.location", "spark.cachemgr.mode")


def opened(lab, **settings):
    """A further session of the lab, not enabled yet."""
    other = lab.spark.newSession()
    other.sql(f"USE {lab.schema}")
    for key in URLS:
        other.conf.set(key, lab.spark.conf.get(key))
    for key, value in settings.items():
        other.conf.set(key.replace("__", "."), value)
    return other


@contextlib.contextmanager
def further(lab, count=1, **settings):
    """Further sessions of the lab, enabled."""
    sessions = [opened(lab, **settings) for _ in range(count)]
    for each in sessions:
        cachemgr.enable(each)
    try:
        yield sessions
    finally:
        for each in sessions:
            cachemgr.disable(each)


def pins(lab):
    """The application's pins."""
    return api._of(lab.spark).session.application.pins


def pinned(lab, count=1):
    """Hit until the set is pinned."""
    lab.hit(TOTALS)
    until(lambda: pins(lab).stats().pins == count, "pinned")


def until(done, what, seconds=60):
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def persistent(lab):
    """How many things are held in memory, besides what Delta remembers of its logs."""
    held = lab.spark.sparkContext._jsc.getPersistentRDDs().values()
    return sum(not str(rdd.name()).startswith("Delta Table State") for rdd in held)


def test_a_further_session_finds_pins_and_memories_warm(lab):
    lab.cache(CACHE)
    pinned(lab)
    with further(lab) as (other,):
        assert Counter(map(str, other.sql(TOTALS).collect())) == Counter(
            map(str, lab.plain.sql(TOTALS).collect())
        )
        assert cachemgr.counters(other) == NONE | {"hits": 1, "pin_hits": 1, "local_hits": 1}
        assert pins(lab).stats().pins == 1 and persistent(lab) == 1
        assert api._of(other).session.application is api._of(lab.spark).session.application
        assert api._of(other).session.feed is api._of(lab.spark).session.feed


def test_many_sessions_and_threads_at_once_make_one_pin(lab):
    lab.cache(CACHE)
    wanted = Counter(map(str, lab.plain.sql(TOTALS).collect()))
    together = threading.Barrier(12)

    def ask(session):
        together.wait(60)
        if not cachemgr.is_enabled(session):
            cachemgr.enable(session)
        return [Counter(map(str, session.sql(TOTALS).collect())) == wanted for _ in range(3)]

    sessions = [opened(lab) for _ in range(8)] + [lab.spark] * 4
    try:
        with ThreadPoolExecutor(12) as pool:
            assert all(all(each) for each in pool.map(ask, sessions))
        until(lambda: pins(lab).stats().pins == 1, "pinned")
        assert persistent(lab) == 1 and pins(lab).stats().failed == 0
        assert all(cachemgr.counters(each)["hits"] >= 3 for each in sessions)
    finally:
        for each in sessions[:8]:
            cachemgr.disable(each)


def test_disable_leaves_what_others_use_and_the_last_one_out_drops_it(lab):
    lab.cache(CACHE)
    pinned(lab)
    with further(lab):
        pass
    assert pins(lab).stats().pins == 1
    store = pins(lab)
    hits = store.stats().hits
    lab.hit(TOTALS)
    assert store.stats().hits == hits + 1
    cachemgr.disable(lab.spark)
    assert store.stats().pins == 0 and persistent(lab) == 0
    cachemgr.enable(lab.spark)
    lab.hit(TOTALS)


def test_a_pin_says_nothing_about_who_may_read_it(lab):
    lab.cache(CACHE)
    pinned(lab)
    lab.sql("GRANT USE ON RELATIONAL CACHE r TO somebody_else")
    with further(lab) as (other,):
        for session in (lab.spark, other):
            session.sql(TOTALS).collect()
            codes = {r.code.value for r in cachemgr.explain(session, TOTALS).reasons}
            assert "NOT_GRANTED" in codes
        assert cachemgr.counters(other) == NONE | {"misses": 1}
    assert pins(lab).stats().pins == 1


def test_each_session_decides_by_its_own_settings(lab):
    lab.cache(CACHE)
    pinned(lab)
    with further(lab, spark__sql__session__timeZone="Asia/Tokyo") as (other,):
        other.sql(TOTALS).collect()
        assert cachemgr.counters(other) == NONE | {"misses": 1}
    hits = pins(lab).stats().hits
    for setting in ("enabled", "maxBytes"):
        with further(
            lab, **{f"spark__cachemgr__pin__{setting}": "0" if setting == "maxBytes" else "false"}
        ) as (other,):
            other.sql(TOTALS).collect()
            assert cachemgr.counters(other) == NONE | {"hits": 1}
    assert pins(lab).stats().hits == hits


def test_the_largest_bound_of_the_sessions_holds(lab):
    lab.cache(CACHE)
    pinned(lab)
    used = pins(lab).stats().bytes
    with further(lab, spark__cachemgr__pin__maxBytes="1b"):
        assert pins(lab).stats().bytes == used
    cachemgr.disable(lab.spark)
    lab.spark.conf.set("spark.cachemgr.pin.maxBytes", "1b")
    cachemgr.enable(lab.spark)
    lab.hit(TOTALS)
    until(lambda: pins(lab).stats().failed == 1, "refused")
    with further(lab, spark__cachemgr__pin__maxBytes="1m") as (other,):
        lab.cache("q AS SELECT day, SUM(cost) AS s FROM sales GROUP BY day")
        other.sql("SELECT day, SUM(cost) AS s FROM sales GROUP BY day").collect()
        until(lambda: pins(lab).stats().pins == 1, "pinned")
    assert pins(lab).stats().pins == 0


def test_a_new_snapshot_drops_the_pin_for_all(lab):
    lab.cache(CACHE)
    pinned(lab)
    with further(lab) as (other,):
        lab.plain.sql("INSERT INTO sales SELECT * FROM sales LIMIT 3")
        lab.sql("REFRESH RELATIONAL CACHE r")
        assert pins(lab).stats().pins == 0
        wanted = Counter(map(str, lab.plain.sql(TOTALS).collect()))
        for _ in range(3):
            assert Counter(map(str, other.sql(TOTALS).collect())) == wanted
        until(lambda: pins(lab).stats().pins == 1, "pinned")
        assert Counter(map(str, other.sql(TOTALS).collect())) == wanted
        assert persistent(lab) == 1
        lab.sql("DROP RELATIONAL CACHE r")
        assert pins(lab).stats().pins == 0
