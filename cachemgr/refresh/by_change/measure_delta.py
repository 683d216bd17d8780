"""What is known of a cache after its refresh added a delta: what was known before, and what the
delta says, without a look at the base tables.

Sizes and counts are exact. Bounds only widen, and what was never NULL may only cease to be so,
until a full refresh measures anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from pyspark.sql import SparkSession

from cachemgr.delta.changed_files import ChangedFiles
from cachemgr.delta.commits import Commit
from cachemgr.metastore.column_bounds import noted_bounds
from cachemgr.refresh.by_change.incremental import Delta, Stored
from cachemgr.refresh.file_stats import bounds_listed, read_files
from cachemgr.refresh.measure import (
    Measured,
    arguments_without_nulls,
    asked_bounds,
    bounds_written,
    columns_without_nulls,
    exact_sums,
    open_columns,
    rows_name,
    set_sizes,
)
from matcher.model.expr import Col
from matcher.model.integer_bounds import Bounds
from matcher.model.ir import CachePlan, GroupingSet, RecordPreservingJoin
from matcher.partials.lossless import joins_told_by_counts

# so many rows that no type bounds a sum of them
_ANY_NUMBER: Final = 1 << 62


def measure_delta(
    session: SparkSession,
    plan: CachePlan,
    stored: Stored,
    facts: Mapping[str, Any],
    delta: Delta,
    commit: Commit,
    totals: Mapping[str, int],
) -> Measured:
    """Measure a version that an incremental refresh wrote.

    Args:
        session: A session of ours.
        plan: The plan that was computed.
        stored: What the cache held before.
        facts: What the refresh before noted down.
        delta: What was added.
        commit: The commit that wrote it.
        totals: The sum of each stored count over all rows, the delta's included.
    """
    before = stored.plan
    sized = replace(
        plan,
        grouping_sets=_sizes(before, delta, commit),
        rows=_total(before, delta, commit, "rows"),
        bytes=_total(before, delta, commit, "bytes"),
        partials=_partials(before, delta, commit),
    )
    rows, size = sized.rows, sized.bytes or 0
    if plan.keys is None:
        kept = before.non_null & columns_without_nulls(plan, commit)
        bounds = _bounds_together(plan, facts, commit)
        return Measured(replace(sized, non_null=kept), rows, size, rows, bounds=bounds)
    base_rows = totals.get(rows_name(plan))
    bounds = _bounds(session, plan, facts, delta, open_columns(plan, base_rows))
    measured = replace(
        sized,
        non_null=arguments_without_nulls(plan, totals),
        exact_sums=exact_sums(plan, base_rows, bounds),
    )
    return Measured(measured, rows, size, base_rows, totals, bounds)


def watched_set(delta: Delta) -> int:
    """The set whose totals the write is to watch: one that is written anew, if there is any."""
    return (*delta.replaced, *delta.appended)[0]


def totals_with(
    facts: Mapping[str, Any], delta: Delta, seen: Mapping[str, int]
) -> dict[str, int] | None:
    """The sum of each stored count over all rows; None where what was known before does not tell.

    Args:
        facts: What the refresh before noted down.
        delta: What was added.
        seen: The totals of the set that `watched_set` names, as the write saw them: of all its
            rows where it was written anew, else of the delta.
    """
    if delta.replaced:
        return dict(seen)
    before: Mapping[str, int] = facts.get("totals") or {}
    if not seen.keys() <= before.keys():
        return None
    return {name: before[name] + count for name, count in seen.items()}


def joins_that_kept_all_rows(
    plan: CachePlan,
    held: Iterable[RecordPreservingJoin],
    facts: Mapping[str, Any],
    delta: Delta,
    measured: Measured,
) -> tuple[RecordPreservingJoin, ...]:
    """The joins of which the counts tell that each appended row came through just once: then each
    of these found its partner, since nothing else could have made up for a loss.

    Args:
        plan: The cache.
        held: The record-preserving joins that held before; their joined sides have unique keys.
        facts: What the refresh before noted down.
        delta: What was added.
        measured: What is known since.
    """
    name, added = rows_name(plan), delta.changes.rows_added
    before = (facts.get("totals") or {}).get(name)
    after = measured.totals.get(name)
    if plan.keys is None or added is None or before is None or after is None or delta.is_signed:
        return ()
    if after - before != added:
        return ()
    return joins_told_by_counts(plan, held, delta.table.location)


def _sizes(before: CachePlan, delta: Delta, commit: Commit) -> tuple[GroupingSet, ...]:
    written = {s.grouping_id: s for s in set_sizes(before, commit)}
    return tuple(
        written[s.grouping_id]
        if s.grouping_id in delta.replaced
        else replace(
            s,
            rows=_sum(s.rows, written[s.grouping_id].rows),
            bytes=_sum(s.bytes, written[s.grouping_id].bytes),
        )
        for s in before.grouping_sets
    )


def _total(before: CachePlan, delta: Delta, commit: Commit, what: str) -> int | None:
    if before.is_cube:
        sizes = [getattr(s, what) for s in _sizes(before, delta, commit)]
        return None if None in sizes else sum(sizes)
    written: int | None = getattr(commit, what)
    return written if delta.replaced else _sum(getattr(before, what), written)


def _sum(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left + right


def _partials(before: CachePlan, delta: Delta, commit: Commit) -> frozenset[int]:
    """Without rows that were added nothing stands twice."""
    if before.keys is None:
        return frozenset()
    if not before.is_cube:
        grown = frozenset({0}) if commit.rows != 0 else frozenset()
    else:
        grown = frozenset(s.grouping_id for s in set_sizes(before, commit) if s.rows != 0)
    return (before.partials - frozenset(delta.replaced)) | (grown & frozenset(delta.appended))


def _bounds_together(
    plan: CachePlan, facts: Mapping[str, Any], commit: Commit
) -> dict[Col, Bounds]:
    """Of a cache without groups: what was known of the rows before, and of those written now."""
    before, now = noted_bounds(facts), bounds_written(plan, commit)
    kept = {c: before[c.rel, c.name] for c in now if (c.rel, c.name) in before}
    return {
        column: (min(low, now[column][0]), max(high, now[column][1]))
        for column, (low, high) in kept.items()
    }


def _bounds(
    session: SparkSession,
    plan: CachePlan,
    facts: Mapping[str, Any],
    delta: Delta,
    wanted: tuple[Col, ...],
) -> dict[Col, Bounds]:
    """Of those columns of which something is known before and of the delta."""
    before = decode_bounds(plan, facts)
    known = {column: before[column] for column in wanted if column in before}
    places = [relation.key for relation in plan.relations]
    changed = [column for column in known if places[column.rel] == delta.table.location]
    if not changed:
        return known
    files = ChangedFiles(
        delta.table.location, delta.since, delta.table.version, delta.changes.added
    )
    names = [column.name for column in changed]
    listed = bounds_listed(read_files(files.statistics(session)), names)
    # where columns are mapped, statistics go by other names
    found = asked_bounds(session, files.plan(session), names) if listed is None else listed
    for column in changed:
        (low, high), (least, most) = known[column], found[column.name]
        known[column] = (min(low, least), max(high, most))
    return known


def decode_bounds(plan: CachePlan, facts: Mapping[str, Any]) -> dict[Col, Bounds]:
    """The bounds that a refresh noted down.

    Args:
        plan: The cache, whose columns they are of.
        facts: What the refresh noted down.
    """
    known = noted_bounds(facts)
    columns = open_columns(plan, _ANY_NUMBER)
    return {c: known[c.rel, c.name] for c in columns if (c.rel, c.name) in known}
