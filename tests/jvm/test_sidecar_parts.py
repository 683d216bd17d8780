"""Parts of the sidecar's Java side that need no server."""

from __future__ import annotations

import threading
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cachemgr.ddl.recognise import EXPRESSION, looks_like_ours
from cachemgr.jvm.jar import jar_for
from cachemgr.jvm.loader import java_class, session_of
from cachemgr.spark import hook
from cachemgr.sparks import minor_of
from tests.ddl.test_ddl_recognise import NOT_OURS, OURS

pytestmark = pytest.mark.spark


class _Clock:
    """Milliseconds that only the test lets pass."""

    class Java:
        implements = ("java.util.function.LongSupplier",)

    def __init__(self) -> None:
        self.now = 0

    def getAsLong(self) -> int:
        return self.now


class _Python:
    """A process that decides nothing, and that only when it is let."""

    class Java:
        implements = ("java.util.function.BiFunction",)

    def __init__(self) -> None:
        self.asked = threading.Semaphore(0)
        self.may_answer = threading.Event()

    def apply(self, request: Any, question: str) -> str:
        self.asked.release()
        assert self.may_answer.wait(60)
        return ""


def _made(spark: SparkSession, name: str, *given: Any) -> Any:
    from pyspark.java_gateway import ensure_callback_server_started

    ensure_callback_server_started(spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
    loader = java_class(spark, "Hook").getClass().getClassLoader()
    constructor = loader.loadClass(f"relationalcache.{name}").getDeclaredConstructors()[0]
    constructor.setAccessible(True)
    # a list takes what is of Python, an array does not
    arguments = spark._jvm.java.util.ArrayList()  # type: ignore[union-attr]
    for each in given:
        arguments.add(each)
    return constructor.newInstance(arguments.toArray())


@contextmanager
def _one_thread(spark: SparkSession) -> Iterator[Any]:
    concurrent = spark._jvm.java.util.concurrent  # type: ignore[union-attr]
    queue, minutes = concurrent.SynchronousQueue(), concurrent.TimeUnit.MINUTES
    threads = concurrent.ThreadPoolExecutor(0, 1, 5, minutes, queue)
    try:
        yield threads
    finally:
        threads.shutdownNow()


def _passed_by(spark: SparkSession) -> tuple[int, int]:
    counted = hook.counters(spark)
    return counted["timed_out"], counted["not_asked"]


def test_a_question_waits_for_a_thread_that_is_free(spark: SparkSession) -> None:
    request = _made(spark, "Request", None, None, "rewrite", False, False, None, None, 0)
    python, before = _Python(), _passed_by(spark)
    with _one_thread(spark) as threads, ThreadPoolExecutor(2) as queries:
        decider = _made(spark, "sidecar.TimedDecider", python, threads, 30_000)
        answers = [queries.submit(decider.apply, request, "") for _ in range(2)]
        assert python.asked.acquire(timeout=60)
        assert not python.asked.acquire(timeout=0.3)
        python.may_answer.set()
        assert [answer.result(60) for answer in answers] == ["", ""]
    assert python.asked.acquire(timeout=0)
    assert _passed_by(spark) == before


def test_a_question_that_no_thread_took_up_is_no_failure(spark: SparkSession) -> None:
    request = _made(spark, "Request", None, None, "rewrite", False, False, None, None, 0)
    python = _Python()
    timed_out, not_asked = _passed_by(spark)
    with _one_thread(spark) as threads, ThreadPoolExecutor(1) as queries:
        held = _made(spark, "sidecar.TimedDecider", python, threads, 30_000)
        answer = queries.submit(held.apply, request, "")
        assert python.asked.acquire(timeout=60)
        decider = _made(spark, "sidecar.TimedDecider", python, threads, 50)
        assert decider.apply(request, "") == decider.apply(request, "") == ""
        assert _passed_by(spark) == (timed_out, not_asked + 2)
        python.may_answer.set()
        assert answer.result(60) == ""
    assert not python.asked.acquire(timeout=0)


def test_a_breaker_opens_tries_again_and_closes(spark: SparkSession) -> None:
    clock = _Clock()
    breaker = _made(spark, "sidecar.Breaker", clock)
    breaker.foundNoThread()
    assert breaker.lets() and breaker.lets()
    breaker.failed()
    breaker.failed()  # one that had been let through as well: it does not double the pause
    assert (breaker.pause(), breaker.lets()) == (1_000, False)
    clock.now = 1_000
    assert breaker.lets() and not breaker.lets()  # one tries
    breaker.failed()
    assert (breaker.pause(), breaker.lets()) == (2_000, False)
    clock.now = 3_000
    assert breaker.lets() and not breaker.lets()
    breaker.gaveUp()  # it was cancelled while it waited
    assert breaker.lets()
    breaker.foundNoThread()
    assert (breaker.pause(), breaker.lets()) == (4_000, False)
    clock.now = 7_000
    assert breaker.lets()
    breaker.succeeded()
    assert breaker.pause() == 0 and breaker.lets() and breaker.lets()
    for _ in range(9):
        breaker.failed()
        clock.now += 100_000
        assert breaker.lets()
    assert breaker.pause() == 30_000


def test_java_recognises_the_same_statements(spark: SparkSession) -> None:
    with zipfile.ZipFile(jar_for(minor_of(spark.version))) as files:
        text = files.read("relationalcache/recognise.txt").decode()
    assert text == EXPRESSION
    flags = spark._jvm.java.util.regex.Pattern  # type: ignore[union-attr]
    compiled = flags.compile(
        text, flags.CASE_INSENSITIVE | flags.UNICODE_CASE | flags.UNICODE_CHARACTER_CLASS
    )
    for each in [*OURS, *NOT_OURS]:
        assert compiled.matcher(each).lookingAt() == looks_like_ours(each), each


def test_a_name_of_kyuubi_is_a_claim(spark: SparkSession) -> None:
    assert _who(spark) == (None, True)
    spark.sparkContext.setLocalProperty("kyuubi.session.user", "ann")
    try:
        assert _who(spark) == ("ann", False)
    finally:
        spark.sparkContext.setLocalProperty("kyuubi.session.user", None)  # type: ignore[arg-type]


def test_where_a_thrift_server_runs_nobody_is_the_process_itself(spark: SparkSession) -> None:
    jvm, context = spark._jvm, spark.sparkContext._jsc.sc()
    package = jvm.org.apache.spark.sql.hive.thriftserver  # type: ignore[union-attr]
    server = getattr(getattr(package, "HiveThriftServer2$"), "MODULE$")
    none = jvm.scala.Option.empty()  # type: ignore[union-attr]
    store = context.statusStore().store()
    listener = package.ui.HiveThriftServer2Listener(store, context.conf(), none, False)
    setter = getattr(server, "listener_$eq")
    setter(listener)
    try:
        assert _who(spark) == ("", False)
    finally:
        setter(None)
    assert _who(spark) == (None, True)


def _who(spark: SparkSession) -> tuple[str | None, bool]:
    loader = java_class(spark, "Hook").getClass().getClassLoader()
    methods = loader.loadClass("relationalcache.Who").getMethods()
    asks = next(method for method in methods if method.getName() == "asks")
    arguments = spark._jvm.java.util.ArrayList()  # type: ignore[union-attr]
    arguments.add(session_of(spark))
    found = asks.invoke(None, arguments.toArray())
    return found.name(), found.vouched()
