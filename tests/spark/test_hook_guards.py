"""When the hook must stay out: modes, failures, other sessions and threads, writes, cached data,
hints, unknown tables."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from cachemgr.jvm.loader import java_class, session_of
from cachemgr.spark import hints, hook
from cachemgr.spark.plans import capture_query
from tests.worlds.hook_star import Star, StarDecider, reads_cache, rows

QUERY = (
    "SELECT region, sum(amount) AS total FROM {s}.sales JOIN {s}.shops ON shop = id GROUP BY region"
)
WANTED = [("north", 22), (None, 4)]


def installed(star: Star, **options: Any) -> StarDecider:
    decider = StarDecider(star, **options)
    hook.install(star.spark, decider)
    return decider


def query(star: Star, text: str = QUERY) -> Any:
    return star.spark.sql(text.format(s=star.schema))


def test_asked_once_a_query_and_not_again_for_its_second_action(star: Star) -> None:
    decider = installed(star)
    frame = query(star)
    assert not decider.asked, "decided when spark.sql was called, not when it was planned"
    frame.collect()
    frame.collect()
    assert len(decider.asked) == 1


def test_an_unreplaced_query_is_asked_once(star: Star) -> None:
    decider = installed(star, answer=lambda block, _: None)
    assert rows(query(star)) == WANTED
    assert len(decider.asked) == 1


def test_no_log_is_listed_for_a_query_whose_versions_nobody_asks_for(star: Star) -> None:
    installed(star, answer=lambda block, _: None)
    before = hook.counters(star.spark)["looked_up"]
    assert rows(query(star)) == WANTED
    assert hook.counters(star.spark)["looked_up"] == before
    decider = installed(star, answer=lambda block, _: None)
    decider.strict = True
    assert rows(query(star)) == WANTED
    assert hook.counters(star.spark)["looked_up"] == before + len(decider.asked[0].tables)


def test_python_is_not_called_for_unknown_tables(star: Star) -> None:
    decider = installed(star)
    before = hook.counters(star.spark)
    star.spark.read.format("delta").load(star.cache).groupBy("region").count().collect()
    star.spark.range(10).selectExpr("sum(id)").collect()
    after = hook.counters(star.spark)
    assert not decider.asked
    assert after["asked"] == before["asked"]
    assert after["no_known_table"] > before["no_known_table"]


def test_plan_only_decides_and_replaces_nothing(star: Star) -> None:
    decider = installed(star)
    star.spark.conf.set("spark.cachemgr.mode", "planOnly")
    frame = query(star)
    assert rows(frame) == WANTED
    assert not reads_cache(frame, star)
    assert decider.sql and decider.asked[0].mode == "planOnly"


@pytest.mark.parametrize("setting", [("mode", "off"), ("enabled", "false")])
def test_off_and_disabled_are_refused_before_python(star: Star, setting: tuple[str, str]) -> None:
    decider = installed(star)
    star.spark.conf.set(f"spark.cachemgr.{setting[0]}", setting[1])
    assert rows(query(star)) == WANTED
    assert not decider.asked


def broken(block: object, decider: object) -> str:
    raise ZeroDivisionError("injected")


def test_an_exception_leaves_the_original_and_logs_once(
    star: Star, caplog: pytest.LogCaptureFixture
) -> None:
    installed(star, answer=broken)
    before = hook.counters(star.spark)["failed"]
    with caplog.at_level(logging.WARNING, "cachemgr.hook"):
        assert rows(query(star)) == WANTED
        assert rows(query(star)) == WANTED
    assert hook.counters(star.spark)["failed"] == before + 2
    assert sum("injected" in r.getMessage() for r in caplog.records) == 1


def test_text_that_does_not_analyse_leaves_the_original(star: Star) -> None:
    installed(
        star, answer=lambda block, _: block.group_keys and "SELECT nope AS c0, 1 AS c1 FROM __cache"
    )
    assert rows(query(star)) == WANTED


def test_fail_fast_raises_to_the_user(star: Star) -> None:
    installed(star, answer=broken)
    star.spark.conf.set("spark.cachemgr.mode", "failFast")
    with pytest.raises(Exception, match="injected"):
        query(star).collect()


def test_a_dead_python_falls_back(star: Star) -> None:
    """The proxy's end of the connection is gone, as the JVM sees it."""
    jvm = star.spark._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.Thread.currentThread().getContextClassLoader())
    compiler.cook(
        "public class Gone implements java.util.function.BiFunction {"
        " public Object apply(Object request, Object text) {"
        ' throw new py4j.Py4JNetworkException("no Python behind this"); } }'
    )
    gone = compiler.getClassLoader().loadClass("Gone").newInstance()
    installed(star)
    java_class(star.spark, "Hook").register(session_of(star.spark), gone)
    before = hook.counters(star.spark)["failed"]
    assert rows(query(star)) == WANTED
    assert hook.counters(star.spark)["failed"] == before + 1


def test_system_exit_inside_the_decider_falls_back(star: Star) -> None:
    def leave(block: object, decider: object) -> str:
        raise SystemExit("not from in here")

    installed(star, answer=leave)
    assert rows(query(star)) == WANTED


def test_other_sessions_are_left_alone_unless_they_ask(star: Star) -> None:
    decider = installed(star)
    other = star.spark.newSession()
    frame = other.sql(QUERY.format(s=star.schema))
    assert rows(frame) == WANTED
    assert not decider.asked
    hook.share(star.spark, decider)
    assert rows(other.sql(QUERY.format(s=star.schema))) == WANTED
    assert not decider.asked
    other.conf.set("spark.cachemgr.enabled", "true")
    frame = other.sql(QUERY.format(s=star.schema))
    assert rows(frame) == WANTED
    assert reads_cache(frame, star)
    assert decider.asked[0].settings["spark.cachemgr.enabled"] == "true"
    assert decider.asked[0].settings["spark.sql.session.timeZone"] == "UTC"


def test_two_threads_with_two_sessions(star: Star) -> None:
    decider = installed(star)
    other = star.spark.newSession()
    second = StarDecider(star, answer=lambda block, _: None)
    hook.install(other, second)
    wrong: list[object] = []

    def run(session: Any, hit: bool) -> None:
        try:
            for _ in range(4):
                frame = session.sql(QUERY.format(s=star.schema))
                if rows(frame) != WANTED or reads_cache(frame, star) is not hit:
                    wrong.append(frame)
        except Exception as error:
            wrong.append(error)

    threads = [
        threading.Thread(target=run, args=(s, h))
        for s, h in ((star.spark, True), (other, False)) * 2
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    hook.uninstall(other)
    assert not wrong
    assert (len(decider.asked), len(second.asked)) == (8, 8)
    assert {c.session_key for c in decider.asked} != {c.session_key for c in second.asked}


def test_writes_say_so(own_star: Star) -> None:
    star = own_star
    star.spark.sql(f"CREATE TABLE {star.schema}.target (region STRING, total BIGINT) USING DELTA")
    decider = installed(star)
    query(star, "INSERT INTO {s}.target " + QUERY)
    query(star, "CREATE TABLE {s}.made USING DELTA AS " + QUERY)
    query(star).write.format("delta").mode("append").saveAsTable(f"{star.schema}.target")
    query(star).write.mode("overwrite").parquet(star.cache + "_copy")
    query(
        star,
        "MERGE INTO {s}.target t USING (" + QUERY + ") q ON t.region = q.region "
        "WHEN MATCHED THEN UPDATE SET total = q.total",
    )
    assert decider.asked and all(c.is_write for c in decider.asked)
    hook.uninstall(star.spark)
    assert rows(star.spark.table(f"{star.schema}.target")) == sorted(WANTED * 2, key=repr)
    assert rows(star.spark.table(f"{star.schema}.made")) == WANTED
    hook.install(star.spark, decider)
    decider.asked.clear()
    query(star).collect()
    assert not decider.asked[0].is_write


def test_cached_data_and_view_bodies_hold_no_rewrite(star: Star) -> None:
    decider = installed(star)
    query(star, "CACHE TABLE kept_by_user AS " + QUERY)
    frame = query(star).cache()
    try:
        assert rows(frame) == WANTED
        assert decider.asked and all(c.is_kept for c in decider.asked), "only to be logged"
        decider.asked.clear()
        query(star, "CREATE OR REPLACE TEMP VIEW only_a_body AS " + QUERY)
        assert not decider.asked
    finally:
        frame.unpersist(blocking=True)
        star.spark.sql("UNCACHE TABLE kept_by_user")


@pytest.mark.parametrize(
    ("text", "hit"),
    [
        (QUERY.replace("SELECT", "SELECT /*+ NO_RELATIONAL_CACHE */"), False),
        (QUERY.replace("SELECT", "SELECT /*+ BROADCAST(shops), no_relational_cache */"), False),
        (QUERY.replace("GROUP", "WHERE product <> '/*+ NO_RELATIONAL_CACHE */' GROUP"), None),
        (QUERY.replace("SELECT", "SELECT /* NO_RELATIONAL_CACHE */"), True),
        (QUERY + " -- /*+ NO_RELATIONAL_CACHE */", True),
        ("SELECT /*+ NO_RELATIONAL_CACHE */ region FROM (" + QUERY + ") WHERE total > 1", False),
    ],
)
def test_hint_in_sql(star: Star, text: str, hit: bool | None) -> None:
    decider = installed(star)
    frame = query(star, text)
    frame.collect()
    assert ("NO_RELATIONAL_CACHE" in decider.asked[0].hints) is (hit is False)
    if hit is not None:
        assert reads_cache(frame, star) is hit


def test_hint_on_a_dataframe(star: Star) -> None:
    hints.install_dataframe_hint()
    hints.install_dataframe_hint()
    decider = installed(star)
    frame = query(star)
    hinted = frame.hint("no_relational_cache")
    assert rows(hinted.filter("total > 0")) == WANTED
    assert decider.asked[-1].hints == {"NO_RELATIONAL_CACHE"}
    assert rows(frame.hint("RELATIONAL_CACHE", "a", "b")) == WANTED
    assert decider.asked[-1].hinted_caches == ("a", "b")
    assert rows(frame) == WANTED
    assert not decider.asked[-1].hints
    assert reads_cache(frame, star) and not reads_cache(hinted, star)
    assert rows(frame.hint("broadcast")) == WANTED


def test_subquery_expressions_are_asked_apart(star: Star) -> None:
    decider = installed(star)
    text = "SELECT shop FROM {s}.sales WHERE amount > (SELECT max(total) / 4 FROM (" + QUERY + "))"
    assert rows(query(star, text)) == [(1,), (2,)]
    inner, outer = decider.asked
    assert inner.in_subquery and not outer.in_subquery
    assert {t.location for t in inner.tables} == {star.sales, star.shops}
    assert {(t.location, t.elsewhere) for t in outer.tables} == {
        (star.sales, False),
        (star.sales, True),
        (star.shops, True),
    }


def test_suspended_queries_are_left_alone(star: Star) -> None:
    decider = installed(star)
    with hook.suspended(star.spark):
        assert rows(query(star)) == WANTED
    capture_query(star.spark, QUERY.format(s=star.schema))
    assert not decider.asked
    assert rows(query(star)) == WANTED
    assert len(decider.asked) == 1


def test_time_travel_is_no_known_version(star: Star) -> None:
    decider = installed(star)
    query(star, QUERY.replace("{s}.sales", "{s}.sales VERSION AS OF 1")).collect()
    assert [t.pinned for t in decider.asked[0].tables if t.location == star.sales] == [True]
    assert all(b.block is None or len(b.block.relations) == 1 for b in decider.blocks)


def test_streaming_and_py4j_errors_are_not_ours(star: Star) -> None:
    decider = installed(star)
    stream = star.spark.readStream.table(f"{star.schema}.sales").groupBy("shop").count()
    run = stream.writeStream.outputMode("complete").format("memory").queryName("n_star").start()
    try:
        run.processAllAvailable()
    finally:
        run.stop()
    assert not decider.asked
    assert issubclass(Py4JJavaError, Exception)


def test_a_long_question_does_not_wait_for_tcp(star: Star) -> None:
    """py4j sends what is longer than 8 KB in two parts, and TCP would hold the second back for
    40 ms: in threads that asked before, and in one that has no connection to Python yet."""
    at_once: list[bool] = []

    def answer(block: Any, _: Any) -> None:
        server = star.spark.sparkContext._gateway.java_gateway_server
        connection = server.getGateway().getCallbackClient().getPerThreadConnection()
        at_once.append(connection.getSocket().getTcpNoDelay())

    decider = installed(star, answer=answer)
    sums = ", ".join(f"sum(amount + {i}) AS s{i}" for i in range(60))
    wide = f"SELECT {sums} FROM {{s}}.sales"
    rows(query(star, wide))
    rows(query(star, wide))
    thread = threading.Thread(target=lambda: rows(query(star, wide)))
    thread.start()
    thread.join()
    assert len(decider.asked) == 3
    assert at_once
    assert all(at_once)
