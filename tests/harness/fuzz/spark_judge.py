"""Spark as the judge: many pairs over one data set, compared inside the JVM.

The tables are temporary views over constants in one partition, so that a query is one job without
a shuffle; the caches' stored tables are computed once by their stored SELECT.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import spark_start
from tests.harness.fuzz.decide import Accepted, Prepared
from tests.harness.fuzz.world import VIEW_TEXT, Table, World

_SOURCE = Path(__file__).parent / "java" / "FuzzJudge.java"
_CLASS = "relationalcache.fuzz.FuzzJudge"
# Thousands of queries over a few rows: planning and compiling cost more than running.
QUICK = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.execution.usePartitionEvaluator": "true",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.exchange.reuse": "false",
    "spark.sql.unionOutputPartitioning": "false",  # or it would rely on shuffles that are left out
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.crossJoin.enabled": "true",
    "spark.sql.lightweightPlanChangeValidation": "false",
}
_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.legacy.parameterSubstitution.constantsOnly": "true",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "2",
}
_FIELD, _LINE = "\u0001", "\u0002"
_DIGITS = 9  # of FLOAT and DOUBLE, where sums in another order are allowed
# Aggregates whose value hangs on the order of rows: picks, and floating point (by its columns).
_BY_ORDER = re.compile(
    r"\b(ANY_VALUE|FIRST|LAST|STDDEV\w*|VAR_\w+|COVAR_\w+|CORR)\(|\b(SUM|AVG)\([^)]*(f_x|f_y|DOUBLE)"
)
_FAILS = re.compile(r"^schema or error: (?!error).* <> error ")
_PASSES = re.compile(r"^schema or error: error .* <> (?!error)", re.DOTALL)
_JOINS = re.compile(r"\b(JOIN|EXISTS|IN) |\bFROM \w+,")
_EXCLUDED = "spark.sql.optimizer.excludedRules"
_PUSH = ",".join(
    f"org.apache.spark.sql.catalyst.optimizer.{rule}"
    for rule in (
        "PushDownPredicates",
        "PushDownLeftSemiAntiJoin",
        "PushLeftSemiLeftAntiThroughJoin",
    )
)
_IN_EXISTS = re.compile(r"EXISTS \(\{\}")


@dataclass(frozen=True)
class Verdict:
    """`outcome` is equal, skipped (the original fails) or wrong."""

    outcome: str
    detail: str = ""


class SparkJudge:
    """One Spark session that compares pairs."""

    def __init__(self, spark: Any, threads: int = 2) -> None:
        self._session = spark.newSession()
        self._threads = threads
        self._known: set[str] = set()
        for key, value in QUICK.items():
            self._session.conf.set(key, value)
        loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
        self._java = compiled(spark, _SOURCE, _CLASS, loader)

    def load(self, world: World) -> None:
        """Make the world's tables the ones that queries read."""
        self._java.clear()
        self._known.clear()
        problems = self._keep({t.name: select_rows(t) for t in world.tables.values()})
        assert not any(problems.values()), problems
        self._session.sql(f"CREATE OR REPLACE TEMPORARY VIEW vf AS {VIEW_TEXT}")

    def _keep(self, views: dict[str, str]) -> dict[str, str]:
        """Temporary views over the rows that the texts have now; an error's first line each, or
        an empty text."""
        if not views:
            return {}
        lines = _LINE.join(_FIELD.join(view) for view in views.items())
        session = self._session._jsparkSession
        answers = str(self._java.keep(session, lines, self._threads)).split(_LINE)
        return dict(zip(views, answers, strict=True))

    def judge(self, world: World, accepted: list[Accepted]) -> list[Verdict]:
        """Compare every pair over the loaded tables."""
        broken = self._add(p for a in accepted for p in a.caches)
        verdicts: list[Verdict | None] = [None] * len(accepted)
        lines, numbers = [], []
        for i, pair in enumerate(accepted):
            problem = next(filter(None, (broken.get(p.cache.name) for p in pair.caches)), "")
            if problem:
                verdicts[i] = Verdict("skipped", problem)
                continue
            lines.append(_FIELD.join([pair.query, pair.rewritten, _what_counts(pair)]))
            numbers.append(i)
        if lines:
            digits = _DIGITS if world.approximate else 0
            text = self._compare(_LINE.join(lines), digits)
            for i, answer in zip(numbers, text.split(_LINE), strict=True):
                found = _verdict(answer)
                verdicts[i] = found
                if found.outcome == "wrong":
                    verdicts[i] = self._again(world, accepted[i], found)
        return [v or Verdict("skipped") for v in verdicts]

    def _compare(self, lines: str, digits: int) -> str:
        session = self._session._jsparkSession
        return str(self._java.judge(session, lines, self._threads, digits))

    def _again(self, world: World, pair: Accepted, first: Verdict) -> Verdict:
        """A second look where Spark itself may answer either: sums of floating point numbers in
        another order, which row ANY_VALUE, FIRST and LAST take, and, where EXISTS asks for groups,
        which row Spark computes the key of: one alone, since it pushes LIMIT 1 below them."""
        if _IN_EXISTS.search(pair.spec.wrap) and _raises_in_a_key(pair):
            return Verdict("skipped", "which row EXISTS looks at")
        line = _FIELD.join([pair.query, pair.rewritten, _what_counts(pair)])
        if _FAILS.search(first.detail):
            # what nobody reads is worked out over rows that lie in the plan, and not over a table
            for each in pair.caches:
                rows = self._session.table(each.cache.name).localCheckpoint()
                rows.createOrReplaceTempView(each.cache.name)
            first = _verdict(self._compare(line, _DIGITS if world.approximate else 0))
        if _PASSES.search(first.detail) and _JOINS.search(pair.query):
            # an error of a row that a join drops, which Spark's optimiser looks at before
            self._session.conf.set(_EXCLUDED, _PUSH)
            try:
                first = _verdict(self._compare(" " + line, _DIGITS if world.approximate else 0))
            finally:
                self._session.conf.unset(_EXCLUDED)
        if first.outcome != "wrong" or not _BY_ORDER.search(pair.query):
            return first
        rounded = _verdict(self._compare(line, _DIGITS))
        if rounded.outcome == "equal" or pair.spec.wrap != "{}":
            return rounded if rounded.outcome == "equal" else Verdict("skipped", "order of rows")
        rest = [i.name for i in pair.spec.items if not _BY_ORDER.search(i.piece.text)]
        by_order = any(_BY_ORDER.search(p.text) for p in pair.spec.having)
        if not rest or by_order or pair.spec.limit is not None or pair.spec.distinct:
            return Verdict("skipped", "order of rows")
        names = ", ".join(rest)
        texts = [f"SELECT {names} FROM ({t}) AS q" for t in (pair.query, pair.rewritten)]
        return _verdict(self._compare(_FIELD.join([*texts, ""]), 0))

    def _add(self, pairs: Iterable[Prepared]) -> dict[str, str]:
        """Compute the caches that are not there yet; why those that fail do."""
        new = {p.cache.name: p for p in pairs if p.cache.name not in self._known}
        over_caches = {n: p.stored for n, p in new.items() if p.base is not None}
        problems = self._keep({n: p.stored for n, p in new.items() if p.base is None})
        problems |= self._keep(over_caches)
        self._known |= {name for name, problem in problems.items() if not problem}
        return problems

    def rows(self, text: str) -> str:
        """Names, types and rows of any query, for a report."""
        return str(self._java.rows(self._session._jsparkSession, text))


def compiled(spark: Any, source: Path, name: str, loader: Any) -> Any:
    """An instance of the Java class `name`, compiled now against what `loader` knows."""
    compiler = spark._jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(loader)
    compiler.cook(source.read_text())
    return compiler.getClassLoader().loadClass(name).newInstance()


def _raises_in_a_key(pair: Accepted) -> bool:
    """What DISTINCT shows are keys as well, and a cache held in memory is worked out whole."""
    shown = (item.piece for item in pair.spec.items if pair.spec.distinct)
    return any("predicate.raising" in key.tags for key in (*(pair.spec.keys or ()), *shown))


def _what_counts(pair: Accepted) -> str:
    ordered = pair.spec.order and pair.spec.wrap == "{}"
    # of a cache held in memory Spark knows that an OFFSET leaves no row, and works nothing out
    raises = "predicate.raising" in pair.tags and pair.spec.offset is None
    return ("o" if ordered else "") + ("r" if raises else "")


def _verdict(answer: str) -> Verdict:
    return Verdict({"=": "equal", "s": "skipped", "!": "wrong"}[answer[0]], answer[1:])


def select_rows(table: Table) -> str:
    """A SELECT of the table's rows."""
    columns = table.declared()
    names = ", ".join(c.name for c in columns)
    casts = ", ".join(f"CAST({c.name} AS {c.type}) AS {c.name}" for c in columns)
    if not table.rows:
        nothing = ", ".join(f"NULL AS {c.name}" for c in columns)
        return f"SELECT {casts} FROM (SELECT {nothing}) WHERE false"
    rows = ", ".join(f"({', '.join(_cells(table, i))})" for i in range(len(table.rows)))
    return f"SELECT {casts} FROM VALUES {rows} AS v({names})"


def _cells(table: Table, number: int) -> list[str]:
    """A row's cells; a struct without values is NULL in every other row, in the rest one of
    NULLs."""
    row = dict(zip((c.name for c in table.columns), table.rows[number], strict=True))
    found = []
    for column in table.declared():
        fields = [c for c in table.columns if c.struct == column.name]
        if not fields:
            found.append(_cell(row[column.name]))
        elif number % 2 and all(row[c.name] is None for c in fields):
            found.append("NULL")
        else:
            parts = (
                f"'{c.name.rpartition('.')[2]}', CAST({_cell(row[c.name])} AS {c.type})"
                for c in fields
            )
            found.append(f"named_struct({', '.join(parts)})")
    return found


def _cell(value: str | None) -> str:
    return "NULL" if value is None else f"'{value}'"


def start_spark(delta: bool = False) -> Any:
    """A session of its own for long runs, in which compiling pays; `delta` puts Delta's classes
    beside Spark's, which the hook's need."""
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[2]")
        .appName("cachemgr-fuzz")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", "-XX:+UseSerialGC -Xss4m")
    )
    if delta:
        builder = spark_start.with_delta(builder)
        for key, value in _DELTA.items():
            builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark
