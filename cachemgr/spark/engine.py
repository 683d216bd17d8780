"""The service's `Engine` on a Spark session."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cachemgr.base_state import BaseState, TableAt, Unreadable, counted, millis
from cachemgr.config.match_options import match_options
from cachemgr.config.result_settings import fingerprint, result_settings
from cachemgr.ddl.statements import ExplainRewrite, SelectText
from cachemgr.delta.changes import ChangeKind
from cachemgr.delta.hadoop_files import files_of
from cachemgr.delta.storage import Files
from cachemgr.delta.tables import (
    base_tables,
    current_states,
    current_versions,
    first_commit_after,
    refuse_inside_table,
    refuse_unwritable,
    with_columns,
)
from cachemgr.errors import DefinitionError, ErrorCode, JoinValidationError
from cachemgr.jvm.session_conf import explicit_settings
from cachemgr.metastore import Metastore
from cachemgr.metastore.records import CacheRecord, JoinRecord, RefreshRunRecord
from cachemgr.refresh.by_change.ways import open_ways
from cachemgr.refresh.run import explain_refresh, run_refresh
from cachemgr.refresh.validate_join import validate_join
from cachemgr.serving.explain import Explanation
from cachemgr.spark.definitions.analysis import analyse_definition, refuse_by_catalog
from cachemgr.spark.definitions.nested_caches import is_known
from cachemgr.spark.definitions.replan import replan
from cachemgr.spark.plans import capture_query
from cachemgr.spark.session import CacheSession
from cachemgr.spark.spark_errors import code_and_line
from cachemgr.spark.texts import is_view, named_in, readable, refuse_reach
from cachemgr.sparks import minor_of
from cachemgr.statements.columns import STEPS
from cachemgr.statements.engine import BlockDefinition, Definition, JoinVerdict
from cachemgr.statements.results import ResultRows, table
from cachemgr.statements.status import Moved
from matcher.catalyst.reader import definition_block
from matcher.model.errors import MatcherError
from matcher.model.ir import CachePlan
from matcher.model.message import Kind


class SparkEngine:
    """What statements need of one Spark session.

    Args:
        spark: The session.
        session: What it decides by.
        metastore: Where its caches are recorded.
        explain: EXPLAIN REWRITE of a text, with the files or without.
        now: The clock.
    """

    def __init__(
        self,
        spark: SparkSession,
        session: CacheSession,
        metastore: Metastore,
        explain: Callable[[str, bool], Explanation],
        now: Callable[[], datetime],
    ) -> None:
        self._session = session
        self._metastore = metastore
        self._spark = spark
        self._explain = explain
        self._now = now

    def current(self) -> tuple[str, str]:
        """The session's current catalog and schema."""
        catalog = self._spark.catalog
        return catalog.currentCatalog(), catalog.currentDatabase()

    def user(self) -> str:
        """Who runs the session."""
        return self._session.principal

    def define(self, name: str, select: SelectText) -> Definition:
        """Analyse a cache's SELECT.

        Raises:
            DefinitionError: Names the construct, its place, and what to do.
        """
        settings = result_settings(explicit_settings(self._spark))
        find = self._metastore.caches.named
        analysis = analyse_definition(
            self._spark,
            name,
            select,
            find,
            lambda cache: self._same_settings(name, settings, cache),
        )
        catalog, schema = self.current()
        return BlockDefinition(
            analysis.plan,
            analysis.columns,
            settings,
            catalog,
            schema,
            analysis.reads,
            minor_of(self._spark.version),
            analysis.why_not_ordered,
        )

    def _same_settings(self, name: str, settings: Mapping[str, str], source: CacheRecord) -> None:
        """A definition and the caches that it names are one text: it is read under one session's
        settings."""
        differ = self._session.comparer.compare(fingerprint(settings), fingerprint(source.settings))
        if differ is not None:
            raise DefinitionError(
                ErrorCode.SETTINGS_DIFFER,
                f"cache {name} names cache {source.qualified_name}, which was created under other "
                f"settings: {differ.detail}; {differ.suggestion}",
            )

    def resolve_table(self, name: str) -> TableAt:
        """The Delta table that a name stands for, as it is now, with its columns.

        Raises:
            DefinitionError: There is no such table, or it is a view or no Delta table.
        """
        # its columns are asked for below: those of CHAR are padded where they are selected
        text = f"SELECT 1 FROM {name}"
        try:
            with readable(self._spark, name):
                named = named_in(self._spark, text)
                refuse_reach(name, named, lambda parts: is_known(self._spark, parts))
                captured = capture_query(self._spark, text)
        except PySparkException as error:
            raise DefinitionError(
                (error.getCondition() or "NOT_ANALYSABLE").split(".")[0],
                f"{name} cannot be read: {code_and_line(error)[1]}; name a Delta table that exists",
            ) from error
        refuse_by_catalog(name, captured.tables)
        resolved = [table.at(table.state) for table in captured.tables]
        found = resolved[0] if len(resolved) == 1 else None
        whole = _whole_table(captured.document) and not is_view(self._spark, name)
        if not isinstance(found, TableAt) or not whole:
            raise DefinitionError(
                ErrorCode.NOT_A_DELTA_TABLE,
                f"{name} is a view or no Delta table: name the Delta tables themselves",
            )
        return with_columns(self._spark, found)

    def base_tables(self, names: Mapping[str, str]) -> tuple[TableAt, ...]:
        """The tables at these locations as they are now, with their columns."""
        return base_tables(self._spark, names)

    def validate(self, join: JoinRecord) -> JoinVerdict:
        """Check a record-preserving join at the tables' versions of now, under the session's
        settings.

        Raises:
            JoinValidationError: A table is gone.
        """
        sides = (join.left, join.right)
        states = current_versions(self._spark, {side.location: side.name for side in sides})
        versions: dict[str, int] = {}
        for side in sides:
            state = states[side.location]
            if isinstance(state, Unreadable):
                raise JoinValidationError(
                    ErrorCode.TABLE_UNREADABLE,
                    f"record-preserving join {join.name}: {side.name} at {side.location} cannot be "
                    f"read: {state.why}",
                )
            if state is None:
                raise JoinValidationError(
                    ErrorCode.TABLE_GONE,
                    f"record-preserving join {join.name}: there is no Delta table {side.name} at "
                    f"{side.location} any more: drop the join, or restore the table",
                )
            versions[side.location] = state.version
        under = result_settings(explicit_settings(self._spark))
        check = validate_join(
            self._spark,
            join.left.location,
            join.right.location,
            join.keys,
            versions,
            under,
            told=join.name,
            names=(join.left.name, join.right.name),
            finds_each=join.finds_each,
        )
        seen = {place: s.state for place, s in states.items() if isinstance(s, TableAt)}
        return JoinVerdict(
            str(check.message(join.name, join.left.name, join.right.name, join.keys)), seen, under
        )

    def refuse_place(self, place: str, what: str) -> None:
        """Refuse a place that a cache's table cannot lie at."""
        with readable(self._spark, what):
            refuse_inside_table(self._spark, place, what)
            refuse_unwritable(self._spark, place, what)

    def table_states(self, locations: Sequence[str]) -> Mapping[str, BaseState | Unreadable | None]:
        """What stands at each place now, None where there is no table."""
        return current_states(self._spark, locations) if locations else {}

    def moved(self, tables: Mapping[str, BaseState]) -> Mapping[str, Moved]:
        """What happened to tables since they were in these states, and their columns now."""
        changes = self._session.histories.changes
        found = base_tables(self._spark, {place: place for place in tables})
        return {t.location: Moved(t, changes(t, tables[t.location])) for t in found}

    def lag_seconds(self, tables: Mapping[str, BaseState], read_at: datetime) -> int | None:
        """How long ago the first commit after these versions was that changed a row, 0 if there is
        none."""
        now, read = millis(self._now()), millis(read_at)
        lags = []
        for place, state in tables.items():
            assert state.version is not None
            try:
                first = self._first_change(place, state)
            except Exception:  # a table that is gone has no lag; DESCRIBE must still answer
                return None
            lags.append(0 if first is None else (now - counted(first, read, now)) // 1000)
        return max(lags, default=0)

    def _first_change(self, place: str, since: BaseState) -> int | None:
        """When the first commit was made that changed a row; of any commit where the log does not
        tell what it did."""
        assert since.version is not None
        moved = self.moved({place: since}).get(place)
        if moved is not None and moved.changes.kind is ChangeKind.SAME:
            return None
        first = None if moved is None else moved.changes.first_change_ms
        return first or first_commit_after(self._spark, place, since.version)

    def refresh(self, cache: CacheRecord, mode: str | None) -> RefreshRunRecord:
        """Refresh a cache.

        Raises:
            RefreshError: It failed; the snapshot before keeps serving.
        """
        return run_refresh(
            self._spark,
            self._metastore,
            cache.id,
            mode=mode,
            # leases are compared with those of other machines: by the metastore's clock
            now=lambda: None,
            holder=f"{socket.gethostname()}:{os.getpid()}",
            replan=lambda: replan(self._spark, cache, self._metastore),
            drop_grace_seconds=self._grace(),
        )

    def explain_refresh(
        self, cache: CacheRecord, mode: str | None, hidden: tuple[Kind, ...] = ()
    ) -> ResultRows:
        """What a refresh would do, stage by stage."""
        plan = explain_refresh(
            self._spark,
            self._metastore,
            cache.id,
            mode=mode,
            now=self._now,
            replan=lambda: replan(self._spark, cache, self._metastore),
            drop_grace_seconds=self._grace(),
        )
        return table(STEPS, plan.describe(hidden))

    def refresh_ways(
        self, plan: CachePlan, settings: Mapping[str, str]
    ) -> Sequence[tuple[str, str, str]]:
        """Of a cache that is not refreshed yet, which ways its refreshes will have."""
        found = open_ways(plan, match_options(settings))
        return [(ways.table, ways.change.value, ways.told()) for ways in found]

    def explain_rewrite(self, statement: ExplainRewrite) -> ResultRows:
        """Which cache would answer a query, or why none."""
        explanation = self._explain(statement.query.text, statement.files)
        return explanation.json() if statement.format_json else explanation.rows()

    def files(self, location: str) -> Files:
        """The storage of a place."""
        return files_of(self._spark)(location)

    def _grace(self) -> int:
        return self._session.settings(explicit_settings(self._spark)).drop_grace_seconds


def _whole_table(document: dict[str, Any]) -> bool:
    """True if the plan reads one table, and all rows of it."""
    try:
        block = definition_block(document)
    except MatcherError:
        return False
    plain = not block.predicates and not block.is_aggregate and not block.order_by
    return plain and len(block.relations) == 1
