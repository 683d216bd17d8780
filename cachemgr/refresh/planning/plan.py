"""What a refresh is planned by, and the plan: plain data, as the run stores it and EXPLAIN REFRESH
shows it. `planner` makes the one from the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from cachemgr.base_state import TableAt
from cachemgr.delta.changes import Changes
from cachemgr.delta.commits import Head
from cachemgr.metastore.records import SnapshotTableRecord
from cachemgr.refresh.by_change.adopt import Written
from cachemgr.refresh.by_change.incremental import Stored
from cachemgr.refresh.by_change.past_runs import PastRun, Weighed
from cachemgr.refresh.by_change.why_full import FullCode, WhyFull
from cachemgr.refresh.planning.steps import SourceOffer, Stage, WriteFull
from cachemgr.vocabulary import RefreshMode
from matcher.model.ir import CachePlan, MatchOptions
from matcher.model.message import NOTHING, Kind, Message

UNCHANGED, RESTORE, ADOPT, JOINS = "UNCHANGED", "RESTORE", "ADOPT", "JOINS"
# The ways of adding a delta: rows as they are, partial rows of groups, sets written anew.
APPEND, PARTIALS, REPLACE = "APPEND", "PARTIALS", "REPLACE"
DELTA_WAYS: Final = (APPEND, PARTIALS, REPLACE)
INCREMENTAL: Final = RefreshMode.INCREMENTAL.value


@dataclass(frozen=True, slots=True)
class Published:
    """The snapshot that serves now."""

    refresh_id: str
    cache_version: int
    spec: str
    tables: tuple[SnapshotTableRecord, ...]
    stored: Stored | None = None
    sparks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RefreshRequest:
    """All that decides how a cache is refreshed.

    Args:
        cache: Shown name of the cache.
        mode: What was asked for: a `RefreshMode`.
        plan: The cache's plan as its definition resolves now.
        spec: Fingerprint of plan, settings and layout; see `fingerprint.spec_hash`.
        tables: The base tables' versions now, all current at one moment.
        published: The snapshot that serves now, None before the first one.
        head: The newest commit of the cache's table, None if there is no table.
        adoptable: Refresh id of the cache's last run if that run ended without publishing.
        written: The base tables of that run's commit, if it is the newest one; None where they
            cannot be told.
        properties_changed: The cache's table lacks a property that it should have.
        joins_known: The published snapshot says of every declared join whether it held.
        sources: The caches that it is defined over, nearest first.
        damage: What is wrong with the files that serve now; empty if nothing is.
        changes: What happened since to the rows of base tables that moved, by location; none of
            those that did not, or were created again, or that nobody looked at.
        gone: Appended files that are not there any more.
        repartitioned: The base tables that are partitioned otherwise than files that went.
        feeds: The base tables whose Change Data Feed tells what changed, by location.
        sizes: The bytes of the base tables now, by location.
        options: The settings that the cache is refreshed under.
        has_failed: The last refresh added a delta, and failed.
        refused: Why this run gave up to add a delta; None if it did not.
        past: The cache's last refreshes that computed something, newest first.
        spark: The minor of Spark that would compute; None where that does not matter.
    """

    cache: str
    mode: str
    plan: CachePlan
    spec: str
    tables: tuple[TableAt, ...]
    published: Published | None
    head: Head | None
    adoptable: str | None = None
    written: Written | None = None
    properties_changed: bool = False
    joins_known: bool = True
    sources: tuple[SourceOffer, ...] = ()
    damage: str = ""
    changes: Mapping[str, Changes] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    feeds: frozenset[str] = frozenset()
    repartitioned: frozenset[str] = frozenset()
    sizes: Mapping[str, int] = field(default_factory=dict)
    options: MatchOptions = field(default_factory=MatchOptions)
    has_failed: bool = False
    refused: WhyFull | None = None
    past: tuple[PastRun, ...] = ()
    spark: str | None = None


@dataclass(frozen=True, slots=True)
class RefreshPlan:
    """How one refresh is done and why.

    Args:
        cache: Shown name of the cache.
        mode: The way taken: `FULL`, `APPEND`, `PARTIALS`, `REPLACE`, `UNCHANGED`, `RESTORE`,
            `JOINS` or `ADOPT`.
        reason: Why this way, for people.
        stages: The steps in order.
        code: Why it is `FULL`; None for the other ways.
        estimate: What it was expected to cost, and the other way, in bytes read; None where there
            was no choice.
        detail: Of what table or part of the definition `code` speaks, for people; `NOTHING`
            without it.
        weighed: The two ways by what past runs took; None where there was no choice.
    """

    cache: str
    mode: str
    reason: Message
    stages: tuple[Stage, ...]
    code: FullCode | None = None
    estimate: tuple[float, float] | None = None
    detail: Message = NOTHING
    weighed: Weighed | None = None

    def describe(self, hidden: tuple[Kind, ...] = ()) -> tuple[tuple[int, str, str], ...]:
        """Rows for EXPLAIN REFRESH: number, stage, detail; row 0 is the way taken and its
        reason.

        Args:
            hidden: What the reader may not see.
        """
        rows = [(self.mode, self.reason), *((s.name, s.detail) for s in self.stages)]
        return tuple((i, name, str(text.without(hidden))) for i, (name, text) in enumerate(rows))

    def to_json(self) -> list[dict[str, str]]:
        """The stages as the run's row stores them."""
        return [
            {"stage": s.name, "detail": str(s.detail)}
            | ({"source": s.source.cache_id} if isinstance(s, WriteFull) and s.source else {})
            for s in self.stages
        ]
