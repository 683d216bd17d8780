"""Which layout of a cache's table the filters that the log saw speak for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from cachemgr.ddl.names import shown_name
from cachemgr.ddl.render import render
from cachemgr.metastore.masked import masked_cache
from cachemgr.metastore.records import CacheRecord, SnapshotRecord
from cachemgr.metastore.store import Metastore
from cachemgr.statements.convert import create_statement
from cachemgr.statements.create_cache import layout_columns, may_partition
from cachemgr.statements.layouts import (
    NO_LAYOUT,
    ColumnFilter,
    Layout,
    LoggedFilter,
    Reckoned,
    StoredValues,
    candidates,
    most_used,
    reckon,
)
from cachemgr.vocabulary import Outcome, RunState
from matcher.model.codec import decode_plan
from matcher.model.ir import CachePlan

FEWEST_HITS: Final = 20
SCANNED: Final = 10_000
_MOST_PATTERNS: Final = 100
_MOST_REFRESHES: Final = 10.0

# Of a published version and these columns: what the table holds.
LookAtValues = Callable[[CacheRecord, SnapshotRecord, Sequence[str]], StoredValues]


@dataclass(frozen=True)
class Advice:
    """What was found.

    Args:
        hits: Queries that the cache answered, of which the log says by which columns.
        local_hits: Those of them that were answered from memory, and opened no file.
        used: How many of the hits compared each column with constants.
        layouts: What each layout would have cost, the best first; none where nothing was reckoned.
        now: The layout that the cache has.
        statement: What makes the best one; None where there is none, or the cache has it.
        note: What is to be said of it, or why nothing was reckoned, and what to do.
    """

    hits: int = 0
    local_hits: int = 0
    used: Mapping[str, int] | None = None
    layouts: tuple[Reckoned, ...] = ()
    now: Layout = NO_LAYOUT
    statement: str | None = None
    note: str = ""

    @property
    def best(self) -> Layout | None:
        """The layout to take; None where nothing was reckoned."""
        return self.layouts[0].layout if self.layouts else None


def advise(metastore: Metastore, cache: CacheRecord, look: LookAtValues | None) -> Advice:
    """Reckon which layout suits a cache.

    Args:
        metastore: Where the decision log is.
        cache: The cache.
        look: Looks at its table, by Spark; None where there is none.
    """
    plan = decode_plan(dict(cache.plan or {}))
    now = _layout_now(cache, plan)
    if plan.is_cube:
        return Advice(
            now=now,
            note="it is a cube, whose table is partitioned by its grouping id, and whose large "
            "sets a refresh splits and sorts by itself: there is nothing to choose",
        )
    published = metastore.snapshots.published(cache.id)
    if published is None or published.run.cache_version is None:
        return Advice(now=now, note="it was never refreshed: refresh it, and ask again")
    filters, local = _filters(metastore, cache, plan)
    hits = sum(one.hits for one in filters)
    found = Advice(hits, local, _used(filters), now=now)
    if hits < FEWEST_HITS:
        return replace(
            found,
            note=f"the log has {hits} of its hits with their filters, and {FEWEST_HITS} are the "
            "fewest to go by: let it answer queries for some days, and ask again (hits are logged "
            "while spark.cachemgr.decisionLog.enabled is true, and since the cache was last "
            "created or replaced)",
        )
    if look is None:
        return replace(found, note="this process has no Spark to look at its table: ask another")
    return _reckoned(metastore, cache, plan, published, found, filters, look)


def _layout_now(cache: CacheRecord, plan: CachePlan) -> Layout:
    spec = cache.spec
    # where no clause says otherwise an ORDER BY does
    by_order = () if spec.partitioned_by or spec.cluster_by else plan.cluster_by
    return Layout(tuple(spec.partitioned_by), tuple(spec.cluster_by or by_order))


def _reckoned(
    metastore: Metastore,
    cache: CacheRecord,
    plan: CachePlan,
    published: SnapshotRecord,
    found: Advice,
    filters: Sequence[LoggedFilter],
    look: LookAtValues,
) -> Advice:
    kinds = layout_columns(plan.as_shown())
    allowed = most_used(filters)
    if not allowed:
        return replace(
            found,
            note="no hit compares one of its stored columns with a constant: no layout would leave "
            "a file out",
        )
    wanted = dict.fromkeys((*allowed, *found.now.partitioned_by, *found.now.cluster_by))
    stored = look(cache, published, tuple(wanted))
    parts = [name for name in allowed if may_partition(kinds[name]) and len(kinds) > 1]
    layouts = dict.fromkeys((*candidates(stored, parts, allowed), found.now))
    if plan.cluster_by:  # without a clause it would be clustered by its ORDER BY
        layouts.pop(NO_LAYOUT, None)
    results = reckon(stored, filters, tuple(layouts), _refreshes_a_hit(metastore, cache, found))
    return chosen(replace(found, layouts=results), cache)


def chosen(found: Advice, cache: CacheRecord) -> Advice:
    """Advice with the statement of its best layout, and what is to be said of it.

    Args:
        found: With its layouts.
        cache: The cache.
    """
    best, now = found.layouts[0], next(r for r in found.layouts if r.layout == found.now)
    notes = []
    if found.local_hits:
        notes.append(
            f"{found.local_hits} of the hits were answered from memory, where no layout matters"
        )
    if now.cost <= best.cost * 1.1:
        notes.insert(0, f"the layout that it has, {found.now.clause}, is as good as any")
        layouts = (now, *(each for each in found.layouts if each is not now))
        return replace(found, layouts=layouts, note="; ".join(notes))
    return replace(found, statement=statement_of(cache, best.layout), note="; ".join(notes))


def statement_of(cache: CacheRecord, layout: Layout) -> str:
    """The statement that gives a cache a layout, credentials left out.

    Args:
        cache: The cache.
        layout: The layout.
    """
    create = create_statement(masked_cache(cache))
    spec = replace(create.spec, partitioned_by=layout.partitioned_by, cluster_by=layout.cluster_by)
    return render(replace(create, spec=spec, or_replace=True))


def _filters(
    metastore: Metastore, cache: CacheRecord, plan: CachePlan
) -> tuple[tuple[LoggedFilter, ...], int]:
    """The filters of its hits, the most frequent first, and how many hits were local."""
    name = shown_name(cache.namespace, cache.name).lower()
    stored = layout_columns(plan.as_shown()).keys()
    seen: Counter[tuple[ColumnFilter, ...]] = Counter()
    local = 0
    decisions = metastore.decisions.latest(SCANNED, outcome=Outcome.HIT, since=cache.created_at)
    for decision in decisions:
        # who sends decisions may name caches that did not answer
        if decision.filters is None or name not in {c.lower() for c in decision.caches}:
            continue
        mine = [f for f in decision.filters if str(f["cache"]).lower() == name]
        seen.update(_columns(each["columns"], stored) for each in mine)
        local += decision.local and bool(mine)
    return tuple(LoggedFilter(k, n) for k, n in seen.most_common(_MOST_PATTERNS)), local


def _columns(
    told: Iterable[Mapping[str, Any]], stored: Collection[str]
) -> tuple[ColumnFilter, ...]:
    found = [
        ColumnFilter(each["column"], each.get("points"), each.get("width"))
        for each in told
        if each["column"] in stored
    ]
    return tuple(sorted(found, key=lambda one: one.column))


def _used(filters: Iterable[LoggedFilter]) -> dict[str, int]:
    used: Counter[str] = Counter()
    for one in filters:
        used.update({column.column: one.hits for column in one.columns})
    return dict(used.most_common())


def _refreshes_a_hit(metastore: Metastore, cache: CacheRecord, found: Advice) -> float:
    runs = metastore.refreshes.of(cache.id, limit=1000)
    written = sum(run.state is RunState.PUBLISHED for run in runs)
    return min(_MOST_REFRESHES, written / max(1, found.hits))
