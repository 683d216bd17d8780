"""The caches' plans in memory, the index that proposes candidates, and the decision for one block.

Index: caches stand in shards by their set of tables; a shard is a candidate if it covers the
    query's tables, a cache in it if its
column mask covers the columns that the query cannot do without. So the cost of a decision depends
on the few caches left, not on
how many there are. Registering or dropping one replaces the shard that it touches (copy on write),
and readers never wait.

Decisions are remembered by shape (the block with its literals lifted): for the next literals only
those caches are tried that
were valid, or whose refusal may have hung on a literal.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Final

from matcher.choose import rank
from matcher.explain import candidates_of
from matcher.expr import Expr, Lit, walk
from matcher.ir import Block, CachePlan, Decision, MatchOptions, Miss, Rewrite
from matcher.match import match_plan
from matcher.normal_form import OCCURRENCE, Interner, NormalQuery, PreparedPlan, occurrences
from matcher.reasons import Reason, ReasonCode

Veto = Callable[[Rewrite], Reason | None]
_REMEMBERED_SHAPES: Final = 4096
_DEFAULTS: Final = MatchOptions()


@dataclass(frozen=True, slots=True)
class _Shard:
    """The caches over one set of tables, in order of their names."""

    tables: int
    plans: tuple[PreparedPlan, ...]


class Registry:
    """All registered caches. Methods may be called from any thread."""

    def __init__(self) -> None:
        self._intern = Interner()
        self._columns = Interner()
        self._plans: dict[str, PreparedPlan] = {}
        self._shards: dict[int, _Shard] = {}
        self._by_table: dict[int, tuple[int, ...]] = {}
        self._lock = Lock()
        self._revision = 0
        self._shapes: OrderedDict[object, tuple[PreparedPlan, ...]] = OrderedDict()

    # -- writing ------------------------------------------------------------------------------

    def put(self, plan: CachePlan) -> None:
        """Register `plan`, replacing an earlier one of the same name."""
        prepared = PreparedPlan(plan, self._intern, self._columns)
        with self._lock:
            old = self._plans.get(plan.name)
            if old is not None:
                self._take_out(old)
            self._put_in(prepared)
            self._plans[plan.name] = prepared
            self._forget()

    def drop(self, name: str) -> None:
        """Remove a cache; nothing happens if there is none of that name."""
        with self._lock:
            old = self._plans.pop(name, None)
            if old is not None:
                self._take_out(old)
                self._forget()

    def _forget(self) -> None:
        self._revision += 1
        self._shapes = OrderedDict()

    def _put_in(self, prepared: PreparedPlan) -> None:
        mask = _mask(prepared.relations)
        shard = self._shards.get(mask)
        others = shard.plans if shard is not None else ()
        if shard is None:
            for table in _bits(mask):
                self._by_table[table] = (*self._by_table.get(table, ()), mask)
        self._shards[mask] = _Shard(mask, (*others, prepared))

    def _take_out(self, old: PreparedPlan) -> None:
        mask = _mask(old.relations)
        left = tuple(p for p in self._shards[mask].plans if p is not old)
        if left:
            self._shards[mask] = _Shard(mask, left)
            return
        del self._shards[mask]
        for table in _bits(mask):
            self._by_table[table] = tuple(m for m in self._by_table[table] if m != mask)

    # -- reading ------------------------------------------------------------------------------

    def names(self) -> tuple[str, ...]:
        """Names of all caches, sorted."""
        return tuple(sorted(self._plans))

    def plan(self, name: str) -> CachePlan | None:
        """The registered plan of that name, if any."""
        found = self._plans.get(name)
        return None if found is None else found.plan

    def tables(self) -> frozenset[str]:
        """Relation keys that some cache reads."""
        return frozenset(r.key for p in list(self._plans.values()) for r in p.plan.relations)

    def decide(
        self,
        block: Block,
        options: MatchOptions = _DEFAULTS,
        veto: Veto | None = None,
        *,
        explain: bool = False,
    ) -> Decision:
        """The best rewrite of `block` that `veto` lets pass.

        Args:
            block: the query block, relation keys as in the registered plans.
            options: session switches.
            veto: asked for valid rewrites, best first, until it returns None; its reason counts as
                that candidate's refusal.
            explain: also try the caches that the index would not propose, so that every candidate
                gets its reason.
        """
        if explain:
            return self._explain(block, options, veto)
        query = self._normalise(block)
        if query is None:
            return Decision(None, (), (_no_cache(block),))
        shape = (_shape(block), options)
        revision, shapes = self._revision, self._shapes
        remembered = shapes.get(shape)
        proposed = remembered if remembered is not None else tuple(self._propose(query))
        rewrites: list[Rewrite] = []
        misses: list[Miss] = []
        worth: list[PreparedPlan] = []
        for plan in proposed:
            valid = False
            for found in match_plan(query, plan, options, thorough=False):
                if isinstance(found, Rewrite):
                    rewrites.append(found)
                    valid = True
                    break
                misses.append(found)
            if valid or plan.has_literals:
                worth.append(plan)
        if remembered is None and revision == self._revision:
            _remember(shapes, shape, tuple(worth))
        for rewrite in rank(rewrites):
            reason = veto(rewrite) if veto is not None else None
            if reason is None:
                return Decision(rewrite)
            misses.append(Miss(rewrite.cache, rewrite.grouping_set, (reason,)))
        if not misses:
            return Decision(None, (), (_no_cache(block),))
        return Decision(None, (), tuple(r for m in misses[-3:] for r in m.reasons))

    def _explain(self, block: Block, options: MatchOptions, veto: Veto | None) -> Decision:
        query = NormalQuery(block, occurrences(self._intern(r.key) for r in block.relations))
        plans = [self._plans[name] for name in self.names()]
        mine = {rel % OCCURRENCE for rel in query.tables}
        rewrites: list[Rewrite] = []
        misses: list[Miss] = []
        for plan in plans:
            if mine.isdisjoint(rel % OCCURRENCE for rel in plan.relations):
                continue
            for found in match_plan(query, plan, options):
                if isinstance(found, Rewrite):
                    rewrites.append(found)
                else:
                    misses.append(found)
        chosen: Rewrite | None = None
        valid: list[Rewrite] = []
        for rewrite in rank(rewrites):
            reason = veto(rewrite) if veto is not None else None
            if reason is not None:
                misses.append(Miss(rewrite.cache, rewrite.grouping_set, (reason,)))
            elif chosen is None:
                chosen = rewrite
            else:
                valid.append(rewrite)
        candidates = candidates_of(chosen, valid, misses, {p.name: p.plan for p in plans})
        reasons = () if chosen is not None else _best_reasons(misses, block)
        return Decision(chosen, candidates, reasons)

    def _normalise(self, block: Block) -> NormalQuery | None:
        """The query in normal form, or None if some table is in no cache at all."""
        numbers = [self._intern.known(r.key) for r in block.relations]
        known = [n for n in numbers if n is not None]
        if len(known) < len(numbers) or not known:
            return None
        return NormalQuery(block, occurrences(known))

    def _propose(self, query: NormalQuery) -> Iterator[PreparedPlan]:
        wanted = _mask(query.relations)
        rarest = min((self._by_table.get(t, ()) for t in _bits(wanted)), key=len)
        required = query.required(self._columns)
        if required is None:
            return
        for mask in rarest:
            if mask & wanted != wanted:
                continue
            shard = self._shards.get(mask)
            if shard is None:
                continue
            for plan in shard.plans:
                if plan.key_mask & required == required:
                    yield plan


def _mask(relations: tuple[int, ...]) -> int:
    mask = 0
    for rel in relations:
        mask |= 1 << (rel % OCCURRENCE)
    return mask


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _shape(block: Block) -> object:
    """The block without the values of its literals; equal shapes differ in literals only."""
    parts: list[object] = [
        tuple(r.key for r in block.relations),
        block.grouping_sets,
        block.limit,
        block.offset,
    ]
    exprs: list[Expr] = [*block.predicates, *(o.expr for o in block.outputs), *block.having]
    exprs += [*(block.group_keys or ()), *(k.expr for k in block.order_by)]
    parts += [o.name for o in block.outputs]
    parts.append(
        (len(block.predicates), len(block.outputs), len(block.having), block.group_keys is None)
    )
    parts += [(k.ascending, k.nulls_first) for k in block.order_by]
    for expr in exprs:
        for node in walk(expr):
            if isinstance(node, Lit):
                parts.append(("?", node.type, node.value is None))
            elif node.children:
                head = getattr(node, "op", None) or (node.func, node.distinct, node.filter is None)  # type: ignore[attr-defined]
                parts.append((head, len(node.children), node.type, getattr(node, "params", ())))
            else:
                parts.append(node)
    return tuple(parts)


def _remember(
    shapes: OrderedDict[object, tuple[PreparedPlan, ...]],
    shape: object,
    plans: tuple[PreparedPlan, ...],
) -> None:
    shapes[shape] = plans
    if len(shapes) > _REMEMBERED_SHAPES:
        shapes.popitem(last=False)


def _no_cache(block: Block) -> Reason:
    names = ", ".join(dict.fromkeys(r.name for r in block.relations)) or "no table"
    return Reason(
        ReasonCode.NO_CACHE_FOR_TABLES,
        f"no cache covers {names} with the columns that the query needs",
        "EXPLAIN REWRITE names what the nearest caches lack",
    )


def _best_reasons(misses: list[Miss], block: Block) -> tuple[Reason, ...]:
    """The refusals that came furthest first: of views before whole caches, the least lacking
    ahead."""
    if not misses:
        return (_no_cache(block),)
    ordered = sorted(misses, key=lambda m: (m.grouping_set is None and m.lacking == 0, m.lacking))
    return tuple(dict.fromkeys(r for m in ordered for r in m.reasons))
