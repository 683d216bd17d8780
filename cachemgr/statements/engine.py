"""What the service asks of Spark, as a protocol, so that the service itself needs none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeAlias

from cachemgr.base_state import BaseState, TableAt, Unreadable
from cachemgr.ddl.statements import ExplainRewrite, SelectText
from cachemgr.delta.storage import Files
from cachemgr.metastore.records import (
    CacheRecord,
    ColumnRecord,
    JoinRecord,
    RefreshRunRecord,
)
from cachemgr.sparks import BEFORE
from cachemgr.statements.results import ResultRows
from cachemgr.statements.status import Moved
from matcher.model.ir import CachePlan
from matcher.model.message import Kind


@dataclass(frozen=True)
class BlockDefinition:
    """A cache's SELECT, analysed, that is one block: it joins, filters and groups.

    Args:
        plan: What the cache stores.
        columns: Its visible columns.
        settings: The session's settings that can change rows.
        catalog: The current catalog under which names were resolved.
        schema: The current schema likewise.
        reads: Ids of the caches that it names.
        spark: The minor of the Spark that has analysed it.
        why_not_ordered: Why its table does not keep the order of its ORDER BY; empty if it does, or
            there is none.
    """

    plan: CachePlan
    columns: tuple[ColumnRecord, ...]
    settings: Mapping[str, str]
    catalog: str
    schema: str
    reads: tuple[str, ...] = ()
    spark: str = BEFORE
    why_not_ordered: str = ""


# What a SELECT may be, analysed. A further kind is a further member: whoever asks for the plan of
# a block is told by mypy then, and `tests/test_who_asks_for_plans.py` lists those who ask for one.
Definition: TypeAlias = BlockDefinition


@dataclass(frozen=True)
class JoinVerdict:
    """What a validation of a record-preserving join found.

    Args:
        message: What is wrong; empty if it holds.
        versions: Location to the state that was read.
        under: The settings under which it was read.
    """

    message: str
    versions: Mapping[str, BaseState]
    under: Mapping[str, str]


class Engine(Protocol):
    """Spark, as far as the statements need it."""

    def current(self) -> tuple[str, str]:
        """The session's current catalog and schema."""
        ...

    def user(self) -> str:
        """Who runs the session."""
        ...

    def define(self, name: str, select: SelectText) -> Definition:
        """Analyse a cache's SELECT; raises DefinitionError."""
        ...

    def resolve_table(self, name: str) -> TableAt:
        """The Delta table that a name stands for, as it is now, with its columns; raises
        DefinitionError."""
        ...

    def base_tables(self, names: Mapping[str, str]) -> tuple[TableAt, ...]:
        """The tables at these locations as they are now, with their columns.

        Args:
            names: Location to the table's name in the catalog.
        """
        ...

    def validate(self, join: JoinRecord) -> JoinVerdict:
        """Check a record-preserving join at the tables' versions of now."""
        ...

    def refuse_place(self, place: str, what: str) -> None:
        """Refuse a place that a cache's table cannot lie at.

        Args:
            place: The folder.
            what: Whose it is, for the message.

        Raises:
            DefinitionError: There is no such storage, it lies in a Delta table's folder, or nothing
                can be written there.
        """
        ...

    def table_states(self, locations: Sequence[str]) -> Mapping[str, BaseState | Unreadable | None]:
        """What stands at each place now, None where there is no table."""
        ...

    def moved(self, tables: Mapping[str, BaseState]) -> Mapping[str, Moved]:
        """What happened to tables since they were in these states, and their columns now; those
        that are gone are left out.

        Args:
            tables: Location to a state of it, of the table that is there now.
        """
        ...

    def lag_seconds(self, tables: Mapping[str, BaseState], read_at: datetime) -> int | None:
        """How long ago the first commit after these versions was that changed a row, 0 if there is
        none.

        Args:
            tables: Location to the state that a snapshot read.
            read_at: When it read them: no commit after them is older.
        """
        ...

    def refresh(self, cache: CacheRecord, mode: str | None) -> RefreshRunRecord:
        """Refresh a cache; raises RefreshError."""
        ...

    def explain_refresh(
        self, cache: CacheRecord, mode: str | None, hidden: tuple[Kind, ...] = ()
    ) -> ResultRows:
        """What a refresh would do, without what is hidden from who asks."""
        ...

    def refresh_ways(
        self, plan: CachePlan, settings: Mapping[str, str]
    ) -> Sequence[tuple[str, str, str]]:
        """Of a cache that is not refreshed yet, which ways its refreshes will have: table, kind of
        change, and the ways in words."""
        ...

    def explain_rewrite(self, statement: ExplainRewrite) -> ResultRows:
        """Which cache would answer a query, or why none."""
        ...

    def files(self, location: str) -> Files:
        """The storage of a place."""
        ...
