"""Averages of whole numbers that are put together in hits between refreshes, or taken above what a
hit gives: exact where the rows behind the cache, and the appended ones, are proven to add up to
2^53 at most, all together.

The proof belongs to one cache: its rows, the bounds that its refresh noted down, the joins that
held at its snapshot, and the rows that are read beside it. It says nothing of another one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from cachemgr.delta.base_columns import physical_name
from cachemgr.delta.changes import Changes
from cachemgr.serving.appended import Appended
from cachemgr.serving.served_cache import ServedCache
from matcher.model.expr import Col, columns
from matcher.model.integer_bounds import Bounds
from matcher.model.ir import Block, RecordPreservingJoin
from matcher.model.message import NOTHING, Arg, CacheName, Message, TableName
from matcher.model.reasons import Reason, ReasonCode
from matcher.partials.exact_averages import (
    PartRows,
    exact_averages,
    is_one_row_each,
    outputs_add_exactly,
)
from matcher.partials.split import States


def averages_proven(
    states: States,
    cache: ServedCache,
    appended: Appended | None,
    joined: Iterable[RecordPreservingJoin] | None = None,
) -> frozenset[str] | Reason:
    """The `exact_sums` of the merge of a block's states, or why nothing can be proven.

    Args:
        states: The states of the block.
        cache: The cache that gives those of the rows behind it.
        appended: What is read beside it; None where nothing was appended.
        joined: The joins whose right side has a unique key in what the query reads, where other
            tables are joined to the cache; None where none is.
    """
    wanted = {c for expr in states.averaged.values() for c in columns(expr)}
    parts = _parts(states.block, cache, wanted, appended, joined)
    return parts if isinstance(parts, Reason) else exact_averages(states.averaged, parts)


def why_not_averaged(
    block: Block,
    averaged: Collection[int],
    cache: ServedCache,
    appended: Appended | None,
    joined: Iterable[RecordPreservingJoin] | None = None,
) -> Reason | None:
    """Why averages above a block would show the order of its rows, which a cache gives in another
    one; None if they do not.

    Args:
        block: The block.
        averaged: The outputs of which averages are taken.
        cache: The cache.
        appended: What is read beside it; None where nothing was appended.
        joined: As for `averages_proven`.
    """
    wanted = {c for number in averaged for c in columns(block.outputs[number].expr)}
    parts = _parts(block, cache, wanted, appended, joined)
    if isinstance(parts, Reason):
        return parts
    return None if outputs_add_exactly(block, averaged, parts) else not_exact(cache, appended)


def _parts(
    block: Block,
    cache: ServedCache,
    wanted: Collection[Col],
    appended: Appended | None,
    joined: Iterable[RecordPreservingJoin] | None,
) -> list[PartRows] | Reason:
    """All parts of a block's rows, with what is known of the columns that are wanted."""
    stored_rows = cache.plan.base_rows
    if stored_rows is None:
        return _not_proven(cache, "nobody counted the rows behind {cache}")
    keys = (*cache.plan.joins, *(joined or ()))
    if joined is not None and not _is_joined_once(block, cache, keys):
        return _not_proven(cache, "tables that are joined to {cache} may repeat rows")
    # a table that stands in the query once more is read whole there
    known = _table_bounds if joined is not None else _stored_bounds
    parts = [PartRows(stored_rows, known(block, cache, wanted))]
    if appended is not None:
        fresh = _fresh(block, cache, wanted, appended, keys)
        if isinstance(fresh, Reason):
            return fresh
        parts.append(fresh)
    return parts


def not_exact(cache: ServedCache, appended: Appended | None) -> Reason:
    """Why an AVG is not put together, where the bounds that are known do not prove it exact.

    Args:
        cache: The cache.
        appended: What would be read beside it.
    """
    more = NOTHING if appended is None else Message(", and {rows},", rows=appended.told())
    why = "the values behind {cache}{more} may add up to more by all that is known"
    return _not_proven(cache, why, more=more)


def _is_joined_once(block: Block, cache: ServedCache, keys: Sequence[RecordPreservingJoin]) -> bool:
    """Whether each row behind the cache finds one row at most in the tables joined to it: so it is
    if each row of one of its tables does in all others."""
    own = {relation.key for relation in cache.plan.relations}
    right = {rel for join in block.outer for rel in join.right}
    return any(
        is_one_row_each(block, rel, keys)
        for rel, relation in enumerate(block.relations)
        if relation.key in own and rel not in right
    )


def _fresh(
    block: Block,
    cache: ServedCache,
    wanted: Collection[Col],
    appended: Appended,
    keys: Sequence[RecordPreservingJoin],
) -> PartRows | Reason:
    rows, place = appended.changes.rows_added, appended.table.location
    if rows is None:
        return _not_proven(cache, "the log does not count the {rows}", rows=appended.told())
    rel = next(i for i, relation in enumerate(block.relations) if relation.key == place)
    if not is_one_row_each(block, rel, keys):
        why = "the tables that {table} is joined to may repeat appended rows"
        return _not_proven(cache, why, table=TableName(appended.table.name))
    # what the refresh saw of the columns of the table that grew does not hold for its new rows
    others = _table_bounds(block, cache, [c for c in wanted if c.rel != rel])
    known = {c: _with_new_keys(block, cache, c, others[c], appended) for c in others}
    mine = {c: _added(block, cache, c, appended.changes) for c in wanted if c.rel == rel}
    return PartRows(rows, {c: b for c, b in (known | mine).items() if b is not None})


def _with_new_keys(
    block: Block, cache: ServedCache, column: Col, seen: Bounds, appended: Appended
) -> Bounds | None:
    """What the refresh saw of a column holds no more where its table grew as well: appended rows
    may find the new ones."""
    changes = appended.grown.get(block.relations[column.rel].key)
    if changes is None:
        return seen
    added = _added(block, cache, column, changes)
    return None if added is None else (min(seen[0], added[0]), max(seen[1], added[1]))


def _added(block: Block, cache: ServedCache, column: Col, changes: Changes) -> Bounds | None:
    """As the log says it, which was read to tell what was appended."""
    kept = cache.columns.get(block.relations[column.rel].key, "{}")
    physical = physical_name(kept, column.name)
    return None if physical is None else changes.bounds_added(physical)


def _stored_bounds(block: Block, cache: ServedCache, wanted: Collection[Col]) -> dict[Col, Bounds]:
    """In the rows behind a cache."""
    known = dict(cache.plan.bounds)
    found = {c: known.get((block.relations[c.rel].key, c.name.lower())) for c in wanted}
    return {column: bounds for column, bounds in found.items() if bounds is not None}


def _table_bounds(block: Block, cache: ServedCache, wanted: Collection[Col]) -> dict[Col, Bounds]:
    """In all rows of the tables behind it: those of a cache without groups are of its own rows."""
    return {} if cache.plan.keys is None else _stored_bounds(block, cache, wanted)


def _not_proven(cache: ServedCache, template: str, /, **args: Arg) -> Reason:
    name = CacheName(cache.name)
    return Reason(
        ReasonCode.AVG_NOT_EXACT,
        "Spark averages whole numbers in DOUBLE, and those of all rows together are not proven to "
        "add up to 2^53 at most: {why}",
        "REFRESH RELATIONAL CACHE {cache}",
        why=Message(template, cache=name, **args),
        cache=name,
    )
