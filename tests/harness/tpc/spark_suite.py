"""A suite's tables, caches and queries in Spark: what the hook sees, decides and answers.

Caches are the rows of their stored SELECTs, held as Parquet files, with what a refresh measures of
them, and the decider is the matcher's registry alone: freshness, rights and refresh have tests of
their own.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from cachemgr.refresh.measure import asked_bounds, exact_sums, open_columns, rows_name
from cachemgr.spark import hook
from cachemgr.spark.hook import HookContext, QueryTable, Replacement
from cachemgr.spark.plans import capture_query
from cachemgr.text import offline
from matcher.catalyst.document import tables_of
from matcher.catalyst.reader import LocatedBlock
from matcher.catalyst.templates import PlanDocument
from matcher.index.registry import Registry
from matcher.model.ir import CachePlan, Rewrite
from matcher.model.reasons import Reason, ReasonCode
from matcher.model.row_order import refused_below
from matcher.render.select import NotRenderable, render_rewrite
from matcher.sql.schema import Table
from tests.harness.tpc import data_ds, data_h, order, suite
from tests.harness.tpc.outcome import Outcome
from tests.matcher.spark_cases import QUICK as _SETTINGS

# Tables of one small file each: nothing to skip, nothing to split.
_QUICK = _SETTINGS | {
    "spark.databricks.delta.stats.collect": "false",
    "spark.databricks.delta.stats.skipping": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
}


@dataclass
class SuiteDecider:
    """Answers from the suite's caches; `used` are the caches of the last queries."""

    workspace: offline.Workspace
    registry: Registry
    keys: dict[str, str]
    stored: dict[str, DataFrame]
    used: list[str] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)
    dropped: list[Reason] = field(default_factory=list)

    def known_locations(self) -> frozenset[str]:
        return frozenset(self.keys)

    def decide(self, document: PlanDocument, context: HookContext) -> Sequence[Replacement]:
        found: list[Replacement] = []

        def visit(located: LocatedBlock) -> bool:
            made = self._replacement(located)
            if made is not None:
                found.append(made)
            return made is not None

        self._known_tables(document).walk(visit)
        self.used += [r.cache for r in found]
        return found

    def _known_tables(self, document: PlanDocument) -> PlanDocument:
        """The document with the tables known by the keys of the suite's plans."""
        tables = [
            {**table, "location": self.keys.get(table["location"], table["location"])}
            for table in tables_of(document.structure)
        ]
        return PlanDocument({**document.structure, "tables": tables})

    def refused(self, context: HookContext, replacement: Replacement, reason: Reason) -> None:
        """What the hook would not put in."""
        self.dropped.append(reason)

    def _replacement(self, located: LocatedBlock) -> Replacement | None:
        if located.block is None:
            self.reasons += located.reasons
            return None
        block = located.block
        options = self.workspace.conf.options
        refused = refused_below(located.above, block, options)
        if refused is not None:
            self.reasons.append(refused)
            return None
        if located.averaged and not options.assume_exact_averages:
            self.reasons.append(_AVERAGED)
            return None
        decision = self.registry.decide(block, options, _not_renderable)
        rewrite = decision.rewrite
        if rewrite is None:
            self.reasons += self.registry.why(block, options, decision.reasons)
            return None
        return self._put(located, rewrite)

    def _put(self, located: LocatedBlock, rewrite: Rewrite) -> Replacement:
        names = [f"table_{number}" for number in range(len(rewrite.extra))]
        sql = render_rewrite(rewrite, "cache_rows", positional=True, extra_sql=names)
        places = {key: place for place, key in self.keys.items()}
        relations = {"cache_rows": self.stored[rewrite.cache]}
        for name, extra in zip(names, rewrite.extra, strict=True):
            relations[name] = QueryTable(places[extra.relation.key])
        return Replacement(located.path, sql, relations, rewrite.cache, located.split)


_AVERAGED: Final = Reason(
    ReasonCode.AVG_NOT_EXACT,
    "whole numbers are averaged above, and nobody knows the rows behind these caches",
)


def _not_renderable(rewrite: Rewrite) -> Reason | None:
    names = [f"t{number}" for number in range(len(rewrite.extra))]
    try:
        render_rewrite(rewrite, "t", positional=True, extra_sql=names)
    except NotRenderable as error:
        return Reason(ReasonCode.UNSUPPORTED_EXPRESSION, str(error))
    return None


class SparkSuite:
    """A suite in a session of its own, over a schema and a folder of its own.

    Args:
        spark: Any session of the application.
        name: The suite.
        folder: Where the caches' rows are held; they are made when a query first needs them.
        filled: False for empty tables: enough to plan the queries.
    """

    def __init__(
        self, spark: SparkSession, name: str, folder: Path, *, filled: bool = True
    ) -> None:
        self.name = name
        self.schema = f"tpc_{name}"
        self.folder = folder
        self.session = spark.newSession()
        for key, value in _QUICK.items():
            self.session.conf.set(key, value)
        self.session.sql(f"CREATE SCHEMA IF NOT EXISTS {self.schema}")
        self.session.sql(f"USE {self.schema}")
        workspace = suite.workspace(name)
        rows = (data_h.make() if name == "h" else data_ds.make()) if filled else {}
        tables = workspace.schema.tables.values()
        keys = {self._make(t, rows.get(t.name, [])): t.key for t in tables}
        stored = {cache: self._stored(cache, text) for cache, text in workspace.stored.items()}
        registry = Registry()
        for plan in workspace.plans.values():
            registry.put(self._measured(plan, stored[plan.name]) if filled else plan)
        self.decider = SuiteDecider(workspace, registry, keys, stored)

    def _make(self, table: Table, rows: list[tuple[Any, ...]]) -> str:
        columns = ", ".join(
            f"{c.name} {c.type}{'' if c.nullable else ' NOT NULL'}" for c in table.columns
        )
        self.session.sql(f"CREATE TABLE {table.name} ({columns}) USING delta")
        if rows:
            types = ", ".join(f"{c.name} {c.type}" for c in table.columns)
            made = self.session.createDataFrame(rows, types).coalesce(1)
            made.createOrReplaceTempView("new_rows")
            self.session.sql(f"INSERT INTO {self.schema}.{table.name} SELECT * FROM new_rows")
        found = capture_query(self.session, f"SELECT * FROM {self.schema}.{table.name}")
        return found.tables[0].location

    def _stored(self, cache: str, select: str) -> DataFrame:
        place = str(self.folder / cache)
        self.session.sql(select).coalesce(1).write.parquet(place)
        rows = self.session.read.parquet(place)
        rows.createOrReplaceTempView(cache)
        return rows

    def _measured(self, plan: CachePlan, stored: DataFrame) -> CachePlan:
        """The plan with the sums that a refresh would have found exact."""
        if plan.keys is None:
            return plan
        tables = [self.session.table(r.name.rpartition(".")[2]) for r in plan.tables]
        rows = stored.agg({rows_name(plan): "sum"}).collect()[0][0] or 0
        bounds = {}
        for column in open_columns(plan, rows):
            found = asked_bounds(self.session, tables[column.rel], [column.name])
            bounds[column] = found[column.name]
        return replace(plan, exact_sums=exact_sums(plan, rows, bounds))

    def plan(self, query: str) -> Outcome:
        """Plan one query with the caches, run nothing."""
        with self._hooked() as decider:
            frame = self.session.sql(suite.queries(self.name)[query])
            frame._jdf.queryExecution().optimizedPlan()
        return self._outcome(query, 0, [r.detail for r in decider.dropped])

    def run(self, query: str) -> Outcome:
        """Run one query without and with the caches."""
        began = time.monotonic()
        text = suite.queries(self.name)[query]
        plain = self.session.sql(text)
        wanted, columns = plain.collect(), plain.dtypes
        with self._hooked() as decider:
            frame = self.session.sql(text)
            got = frame.collect()
            spared = self._read(plain) - self._read(frame)
        found = [r.detail for r in decider.dropped]
        found += order.differences(text, columns, wanted, frame.dtypes, got)
        shown = offline.explain_query(decider.workspace, text)
        if shown["hit"]:  # over the caches as views of their names
            frame = self.session.sql(shown["rewrittenSql"])
            wrong = order.differences(text, columns, wanted, frame.dtypes, frame.collect())
            found += [f"as text: {w}" for w in wrong]
        made = self._outcome(query, len(wanted), found)
        return replace(
            made,
            spared=tuple(sorted(spared)),
            as_text=tuple(shown["caches"]),
            seconds=time.monotonic() - began,
        )

    def _read(self, frame: DataFrame) -> set[str]:
        """The suite's tables that an optimised query reads, in subqueries too."""
        text = frame._jdf.queryExecution().optimizedPlan().toString()
        return set(re.findall(rf"Relation spark_catalog\.{self.schema}\.(\w+)\[", text))

    @contextlib.contextmanager
    def _hooked(self) -> Iterator[SuiteDecider]:
        decider = self.decider
        decider.used.clear()
        decider.reasons.clear()
        decider.dropped.clear()
        hook.install(self.session, decider)
        try:
            yield decider
        finally:
            hook.uninstall(self.session)

    def _outcome(self, query: str, rows: int, differences: list[str]) -> Outcome:
        used = self.decider.used
        reasons = tuple(dict.fromkeys(f"{r.code.value}: {r.detail}" for r in self.decider.reasons))
        caches = tuple(dict.fromkeys(used))
        return Outcome(query, rows, len(used), caches, tuple(differences), reasons)

    def drop(self) -> None:
        """Remove the tables again."""
        self.session.sql("USE default")
        self.session.sql(f"DROP SCHEMA IF EXISTS {self.schema} CASCADE")


def run_all(wanted: Sequence[str], *, filled: bool) -> Iterator[Outcome]:
    """Suites, or single queries, in a Spark session of its own, run or only planned."""
    from tests.spark_session import spark_session

    with spark_session() as spark, tempfile.TemporaryDirectory(prefix="cachemgr-tpc-") as folder:
        for name in suite.SUITES:
            asked = [q for q in suite.queries(name) if name in wanted or q in wanted]
            if not asked:
                continue
            made = SparkSuite(spark, name, Path(folder), filled=filled)
            try:
                for query in asked:
                    yield made.run(query) if filled else made.plan(query)
            finally:
                made.drop()
