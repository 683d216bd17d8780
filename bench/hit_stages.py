"""Where the time of a hit goes: the stages of a query in Spark, one after another, of hits that are
answered by rows held in the driver, of the same hits by a Spark job, and of two queries that read
nothing.

Each text is asked once with constants that were drawn by `SEED` and not asked before: Spark
compiles code with the numbers of a query in it, so that constants which come again cost less than
those of a dashboard. The kinds are asked by turns. Thread time is the processor time of the thread
that plans.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from string import Template

from pyspark.sql import SparkSession

import cachemgr
from bench.results import Figure, percentile
from bench.ssb import SCALE, ssb_session
from cachemgr.demo.ssb_queries import QUERIES, SsbQuery
from cachemgr.jvm.classes import class_on_path

SEED = 46
_ROUNDS = 5
_LOCAL = "spark.cachemgr.local.enabled"
# the sets of the other two have too many rows to be pinned
_TOO_LARGE = ("Q3.4", "Q4.3")
_STAGES = ("parse", "analyse", "optimise", "plan", "execute")


def drawn(query: SsbQuery, numbers: random.Random) -> str:
    """The text of a query with a mixture of its parameters.

    Args:
        query: One of the thirteen.
        numbers: Draws them.
    """
    one = {name: numbers.choice(query.parameters)[name] for name in query.parameters[0]}
    together = [{"low", "high"}, {"few", "many"}, {"since", "until"}, {"region", "nation"}]
    for names in together:  # else most of the answers would be empty
        if names <= one.keys():
            one |= {k: v for k, v in numbers.choice(query.parameters).items() if k in names}
    return Template(query.template).substitute(one)


def run(scale: float = SCALE) -> list[Figure]:
    """All figures of this module.

    Args:
        scale: SSB scale factor.
    """
    numbers = random.Random(SEED)
    queries = [query for query in QUERIES if query.name not in _TOO_LARGE]
    with ssb_session(scale, cube=True) as spark:
        scanned = spark.newSession()
        for key in ("spark.cachemgr.metastore.url", "spark.cachemgr.location"):
            scanned.conf.set(key, spark.conf.get(key))
        cachemgr.enable(scanned)
        cachemgr.disable(spark)
        spark.conf.set(_LOCAL, "true")
        cachemgr.enable(spark)
        for _ in range(3):  # all sets are pinned meanwhile
            for query in QUERIES:
                spark.sql(query.sql()).collect()
                scanned.sql(query.sql()).collect()
            time.sleep(5)

        def texts() -> Iterator[str]:
            for query in queries:
                yield drawn(query, numbers)

        kinds: dict[str, tuple[SparkSession, Callable[[], Iterator[str]]]] = {
            "local hit": (spark, texts),
            "scanned hit": (scanned, texts),
            "SELECT 1": (spark, lambda: iter([f"SELECT {numbers.randrange(10**9)}"] * 5)),
            "VALUES (1)": (
                spark,
                lambda: iter([f"SELECT * FROM VALUES ({numbers.randrange(10**9)})"] * 5),
            ),
        }
        wall: dict[tuple[str, str], list[float]] = defaultdict(list)
        cpu: dict[tuple[str, str], list[float]] = defaultdict(list)
        whole: dict[str, list[float]] = defaultdict(list)
        for _ in range(_ROUNDS):
            for kind, (session, made) in kinds.items():
                for text in made():
                    _stages(session, text, kind, wall, cpu)
                for text in made():
                    start = time.perf_counter()
                    session.sql(text).collect()
                    whole[kind].append((time.perf_counter() - start) * 1e3)
        cachemgr.disable(scanned)
    return _figures(wall, cpu, whole)


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
    wall: dict[tuple[str, str], list[float]],
    cpu: dict[tuple[str, str], list[float]],
    whole: dict[str, list[float]],
) -> list[Figure]:
    figures = []
    for kind in whole:
        for stage in _STAGES:
            figures.append(Figure(f"{kind}, {stage} p50", percentile(wall[kind, stage], 0.5), "ms"))
            figures.append(
                Figure(f"{kind}, {stage}, thread p50", percentile(cpu[kind, stage], 0.5), "ms")
            )
        figures.append(Figure(f"{kind} p50", percentile(whole[kind], 0.5), "ms"))
        figures.append(Figure(f"{kind} p99", percentile(whole[kind], 0.99), "ms"))
    beside = percentile(whole["local hit"], 0.5)
    figures += [
        Figure("local hit against SELECT 1", beside / percentile(whole["SELECT 1"], 0.5), "x", 1.2),
        Figure(
            "local hit against a scanned one", beside / percentile(whole["scanned hit"], 0.5), "x"
        ),
    ]
    return figures
