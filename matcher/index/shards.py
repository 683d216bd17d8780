"""The index: the caches over one set of tables, and which of them could serve a query at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from matcher.index.index_keys import ANY_COLUMN, STORED, fixed_tables, mentioned
from matcher.model.ir import RecordPreservingJoin
from matcher.normalize.normal_query import SINGLE_ROWS, NormalQuery
from matcher.normalize.prepared_plan import PreparedPlan
from matcher.normalize.relation_numbers import FIRST_UNKNOWN_TABLE, OCCURRENCE
from matcher.rules.leave_out_tables import may_be_left_out

# Where shards stand of which no table must be in the query.
_NOWHERE: Final = -1


@dataclass(frozen=True, slots=True)
class Shard:
    """The caches over one set of tables, grouped by which of the tables' columns they mention.

    `bits` numbers these columns, so that a group is refused by one operation on small integers.
    `fixed` are the tables that a query must read to be served here, as bits: those that no cache
    here may ignore.
    """

    bits: dict[tuple[int, str], int]
    groups: dict[int, tuple[PreparedPlan, ...]]
    fixed: int

    def mask(self, columns: frozenset[tuple[int, str]]) -> int | None:
        """The columns as bits; None if some column is mentioned by no cache here."""
        mask = 0
        for column in columns:
            bit = self.bits.get(column)
            if bit is None:
                return None
            mask |= 1 << bit
        return mask

    def including(self, plan: PreparedPlan) -> Shard:
        """A copy with `plan` in it."""
        bits = dict(self.bits)
        named = mentioned(plan)
        for column in named:
            bits.setdefault(column, len(bits))
        fixed = mask_of(fixed_tables(plan))
        grown = Shard(bits, dict(self.groups), self.fixed & fixed if self.groups else fixed)
        mask = grown.mask(named) or 0
        grown.groups[mask] = (*grown.groups.get(mask, ()), plan)
        return grown

    def excluding(self, plan: PreparedPlan) -> Shard:
        """A copy without `plan`."""
        groups = dict(self.groups)
        mask = self.mask(mentioned(plan)) or 0
        left = tuple(p for p in groups[mask] if p is not plan)
        if left:
            groups[mask] = left
        else:
            del groups[mask]
        return Shard(self.bits, groups, self.fixed)

    @property
    def home(self) -> int:
        """The one table under which the shard is looked for by queries that read others too."""
        return (self.fixed & -self.fixed).bit_length() - 1 if self.fixed else _NOWHERE


def propose_joinable(
    query: NormalQuery,
    by_home: Mapping[int, tuple[int, ...]],
    shards: Mapping[int, Shard],
    without: frozenset[str] = frozenset(),
    keys: tuple[RecordPreservingJoin, ...] = (),
) -> list[PreparedPlan]:
    """The caches that could serve if tables of the query are joined to them, those first that share
    most tables with it.

    Such a cache has no table that it may not ignore beside the query's, and mentions what a query
    needs of its own tables: the columns of filters, groups and sums. It stores one of those that
    are equal to a column of another table, by which that is joined. A table that may be joined
    again by its key needs no other column, and one that the query reads twice may be joined, too.
    What may be left out of the query by one of the `keys` is joined by nothing.
    """
    known = mask_of(rel for rel in query.relations if rel % OCCURRENCE < FIRST_UNKNOWN_TABLE)
    needed = _Needed(query, keys)
    found: list[tuple[int, int, tuple[PreparedPlan, ...]]] = []
    for home in (_NOWHERE, *bits_of(known)):
        for mask in by_home.get(home, ()):
            shard = shards.get(mask)  # gone if it was dropped meanwhile
            if shard is not None and shard.fixed & ~known == 0 and mask & known:
                missing = (known & ~mask).bit_count()
                found += ((missing, len(found), plans) for plans in needed.of(mask, shard))
    return [p for *_, plans in sorted(found) for p in plans if p.name not in without]


class _Needed:
    """What a query needs of the tables of a cache, whichever these are."""

    __slots__ = ("_left_out", "_query", "_repeated", "_single_rows")

    def __init__(self, query: NormalQuery, keys: tuple[RecordPreservingJoin, ...]) -> None:
        self._query = query
        self._left_out = frozenset(rel % OCCURRENCE for rel in may_be_left_out(query, keys))
        self._repeated = query.repeated()
        self._single_rows = query.group_keys is None

    def of(self, mask: int, shard: Shard) -> Iterator[tuple[PreparedPlan, ...]]:
        """The groups of caches of a shard that have it."""
        own = mask & ~self._repeated
        all_of = shard.mask(frozenset({SINGLE_ROWS})) if self._single_rows else 0
        if all_of is None:
            return
        if _any_of(shard, own, self._query.shown) is None:
            return
        any_of = _any_of(shard, own, self._query.required)
        if any_of is None:
            return
        for members in self._query.linked:
            if any(table in self._left_out and not mask >> table & 1 for table, _ in members):
                continue
            here = [m for m in members if m[0] < FIRST_UNKNOWN_TABLE and mask >> m[0] & 1]
            if 0 < len(here) < len(members) and all(own >> t & 1 for t, _ in here):
                stored = ((t + STORED, column) for t, column in here)
                bits = _bits(shard, (*stored, *((t, ANY_COLUMN) for t, _ in here)))
                if not bits:
                    return
                any_of.append(bits)
        for has, plans in list(shard.groups.items()):
            if has & all_of == all_of and all(has & bits for bits in any_of):
                yield plans


def _any_of(shard: Shard, own: int, columns: Iterable[tuple[int, str]]) -> list[int] | None:
    """For each of the columns of tables in `own` what must be mentioned, as bits of which one is
    enough; None if no cache mentions it."""
    found: list[int] = []
    for table, column in columns:
        if 0 <= table < FIRST_UNKNOWN_TABLE and own >> table & 1:
            bits = _bits(shard, ((table, column), (table, ANY_COLUMN)))
            if not bits:
                return None
            found.append(bits)
    return found


def _bits(shard: Shard, columns: Iterable[tuple[int, str]]) -> int:
    found = 0
    for column in columns:
        bit = shard.bits.get(column)
        if bit is not None:
            found |= 1 << bit
    return found


def mask_of(relations: Iterable[int]) -> int:
    """The tables of relation numbers as a set of bits."""
    mask = 0
    for rel in relations:
        mask |= 1 << (rel % OCCURRENCE)
    return mask


def bits_of(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
