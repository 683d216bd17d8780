"""What is known of a cache, gathered for who asks: the metastore's records as they may be told, and
where the base tables stand now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from cachemgr.access.redaction import Discretion
from cachemgr.base_state import BaseState, Unreadable
from cachemgr.metastore import Metastore
from cachemgr.metastore.masked import masked_cache
from cachemgr.metastore.records import (
    CacheRecord,
    GroupingSetRecord,
    RefreshRunRecord,
    SnapshotRecord,
)
from cachemgr.statements.engine import Engine
from cachemgr.statements.status import Looked, Moved, Status, status_of
from matcher.model.codec import decode_plan
from matcher.model.ir import CachePlan
from matcher.model.message import SECRET


@dataclass(frozen=True)
class CacheFacts:
    """A cache with all that is known of it; `over` are the caches that its definition names,
    `columns` the schemas of its base tables now, by location, as far as they were looked at.
    `may_use` says whether who asks may be answered from it, `may_see` whether he may see what it
    holds; `granted_to` and `owner` are as he may be told."""

    cache: CacheRecord
    sets: tuple[GroupingSetRecord, ...]
    last: RefreshRunRecord | None
    published: SnapshotRecord | None
    looked: Looked
    granted_to: str = "everybody"
    owner: str = ""
    lag_seconds: int | None = None
    over: Sequence[str] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    may_use: bool = True
    may_see: bool = True

    @property
    def status(self) -> Status:
        """Its states."""
        return status_of(self.cache, self.last, self.published, self.looked)

    @property
    def plan(self) -> CachePlan | None:
        """Its plan as published, else as created; None if another version stored it."""
        run = self.published.run if self.published else None
        payload = run.plan if run is not None and run.plan is not None else self.cache.plan
        try:
            return None if payload is None else decode_plan(dict(payload))
        except (ValueError, KeyError, TypeError):
            return None


def facts_of(
    metastore: Metastore, engine: Engine, cache: CacheRecord, told: Discretion, *, lag: bool = False
) -> CacheFacts:
    """All that is known of a cache.

    Args:
        metastore: Where it is recorded.
        engine: Looks at its base tables.
        cache: The cache.
        told: What may be told to whoever asks.
        lag: Also say how far it is behind, and what columns its base tables have.
    """
    published = metastore.snapshots.published(cache.id)
    runs = metastore.refreshes.of(cache.id, limit=1)
    snapshot = published.states if published else {}
    places = list(snapshot) or [str(r[0]) for r in (cache.plan or {}).get("relations", ())]
    names = {t.location: t.name for t in (published.tables if published and lag else ())}
    may_use = told.may_know(cache)
    return CacheFacts(
        cache=masked_cache(cache),
        sets=told.sets(metastore.caches.grouping_sets(cache.id), cache),
        last=told.run(runs[0], cache) if runs else None,
        published=None if published is None else told.snapshot(published, cache),
        looked=_look(engine, places, snapshot, may_use),
        granted_to=told.grantees(cache),
        owner=told.owner(cache),
        lag_seconds=engine.lag_seconds(snapshot, published.read_at)
        if lag and published and snapshot
        else None,
        over=tuple(metastore.caches.names(cache.depends_on).values()),
        columns={t.location: t.columns for t in engine.base_tables(names)},
        may_use=may_use,
        may_see=told.may_see(cache),
    )


def _look(
    engine: Engine, places: Sequence[str], snapshot: Mapping[str, BaseState], may_count: bool
) -> Looked:
    """The base tables now; what happened to those that moved is looked up in their logs."""
    found = engine.table_states(places)
    unread = {p: state.why for p, state in found.items() if isinstance(state, Unreadable)}
    states = {p: s for p, s in found.items() if not isinstance(s, Unreadable)}
    moved = {
        place: then
        for place, then in snapshot.items()
        if (now := states.get(place)) is not None
        and now.table_id == then.table_id
        and now.version != then.version
    }
    changes = engine.moved(moved) if moved else {}
    if not may_count:
        changes = {place: _uncounted_move(one) for place, one in changes.items()}
    return Looked(states, changes, unread=unread)


def _uncounted_move(moved: Moved) -> Moved:
    """What happened to a base table, without the number of rows and files."""
    return replace(
        moved, changes=replace(moved.changes, detail=moved.changes.detail.without(SECRET))
    )
