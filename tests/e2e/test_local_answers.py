"""Hits whose rows are computed while the query is planned: they are Spark's, and no job runs."""

from __future__ import annotations

import datetime
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

import cachemgr
from cachemgr.jvm.classes import class_on_path
from cachemgr.spark import hook
from tests import spark_start
from tests.e2e.test_many_sessions import further, pins, until
from tests.javac import compiled, write_jar
from tests.worlds.lab_star import exact, make_lab

pytestmark = pytest.mark.spark

CUBE = (
    "c AS SELECT region, day, city, price, SUM(amt) AS s, COUNT(*) AS n, COUNT(amt) AS na, "
    "MIN(cost) AS least, MAX(price) AS most, SUM(price) AS p "
    "FROM sales JOIN cust ON cust = cid "
    "GROUP BY GROUPING SETS ((region, day, city, price), (region, day), (region), ())"
)
ON = {"spark__cachemgr__local__enabled": "true"}
FROM = "FROM sales JOIN cust ON cust = cid"
BY_REGION = f"SELECT region, SUM(amt) AS t {FROM} GROUP BY region"
LOCAL = [
    f"{BY_REGION} ORDER BY region",
    f"SELECT region, day, SUM(amt), COUNT(*) {FROM} GROUP BY 1, 2 ORDER BY 1 DESC NULLS FIRST, 2",
    f"SELECT SUM(amt), COUNT(*), MIN(cost), MAX(price) {FROM}",
    f"SELECT SUM(amt) + 1, -COUNT(*), ABS(SUM(amt)) {FROM} WHERE region = 'nowhere'",
    f"SELECT city, COUNT(amt) {FROM} WHERE region IN ('north', 'west') GROUP BY city",
    f"SELECT year(day) AS y, SUM(price) AS p {FROM} GROUP BY year(day) ORDER BY y NULLS LAST",
    f"SELECT region, AVG(amt) {FROM} GROUP BY region HAVING AVG(amt) > 5",
    f"SELECT region, SUM(price) / COUNT(*) AS q {FROM} GROUP BY region ORDER BY q DESC LIMIT 2",
    f"SELECT upper(region) AS r, SUM(amt) AS t {FROM} WHERE day >= DATE'2024-01-02' GROUP BY 1",
    f"SELECT price, COUNT(*) {FROM} WHERE price > 1.50 OR price IS NULL GROUP BY price",
    f"SELECT CASE WHEN region IS NULL THEN '?' ELSE concat(region, '!') END AS r, SUM(amt) {FROM} "
    "GROUP BY 1",
    f"SELECT region, SUM(amt) FILTER (WHERE city = 'Rome') {FROM} GROUP BY region",
    f"SELECT city, t FROM (SELECT city, SUM(amt) AS t {FROM} GROUP BY city) WHERE t > 20 "
    "ORDER BY t",
    f"SELECT COUNT(*) FROM (SELECT region {FROM} GROUP BY region)",
]
SCANNED = {
    f"{BY_REGION} ORDER BY AVG(amt)": "ORDER BY DOUBLE",
    f"SELECT region, repeat(region, 3), SUM(amt) {FROM} GROUP BY region": "StringRepeat",
    f"SELECT a.region, b.n FROM ({BY_REGION}) a JOIN "
    f"(SELECT region, COUNT(*) AS n {FROM} GROUP BY region) b ON a.region = b.region": (
        "it reads more than one set"
    ),
}


def local(lab) -> int:
    """How many queries were answered so, in this application."""
    return hook.counters(lab.spark)["local"]


def computed(lab, query: str, session=None) -> list:
    """The rows of a query, which were computed while it was planned."""
    before = local(lab)
    rows = (session or lab.spark).sql(query).collect()
    assert local(lab) == before + 1, cachemgr.explain(lab.spark, query).text()
    return rows


def told(lab, query: str) -> str | None:
    """What EXPLAIN REWRITE says of how the rows are computed."""
    return cachemgr.explain(lab.spark, query).computed


def counted(rows: list) -> Counter:
    """How often each row is there."""
    return Counter(map(exact, rows))


def jobs(lab, query: str) -> int:
    """How many jobs a query runs when its rows are collected."""
    context = lab.spark.sparkContext
    context.setJobGroup("counted", query)
    try:
        lab.spark.sql(query).collect()
        return len(context.statusTracker().getJobIdsForGroup("counted"))
    finally:
        context._jsc.sc().clearJobGroup()


@pytest.fixture
def lab(spark, tmp_path) -> Iterator:
    """One of its own, with nothing in it."""
    yield from make_lab(spark, tmp_path, f"sqlite:///{tmp_path}/metastore.db", **ON)


@pytest.fixture(scope="module")
def warm(spark, tmp_path_factory) -> Iterator:
    """A lab whose sets are all held."""
    folder = tmp_path_factory.mktemp("local")
    for lab in make_lab(spark, folder, f"sqlite:///{folder}/metastore.db", **ON):
        lab.cache(CUBE)
        store, held = pins(lab), pins(lab).stats().pins
        for keys in ("region, day, city, price", "region, day", "region", ""):
            held += 1
            group = f"GROUP BY {keys}" if keys else ""
            lab.hit(f"SELECT SUM(amt), COUNT(*) {FROM} {group}")
            until(lambda held=held, store=store: store.stats().pins >= held, "pinned")
        yield lab


@pytest.mark.parametrize("query", LOCAL)
def test_the_rows_are_spark_s(warm, query: str) -> None:
    before = local(warm)
    warm.hit(query)
    assert local(warm) == before + 1
    assert told(warm, query) == "while it is planned, without a Spark job"


@pytest.mark.parametrize("query", SCANNED)
def test_what_else_stands_in_a_query_leaves_it_to_spark(warm, query: str) -> None:
    before = local(warm)
    warm.hit(query)
    assert local(warm) == before
    assert told(warm, query) == f"by a Spark job: {SCANNED[query]}"


def test_no_job_runs(warm) -> None:
    assert jobs(warm, BY_REGION) == 0
    with warm.conf(spark__cachemgr__local__enabled="false"):
        assert jobs(warm, BY_REGION) > 0


def test_every_gesture(warm, capsys) -> None:
    before = local(warm)
    frame = warm.spark.sql(BY_REGION)
    frame.show()
    assert "north" in capsys.readouterr().out
    assert frame.count() == 4
    assert frame.first() is not None and len(frame.head(2)) == 2
    assert len(frame.toPandas()) == 4 and frame.toArrow().num_rows == 4
    assert len(list(frame.toLocalIterator())) == 4 and not frame.isEmpty()
    # the plan of the frame itself is made once for all who read the whole of it
    assert local(warm) - before == 6
    assert counted(frame.collect()) == counted(warm.plain.sql(BY_REGION).collect())


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("maxRows", "more than 1 rows to look at"),
        ("maxGroups", "more than 1 rows"),
        ("maxResultBytes", "more than 1 bytes"),
    ],
)
def test_each_bound(warm, setting: str, why: str) -> None:
    before = local(warm)
    query = f"SELECT region, SUM(amt) AS {setting} {FROM} GROUP BY region"
    with warm.conf(**{f"spark__cachemgr__local__{setting}": "1"}):
        assert told(warm, query) == f"by a Spark job: {why}"
        warm.hit(query)
    assert local(warm) == before


def test_what_raises_is_raised_by_spark_and_not_tried_again_at_once(warm) -> None:
    text = (
        f"SELECT CAST(region AS INT) AS i, SUM(amt) AS t {FROM} WHERE region > '{{}}' "
        "GROUP BY region"
    )
    raising, empty = text.format("a"), text.format("zzz")
    before = local(warm)
    assert computed(warm, empty) == []
    frame = warm.spark.sql(raising)
    frame.explain()  # which does not fail, as it does not without us
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        frame.collect()
    assert told(warm, raising) == "by a Spark job: it raises SparkNumberFormatException"
    assert local(warm) == before + 1
    # of the same shape, which is not tried for a minute
    warm.hit(empty)
    assert local(warm) == before + 1
    # under other settings it is another one
    with warm.conf(spark__sql__shuffle__partitions="3"):
        assert computed(warm, empty) == []


def test_a_write_and_what_is_kept_read_the_set(warm, tmp_path) -> None:
    before = local(warm)
    warm.spark.sql(BY_REGION).write.parquet(str(tmp_path / "written"))
    kept = warm.spark.sql(BY_REGION).persist()
    try:
        assert kept.count() == 4
    finally:
        kept.unpersist()
    assert local(warm) == before
    assert counted(warm.spark.read.parquet(str(tmp_path / "written")).collect()) == counted(
        warm.plain.sql(BY_REGION).collect()
    )


def test_plan_only_computes_nothing(warm) -> None:
    before = local(warm)
    with warm.conf(spark__cachemgr__mode="planOnly"):
        warm.spark.sql(BY_REGION).collect()
        assert cachemgr.explain(warm.spark, BY_REGION).computed is None
    assert cachemgr.explain(warm.spark, BY_REGION).computed is not None
    assert local(warm) == before


def test_many_threads_with_constants_of_their_own(warm) -> None:
    """One shape: nothing that an evaluation keeps may be another's."""
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(n) for n in range(40)]
    text = (
        f"SELECT region, SUM(amt) AS t, MAX(price), COUNT(*) {FROM} "
        "WHERE day > DATE'{}' OR day IS NULL GROUP BY region ORDER BY region"
    )
    wanted = {day: warm.plain.sql(text.format(day)).collect() for day in days}
    before = local(warm)
    permits = {"spark__cachemgr__local__maxConcurrent": "16"}
    with further(warm, 4, **ON, **permits) as sessions, ThreadPoolExecutor(16) as pool:
        asked = [
            (day, pool.submit(sessions[n % 4].sql(text.format(day)).collect))
            for n, day in enumerate(days * 3)
        ]
        for day, rows in asked:
            assert list(map(exact, rows.result())) == list(map(exact, wanted[day]))
    assert local(warm) - before == len(asked)


def test_so_many_at_once(warm) -> None:
    """One that finds no permit does not wait for it: Spark runs it."""
    wanted = counted(warm.plain.sql(BY_REGION).collect())

    def refused() -> int:
        return hook.counters(warm.spark)["local_busy"]

    before, end = refused(), time.monotonic() + 60
    with (
        warm.conf(spark__cachemgr__local__maxConcurrent="1"),
        ThreadPoolExecutor(16) as pool,
    ):
        while refused() == before:
            assert time.monotonic() < end, "each one was computed"
            asked = [pool.submit(warm.spark.sql(BY_REGION).collect) for _ in range(64)]
            assert all(counted(each.result()) == wanted for each in asked)


def test_without_the_drivers_copy_the_pin_answers(lab) -> None:
    store, pinned = pins(lab), pins(lab).stats().pins
    lab.cache(CUBE)
    with lab.conf(spark__cachemgr__local__enabled="false"):
        lab.hit(BY_REGION)
        until(lambda: store.stats().pins == pinned + 1, "pinned")
        assert told(lab, BY_REGION) == "by a Spark job: spark.cachemgr.local.enabled is false"
    (key, pin) = list(store._pins.items())[-1]
    assert pin.held_bytes > 0
    computed(lab, BY_REGION)
    store._pins[key] = replace(pin, held_bytes=0)
    before = local(lab)
    with lab.conf(spark__cachemgr__prepared__enabled="false"):  # the copy itself is still there
        lab.hit(BY_REGION)
    assert local(lab) == before
    assert "the driver holds no copy of the set" in (told(lab, BY_REGION) or "")
    # where there is room for more, copies are made of those that have none
    store.resize(store._max_bytes, store._max_held_bytes + 1)
    until(lambda: store._pins[key].held_bytes > 0, "held again")
    computed(lab, BY_REGION)
    assert store.stats().held_bytes >= pin.held_bytes


def test_a_pin_whose_rows_were_taken_away_lets_go_of_its_copy(lab) -> None:
    store, pinned = pins(lab), pins(lab).stats().pins
    lab.cache(CUBE)
    lab.hit(BY_REGION)
    until(lambda: store.stats().pins == pinned + 1, "pinned")
    plan = list(store._pins.values())[-1].plan
    held = store.stats().held_bytes
    plan.cacheBuilder().cachedColumnBuffers().unpersist(True)
    lab.hit(BY_REGION)
    until(lambda: store.stats().held_bytes >= held, "pinned anew")
    computed(lab, BY_REGION)


def test_what_is_not_pinned_says_why(lab) -> None:
    lab.cache("c AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
    lab.cache("f AS SELECT city, MAX(weight) AS w FROM sales JOIN cust ON cust = cid GROUP BY city")
    query, floats = (
        "SELECT region, SUM(amt) FROM sales GROUP BY region",
        ("SELECT city, MAX(weight) FROM sales JOIN cust ON cust = cid GROUP BY city"),
    )
    assert told(lab, query) == (
        "by a Spark job: the set is not in memory yet, where some queries more bring it"
    )
    assert "FLOAT or DOUBLE" in str(told(lab, floats))
    with lab.conf(spark__cachemgr__pin__maxRowsPerSet="1"):
        assert "pin.maxRowsPerSet is 1" in str(told(lab, query))
    with lab.conf(spark__cachemgr__pin__enabled="false"):
        assert "pin.enabled is false" in str(told(lab, query))
    assert told(lab, "SELECT id FROM sales") is None
    until(lambda: is_local(lab, query), "pinned")
    assert told(lab, query) == "while it is planned, without a Spark job"
    lab.plain.sql("INSERT INTO sales SELECT * FROM sales LIMIT 1")
    assert told(lab, query) == (
        "by a Spark job: rows that were appended since the refresh are read beside the set"
    )


def is_local(lab, query: str) -> bool:
    """Whether a hit's rows are computed while it is planned."""
    before = local(lab)
    lab.hit(query)
    return local(lab) > before


def test_averages_of_short_decimals_are_spark_s(lab) -> None:
    """Spark computes them as doubles, by a rule that has not run when ours does."""
    lab.sql(
        "CREATE TABLE money USING delta AS SELECT id % 300 AS h, id % 7 AS g, "
        "CAST((id * 7919 % 10000019) * 91.57 AS DECIMAL(11,2)) AS p FROM range(6000)"
    )
    lab.cache("m AS SELECT g, h, MAX(p) AS m, COUNT(*) AS n, SUM(p) AS s FROM money GROUP BY g, h")
    query = (
        "SELECT h, AVG(m) AS a, SUM(m) AS s FROM "
        "(SELECT g, h, MAX(p) AS m FROM money GROUP BY g, h) GROUP BY h"
    )
    store, pinned = pins(lab), pins(lab).stats().pins
    lab.hit(query)
    until(lambda: store.stats().pins == pinned + 1, "pinned")
    assert counted(computed(lab, query)) == counted(lab.plain.sql(query).collect())


def test_what_grows_without_end_is_given_up(warm) -> None:
    inner = f"SELECT region AS s, SUM(amt) AS a {FROM} GROUP BY region"
    for _ in range(24):
        inner = f"SELECT concat(s, s) AS s, a FROM ({inner})"
    query = f"SELECT MAX(length(s)) FROM ({inner})"
    assert told(warm, query) == "by a Spark job: more than 8388608 bytes"


def test_what_was_committed_meanwhile_is_there(lab) -> None:
    held = pins(lab).stats().pins  # by the module's other lab
    lab.cache(CUBE)
    lab.hit(BY_REGION)
    until(lambda: pins(lab).stats().pins == held + 1, "pinned")
    first = computed(lab, BY_REGION)
    lab.plain.sql("INSERT INTO sales VALUES (99, DATE'2024-05-05', 'north', 1, 1000, 1, 1, 1)")
    assert counted(lab.sql(BY_REGION)) == counted(lab.plain.sql(BY_REGION).collect())
    assert counted(lab.sql(BY_REGION)) != counted(first)
    lab.sql("REFRESH RELATIONAL CACHE c")
    before = local(lab)

    def is_computed() -> bool:
        lab.hit(BY_REGION)
        return local(lab) > before

    until(is_computed, "the new state pinned")


@pytest.fixture
def rules(warm, tmp_path: Path) -> None:
    """Another extension's optimizer rules, which do what a session's settings say; else nothing."""
    jar = tmp_path / "rules.jar"
    source = Path(__file__).parents[1] / "doors" / "java" / "Rules.java"
    write_jar(jar, compiled([source], spark_start.class_path()))
    jvm = warm.spark._jvm
    urls = warm.spark.sparkContext._gateway.new_array(jvm.java.net.URL, 1)
    urls[0] = jvm.java.net.URL(jar.as_uri())
    parent = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    loader = class_on_path(jvm, "java.net.URLClassLoader").newInstance(urls, parent)
    made = loader.loadClass("authorising.Rules").getDeclaredConstructors()[0].newInstance(None)
    made.apply(warm.spark._jsparkSession.extensions())


def test_a_rule_of_another_extension_that_changes_the_plan(warm, rules: None) -> None:
    """It changes what stands in the plan by what it sees there, and sees no rows."""
    query = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"
    warm.sql("CREATE TABLE t USING delta AS SELECT id, id % 3 AS k FROM range(30)")
    warm.cache(f"by_k AS {query}")
    held = pins(warm).stats().pins
    with further(warm, **ON) as (session,):  # whose rules are made anew
        session.sql(query).collect()
        until(lambda: pins(warm).stats().pins == held + 1, "pinned")
        computed(warm, query, session)
        session.conf.set("test.rules", "authorise")
        session.conf.set("test.denied", "nothing of it")
        computed(warm, query, session)
        before = local(warm)
        session.conf.set("test.rules", "filter")
        rows = session.sql(query).collect()
        assert {row.k for row in rows} == {0, 1}
        assert local(warm) == before
        assert cachemgr.explain(session, query).computed == (
            "by a Spark job: an optimizer rule of another extension changes the query's plan"
        )


def test_a_session_that_wants_none_is_told_so(warm) -> None:
    with warm.conf(spark__cachemgr__local__enabled="false"):
        before = local(warm)
        warm.hit(BY_REGION)
        assert local(warm) == before
        assert told(warm, BY_REGION) == "by a Spark job: spark.cachemgr.local.enabled is false"
    computed(warm, BY_REGION)
