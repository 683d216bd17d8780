"""Where the time of a hit goes: the stages of a query in Spark, one after another, of hits that are
answered by rows held in the driver, of the same hits decided anew each time and by a Spark job, and
of two queries that read nothing.

Each text is asked once with constants that were drawn by `SEED` and not asked before: Spark
compiles code with the numbers of a query in it, so that constants which come again cost less than
those of a dashboard. The kinds are asked by turns, each by `collect()`, `show()`, `toPandas()` and
`toArrow()`. Thread time is the processor time of the thread that plans.
"""

from __future__ import annotations

import contextlib
import io
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from pyspark.sql import DataFrame, SparkSession

import cachemgr
from bench.results import Figure, percentile
from bench.ssb import SCALE, drawn, held_queries, ssb_session
from cachemgr.demo.ssb_queries import QUERIES
from cachemgr.jvm.classes import class_on_path
from cachemgr.spark import hook

SEED = 46
_ROUNDS = 5
_LOCAL = "spark.cachemgr.local.enabled"
_PREPARED = "spark.cachemgr.prepared.enabled"
_LOCAL_HIT = "local hit"
_STAGES = ("parse", "analyse", "optimise", "plan", "execute")


def run(scale: float = SCALE) -> list[Figure]:
    """All figures of this module.

    Args:
        scale: SSB scale factor.
    """
    numbers = random.Random(SEED)
    queries = held_queries()
    with ssb_session(scale, cube=True) as spark:
        scanned, decided = (_without(spark, key) for key in (_LOCAL, _PREPARED))
        for _ in range(3):  # all sets are pinned meanwhile
            for query in QUERIES:
                for session in (spark, scanned, decided):
                    session.sql(query.sql()).collect()
            time.sleep(5)

        def texts() -> Iterator[str]:
            for query in queries:
                yield drawn(query, numbers)

        kinds: dict[str, tuple[SparkSession, Callable[[], Iterator[str]]]] = {
            _LOCAL_HIT: (spark, texts),
            "decided hit": (decided, texts),
            "scanned hit": (scanned, texts),
            "SELECT 1": (spark, lambda: iter([f"SELECT {numbers.randrange(10**9)}"] * 5)),
            "VALUES (1)": (
                spark,
                lambda: iter([f"SELECT * FROM VALUES ({numbers.randrange(10**9)})"] * 5),
            ),
        }
        wall: dict[tuple[str, str], list[float]] = defaultdict(list)
        cpu: dict[tuple[str, str], list[float]] = defaultdict(list)
        whole: dict[tuple[str, str], list[float]] = defaultdict(list)
        before = hook.counters(spark)["prepared"]
        for _ in range(_ROUNDS):
            for kind, (session, made) in kinds.items():
                for text in made():
                    _stages(session, text, kind, wall, cpu)
                for name, ask in _ASKED.items():
                    for text in made():
                        start = time.perf_counter()
                        ask(session.sql(text))
                        whole[kind, name].append((time.perf_counter() - start) * 1e3)
        kept = hook.counters(spark)["prepared"] - before
        for session in (scanned, decided):
            cachemgr.disable(session)
    asked = len(wall[_LOCAL_HIT, "parse"]) + sum(len(whole[_LOCAL_HIT, n]) for n in _ASKED)
    return [
        *_figures(kinds, wall, cpu, whole),
        Figure("local hits by a kept decision", 100 * kept / asked, "%"),
    ]


def _without(spark: SparkSession, setting: str) -> SparkSession:
    """A further session in which that is off."""
    session = spark.newSession()
    for key in ("spark.cachemgr.metastore.url", "spark.cachemgr.location"):
        session.conf.set(key, str(spark.conf.get(key)))
    session.conf.set(setting, "false")
    cachemgr.enable(session)
    return session


def _shown(frame: DataFrame) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        frame.show()


# how a person or a program asks for the rows
_ASKED: Final[dict[str, Callable[[DataFrame], object]]] = {
    "collect": lambda frame: frame.collect(),
    "show": _shown,
    "toPandas": lambda frame: frame.toPandas(),
    "toArrow": lambda frame: frame.toArrow(),
}
_BUDGETS: Final = {"collect": 30.0, "toPandas": 50.0, "toArrow": 50.0}


def _stages(
    spark: SparkSession,
    text: str,
    kind: str,
    wall: dict[tuple[str, str], list[float]],
    cpu: dict[tuple[str, str], list[float]],
) -> None:
    factory = class_on_path(spark._jvm, "java.lang.management.ManagementFactory")
    threads = factory.getThreadMXBean()

    def now() -> tuple[int, int]:
        return time.perf_counter_ns(), threads.getCurrentThreadCpuTime()

    state = spark._jsparkSession.sessionState()
    mode = class_on_path(spark._jvm, "org.apache.spark.sql.execution.CommandExecutionMode").ALL()
    at = [now()]
    plan = state.sqlParser().parsePlan(text)
    at.append(now())
    execution = state.executePlan(plan, mode)
    execution.analyzed()
    at.append(now())
    execution.optimizedPlan()
    at.append(now())
    physical = execution.executedPlan()
    at.append(now())
    physical.executeCollect()
    at.append(now())
    for number, stage in enumerate(_STAGES):
        (wall_from, cpu_from), (wall_to, cpu_to) = at[number : number + 2]
        wall[kind, stage].append((wall_to - wall_from) / 1e6)
        cpu[kind, stage].append((cpu_to - cpu_from) / 1e6)


def _figures(
    kinds: Iterable[str],
    wall: dict[tuple[str, str], list[float]],
    cpu: dict[tuple[str, str], list[float]],
    whole: dict[tuple[str, str], list[float]],
) -> list[Figure]:
    figures = []
    for kind in kinds:
        for stage in _STAGES:
            figures.append(Figure(f"{kind}, {stage} p50", percentile(wall[kind, stage], 0.5), "ms"))
            figures.append(
                Figure(f"{kind}, {stage}, thread p50", percentile(cpu[kind, stage], 0.5), "ms")
            )
        budgets = _BUDGETS if kind == _LOCAL_HIT else {}
        for name in _ASKED:
            millis = whole[kind, name]
            p50 = Figure(f"{kind}, {name} p50", percentile(millis, 0.5), "ms", budgets.get(name))
            figures += [p50, Figure(f"{kind}, {name} p99", percentile(millis, 0.99), "ms")]

    def against(kind: str) -> float:
        return percentile(whole[_LOCAL_HIT, "collect"], 0.5) / percentile(
            whole[kind, "collect"], 0.5
        )

    return [
        *figures,
        Figure("local hit against SELECT 1", against("SELECT 1"), "x", 1.2),
        Figure("local hit against one decided anew", against("decided hit"), "x"),
        Figure("local hit against a scanned one", against("scanned hit"), "x"),
    ]
