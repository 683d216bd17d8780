"""A world that runs: base tables cloned from a prepared folder, one session with caches, one
without, and a metastore of its own.

The judge is a session without caches in the same process, never enabled.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException

import cachemgr
from cachemgr.base_state import TableAt
from cachemgr.delta.tables import current_versions
from cachemgr.errors import CacheManagerError
from cachemgr.metastore import open_metastore
from cachemgr.refresh.by_change import incremental
from cachemgr.spark import api
from cachemgr.spark.held.tail_pace import Tempo
from tests.harness.fuzz_refresh.folders import NotApplicable, carry_out
from tests.harness.fuzz_refresh.judge import Answer, answer, difference, one_line, rows_answer
from tests.harness.fuzz_refresh.layouts import JOINS, LAYOUTS, VIEWS
from tests.harness.fuzz_refresh.outcomes import Done, Finding, Tally
from tests.harness.fuzz_refresh.reading import base_versions, published_rows
from tests.harness.fuzz_refresh.shapes import SHAPES, Shape, at_versions, named, tables_of
from tests.harness.fuzz_refresh.steps import (
    MIXED,
    NONE,
    CacheSpec,
    Change,
    Declare,
    Query,
    Refresh,
    Settings,
    Step,
    Walk,
)
from tests.harness.fuzz_refresh.templates import Templates, quick_session
from tests.harness.sessions.settings import having
from tests.harness.sessions.told import WHOLE_TEXTS, grown, wrong_of_explain, wrong_of_the_plan

_numbers = itertools.count(1)
# A tail of a dozen rows is there sooner.
_TAIL_SECONDS: Final = 20.0
# Refresh refused for what the world did; the definition itself may still run.
_ALLOWED_CODES: Final = frozenset({
    "NOT_INCREMENTAL", "BASE_COLUMN_LOST", "BASE_COLUMN_CHANGED", "BASE_TABLE_LOST",
    "DEFINITION_BROKEN", "COLUMNS_CHANGED",
})  # fmt: skip
# Where a walk tells large sets from small ones, the partial rows of a group before a set is written
# anew: after a few refreshes.
MOST_PARTIALS: Final = 3.0


@contextlib.contextmanager
def world(templates: Templates, walk: Walk, tally: Tally) -> Iterator[World]:
    """The world of a walk before its first step."""
    number = next(_numbers)
    folder = templates.folder / f"world{number}"
    made = World(templates, walk, folder, f"fr{number}", tally)
    try:
        made.open()
        yield made
    finally:
        made.close()


class World:
    """Base tables and caches, and what can be done with them."""

    def __init__(
        self, templates: Templates, walk: Walk, folder: Path, schema: str, tally: Tally
    ) -> None:
        self.walk = walk
        self.layout = LAYOUTS[walk.layout]
        self.tally = tally
        self.folder = folder
        self.schema = schema
        self.spark = quick_session(templates.spark)
        self.plain = quick_session(templates.spark)
        self.judge = quick_session(templates.spark)
        self.drawn = templates.drawn
        self._templates = templates
        self._moved: set[str] = set()
        self._url = f"sqlite:///{folder / 'metastore.db'}"
        self._changes: dict[str, set[str]] = {spec.shape: set() for spec in walk.caches}
        self._specs = {spec.shape: spec for spec in walk.caches}

    # -- beginning and end ----------------------------------------------------------------------

    def open(self) -> None:
        """Clone the tables, enable the session, create and refresh the caches."""
        self._bounds = incremental.FEW_ROWS, incremental.MOST_PARTIALS, incremental.FEED_READS
        if self.walk.few_rows is not None:
            incremental.FEW_ROWS = self.walk.few_rows  # type: ignore[misc]
            # of the few groups here a change meets most: by the product's own share of them nearly
            # every set would be written anew
            incremental.MOST_PARTIALS = MOST_PARTIALS  # type: ignore[misc]
            # where a Change Data Feed is kept it is read: its files are no shorter than the others
            incremental.FEED_READS = 0.0  # type: ignore[misc]
        source = self._templates.tables(self.layout)
        shutil.copytree(source, self.folder / "tables")
        shutil.copyfile(self._templates.metastore, self.folder / "metastore.db")
        self.plain.sql(f"CREATE SCHEMA {self.schema} LOCATION '{self.folder / 'tables'}'")
        for session in (self.spark, self.plain):
            session.sql(f"USE {self.schema}")
        for table in self.layout.tables:
            place = self.folder / "tables" / table
            self.plain.sql(f"CREATE TABLE {table} USING delta LOCATION '{place}'")
        for name, text in VIEWS.items():
            self.plain.sql(f"CREATE VIEW {name} AS {named(text)}")
        self._moved.update(self.layout.tables)
        self.spark.conf.set("spark.cachemgr.metastore.url", self._url)
        self.spark.conf.set("spark.cachemgr.location", str(self.folder / "caches"))
        self.spark.conf.set("spark.cachemgr.mode", "failFast")
        self.spark.conf.set("spark.cachemgr.pin.enabled", str(self.walk.pins).lower())
        if not self.walk.tails:
            self.spark.conf.set("spark.cachemgr.freshHits.tailMaxBytes", "0")
        self.spark.conf.set("spark.cachemgr.decisionLog.enabled", "false")
        for key, value in WHOLE_TEXTS.items():
            self.spark.conf.set(key, value)
        cachemgr.enable(self.spark)
        self._tails = api._of(self.spark).session.application.tails
        # else each answer would come from a tail
        self._tails.tempo = Tempo(rest=0.0, most=0.0, pause=0.0, keep=0.0)
        self.metastore = open_metastore(self._url)
        if self.layout.joins:
            for name, text in JOINS.items():
                self.spark.sql(f"CREATE RECORD PRESERVING JOIN {name} AS {text}")
        for spec in self.walk.caches:
            self.spark.sql(SHAPES[spec.shape].create(spec.freshness))
            self.spark.sql(f"REFRESH RELATIONAL CACHE {spec.shape}")

    def close(self) -> None:
        """Give everything back."""
        if hasattr(self, "_bounds"):
            few, most, reads = self._bounds
            incremental.FEW_ROWS, incremental.MOST_PARTIALS = few, most  # type: ignore[misc]
            incremental.FEED_READS = reads  # type: ignore[misc]
        with contextlib.suppress(Exception):
            cachemgr.disable(self.spark)
        if hasattr(self, "metastore"):
            self.metastore.close()
        with contextlib.suppress(Exception):
            self.plain.sql(f"DROP SCHEMA {self.schema} CASCADE")
        shutil.rmtree(self.folder, ignore_errors=True)

    # -- what the walk looks at -----------------------------------------------------------------

    def columns(self, table: str) -> dict[str, str]:
        """A table's columns now, with their types; none if it cannot be read."""
        with contextlib.suppress(PySparkException):
            return {n: t.upper() for n, t in self.plain.table(table).dtypes}
        return {}

    def wanted(self, text: str, action: str = "collect") -> Answer:
        """What Spark says without us of a query over the tables as they are.

        Each state of a table is read once, by a scan without filter, and kept as rows in the plan:
        to ask Delta again for each query would take most of the time of a run.
        """
        for table in sorted(self._moved):
            rows = self.plain.table(table).toArrow()
            self.judge.createDataFrame(rows).createOrReplaceTempView(table)
        if self._moved:
            for name, definition in VIEWS.items():
                try:
                    self.judge.sql(f"CREATE OR REPLACE TEMP VIEW {name} AS {named(definition)}")
                except AnalysisException:  # a column that it reads is called something else now
                    self.judge.catalog.dropTempView(name)
        self._moved.clear()
        return answer(self.judge, text, action)

    # -- steps ----------------------------------------------------------------------------------

    def do(self, step: Step, *, check: bool = True) -> Done:
        """Carry a step out.

        Args:
            step: The step.
            check: Whether what it shows is judged; a shortened walk judges its last step only.
        """
        match step:
            case Change():
                done = self._change(step)
            case Settings():
                done = self._settings(step)
            case Declare():
                done = self._declare(step)
            case Refresh():
                done = self._refresh(step, check)
            case Query():
                done = self._query(step, check)
        return done

    def _change(self, step: Change) -> Done:
        session = self.spark if step.enabled else self.plain
        began = False
        before = self._versions([step.table])
        for statement in step.statements:
            try:
                if statement.startswith("!"):
                    carry_out(statement, self.folder / "tables", self.plain)
                else:
                    session.sql(statement).collect()
                began = True
            except NotApplicable as error:
                return Done(began, note=str(error))
            except CacheManagerError as error:
                return Done(finding=Finding("change", f"raises {one_line(error)}"))
            except (PySparkException, Py4JJavaError) as error:
                # a REPLACE may have been committed before it failed
                began = began or self._versions([step.table]) != before
                self._touched(step, began)
                return Done(began, note=one_line(error))
        # an UPDATE of no row makes no commit; a gesture may leave the number as it was
        by_hand = any(statement.startswith("!") for statement in step.statements)
        self._touched(step, by_hand or self._versions([step.table]) != before)
        return Done()

    def _touched(self, step: Change, began: bool) -> None:
        if not began:
            return
        self._moved.add(step.table)
        kind = step.kind if step.table == "sales" else f"dimension: {step.kind}"
        for name, kinds in self._changes.items():
            if step.table in SHAPES[name].tables:
                kinds.add(kind)

    def _settings(self, step: Settings) -> Done:
        spec = self._specs[step.cache]
        shape = SHAPES[step.cache]
        text = (
            f"ALTER RELATIONAL CACHE {step.cache} {step.words}"
            if step.words
            else shape.create(spec.freshness, replace=True)
        )
        try:
            self.spark.sql(text).collect()
        except (CacheManagerError, PySparkException) as error:
            return Done(False, note=one_line(error))
        return Done()

    def _declare(self, step: Declare) -> Done:
        began = False
        for statement in step.statements:
            try:
                self.spark.sql(statement).collect()
                began = True
            except (CacheManagerError, PySparkException) as error:
                return Done(began, note=one_line(error))
        return Done()

    def _refresh(self, step: Refresh, check: bool) -> Done:
        shape = SHAPES[step.cache]
        text = f"REFRESH RELATIONAL CACHE {step.cache} {step.mode}".rstrip()
        kinds = self._changes[step.cache]
        change = NONE if not kinds else min(kinds) if len(kinds) == 1 else MIXED
        try:
            self.spark.sql(text).collect()
        except CacheManagerError as error:
            self.tally.ways[f"{error.code} after {change}"] += 1
            return Done(finding=self._refused(shape, error) if check else None, note=str(error))
        except Exception as error:
            return Done(finding=Finding("refresh", f"{text}: {one_line(error)}"))
        cache = self.metastore.caches.named(self.schema, step.cache)
        assert cache is not None
        run = self.metastore.refreshes.of(cache.id, limit=1)[0]
        way = run.state.value if run.state.value == "UNCHANGED" else run.mode
        self.tally.ways[f"{way} after {change}"] += 1
        if run.account.code:
            self.tally.counts[f"full: {run.account.code}"] += 1
        self._changes[step.cache] = set()
        return Done(finding=self._holds(shape, f"{text} ({way})") if check else None)

    def _refused(self, shape: Shape, error: CacheManagerError) -> Finding | None:
        if str(error.code) in _ALLOWED_CODES:
            return None
        wanted = self.wanted(named(shape.definition))
        if wanted.error is not None:
            return None
        return Finding("refresh", f"the definition runs, its refresh does not: {one_line(error)}")

    def _holds(self, shape: Shape, told: str) -> Finding | None:
        """The published rows are those of the definition at the versions that they name, and at
        those that stand now."""
        cache = self.metastore.caches.named(self.schema, shape.name)
        snapshot = None if cache is None else self.metastore.snapshots.published(cache.id)
        if cache is None or snapshot is None:
            return Finding("refresh", f"{told}: nothing is published")
        got = rows_answer(published_rows(self.plain, cache, snapshot))
        versions = base_versions(snapshot)
        text = named(shape.definition)
        compared = [("now", text, self.wanted(text))]
        if versions != self._versions(versions):
            text = at_versions(shape.definition, versions)
            compared += [(f"at {dict(versions)}", text, answer(self.plain, text))]
        for when, text, wanted in compared:
            if wanted.error is not None and when != "now":
                self.tally.counts["states that are gone"] += 1
                continue
            found = difference(got, wanted)
            if found:
                return Finding("refresh", f"{told}: its rows {when}: {found}\n  {text}")
        return None

    def _versions(self, tables: Iterable[str]) -> dict[str, int]:
        places = {str(self.folder / "tables" / table): table for table in tables}
        found = current_versions(self.plain, places).values()
        return {t.name: t.version for t in found if isinstance(t, TableAt)}

    # -- queries --------------------------------------------------------------------------------

    def _query(self, step: Query, check: bool) -> Done:
        done, fresh = self._asked(step, check)
        if done.finding is not None or not fresh or not self.walk.tails:
            return done
        deadline = time.monotonic() + _TAIL_SECONDS
        while self._tails.is_making and time.monotonic() < deadline:
            time.sleep(0.01)
        return self._asked(step, check)[0]

    def _asked(self, step: Query, check: bool) -> tuple[Done, bool]:
        """What came of a query, and whether it was a fresh hit."""
        with having(dict(step.settings), self.spark) as taken:
            return self._asked_so(step, check, taken)

    def _asked_so(self, step: Query, check: bool, taken: Mapping[str, str]) -> tuple[Done, bool]:
        text, frames = named(step.text), list[Any]()
        explained = self._told(text) if check and zlib.crc32(text.encode()) % 4 == 0 else None
        before = cachemgr.counters(self.spark)
        got = answer(self.spark, text, step.action, frames)
        after = cachemgr.counters(self.spark)
        names = ("hits", "fresh_hits", "tail_hits")
        hit, fresh, tail = (after.get(n, 0) > before.get(n, 0) for n in names)
        if not check:
            return Done(), fresh
        if got.error is None and step.action == "collect":
            counted = grown(before, after)
            places = str(self.folder / "caches"), str(self.folder / "tables")
            wrong = wrong_of_the_plan(frames[0], counted, *places)
            if explained is not None:
                self.tally.counts["explained"] += 1
                wrong = wrong or wrong_of_explain(explained, counted)
            if wrong:
                return Done(finding=Finding("told", f"with {taken}: {wrong}\n  {text}")), fresh
        if taken:
            self.tally.counts["in other settings"] += 1
            if not hit and "SETTINGS_DIFFER" in self._explained(text):
                told = f"a miss for {taken}\n  {text}\n{self._explained(text)}"
                return Done(finding=Finding("settings", told)), fresh
        counts = self.tally.counts
        counts["tail hits"] += tail
        counts["queries"] += 1
        counts["fresh hits" if fresh else "hits" if hit else "misses"] += 1
        if hit or fresh:
            self.tally.shapes[step.shape] += 1
        wanted = self.wanted(text, step.action)
        found = difference(got, wanted, ordered=step.ordered)
        if found:
            # the judge has the rows in another order, by which an AVG of great numbers is rounded;
            # a hit may read a part of its answer from the base tables too
            found = difference(got, answer(self.plain, text, step.action), ordered=step.ordered)
        if not found or (hit and self._lags(step, text, got)):
            return Done(), fresh
        kind = "tail hit" if tail else "fresh hit" if fresh else "hit" if hit else "miss"
        why = self._explained(text)
        return Done(finding=Finding("query", f"{kind}: {found}\n  {text}\n{why}")), fresh

    def _lags(self, step: Query, text: str, got: Answer) -> bool:
        """Whether an answer is that of an earlier state, which some cache may give."""
        # as count() asks, of which a cache may know more than of the rows
        asked = f"SELECT COUNT(*) FROM ({text})" if step.action == "count" else text
        try:
            names = cachemgr.explain(self.spark, asked).caches
        except (CacheManagerError, PySparkException):
            return False
        lost = False
        for name in names:
            cache = self.metastore.caches.named(self.schema, name.rpartition(".")[2].strip("`"))
            if cache is None or cache.spec.freshness.kind.value == "STRICT":
                continue
            snapshot = self.metastore.snapshots.published(cache.id)
            assert snapshot is not None
            read = tables_of(step.text)
            versions = {t: v for t, v in base_versions(snapshot).items() if t in read}
            then = answer(self.plain, at_versions(step.text, versions), step.action)
            lost |= then.error is not None
            if then.error is None and not difference(got, then, ordered=step.ordered):
                self.tally.counts["lagging hits"] += 1
                return True
        if lost:
            self.tally.counts["states that are gone"] += 1
        return lost

    def _told(self, text: str) -> Any:
        """What EXPLAIN REWRITE says of a query; None where it cannot run."""
        with contextlib.suppress(CacheManagerError, PySparkException, Py4JJavaError):
            return cachemgr.explain(self.spark, text)
        return None

    def _explained(self, text: str) -> str:
        try:
            return "\n".join(
                f"  | {line}" for line in cachemgr.explain(self.spark, text).text().splitlines()
            )
        except Exception as error:
            return f"  | {one_line(error)}"

    def specs(self) -> dict[str, CacheSpec]:
        """The caches by name."""
        return self._specs
