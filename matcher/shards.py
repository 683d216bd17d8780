"""The index: the caches over one set of tables, and which of them could serve a query at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from matcher.normal_form import (
    OCCURRENCE,
    SINGLE_ROWS,
    STRANGERS,
    NormalQuery,
    PreparedPlan,
)

_MAX_SHARDS: Final = 256
_MAX_PLANS: Final = 12


@dataclass(frozen=True, slots=True)
class Shard:
    """The caches over one set of tables, grouped by which of the tables' columns they mention.

    `bits` numbers these columns, so that a group is refused by one operation on small integers.
    """

    bits: dict[tuple[int, str], int]
    groups: dict[int, tuple[PreparedPlan, ...]]

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
        for column in plan.mentioned:
            bits.setdefault(column, len(bits))
        grown = Shard(bits, dict(self.groups))
        mask = grown.mask(plan.mentioned) or 0
        grown.groups[mask] = (*grown.groups.get(mask, ()), plan)
        return grown

    def excluding(self, plan: PreparedPlan) -> Shard:
        """A copy without `plan`."""
        groups = dict(self.groups)
        mask = self.mask(plan.mentioned) or 0
        left = tuple(p for p in groups[mask] if p is not plan)
        if left:
            groups[mask] = left
        else:
            del groups[mask]
        return Shard(self.bits, groups)


def propose_joinable(
    query: NormalQuery,
    by_table: Mapping[int, tuple[int, ...]],
    shards: Mapping[int, Shard],
    without: frozenset[str] = frozenset(),
) -> list[PreparedPlan]:
    """The caches that could serve if tables of the query are joined to them, the nearest first.

    Such a cache has a table whose columns are added up, and mentions those of them that are of its
    tables: a column of a table joined to it is added up once for each row of a group. Looking at
    them all would cost the more the more caches there are, so the first few alone are proposed:
    those that share the most tables with the query, and lack the fewest of its columns.
    """
    tables = {rel % OCCURRENCE for rel in query.relations}
    known = mask_of(tuple(t for t in tables if t < STRANGERS))
    needed, measured = query.required(), query.measured()
    facts = {table for table, _ in measured}
    starts = {t for t in facts if t < STRANGERS} if facts else set(bits_of(known))
    seen: dict[int, Shard] = {}
    for table in sorted(starts, key=lambda t: len(by_table.get(t, ()))):
        for mask in by_table.get(table, ())[:_MAX_SHARDS]:
            shard = shards.get(mask)  # gone if it was dropped meanwhile
            if shard is not None:
                seen[mask] = shard
    nearest = _nearest(seen, known, needed, measured, query.group_keys is None)
    return list(islice((p for p in nearest if p.name not in without), _MAX_PLANS))


def _nearest(
    shards: Mapping[int, Shard],
    known: int,
    needed: frozenset[tuple[int, str]],
    measured: frozenset[tuple[int, str]],
    single_rows: bool,
) -> Iterator[PreparedPlan]:
    ranked: list[tuple[int, int, int, tuple[PreparedPlan, ...]]] = []
    for mask, shard in shards.items():
        mine = frozenset(m for m in measured if m[0] < STRANGERS and mask >> m[0] & 1)
        own = shard.mask(mine | {SINGLE_ROWS} if single_rows else mine)
        if own is None:
            continue
        bits = [b for b in map(shard.bits.get, needed) if b is not None]
        for mentioned, plans in list(shard.groups.items()):
            if mentioned & own == own:
                lacking = len(needed) - sum(mentioned >> bit & 1 for bit in bits)
                missing = (known & ~mask).bit_count()
                ranked.append((missing, lacking, len(ranked), plans))
    for *_, plans in sorted(ranked):
        yield from plans


def mask_of(relations: tuple[int, ...]) -> int:
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
