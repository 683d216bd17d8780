"""The caches' plans in memory, the index that proposes candidates, and the decision for one block.

Index: caches stand in shards by their set of tables; a shard is a candidate if it covers the
query's tables, a cache in it if its column mask covers the columns that the query cannot do
without. So the cost of a decision depends on the few caches left, not on how many there are.
Registering or dropping one replaces the shard that it touches (copy on write),
and readers never wait.

Decisions are remembered by shape, see `matcher.memory.decisions`: for the next literals only the
caches that were valid for such literals before are tried, cheapest first; until a cache over one of
the query's tables changes, see `matcher.memory.bounded`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from threading import Lock
from typing import Any, Final, Generic, overload

from matcher.index.explain import candidates_of
from matcher.index.miss_reasons import (
    best_reasons,
    hopeless,
    no_cache,
    none_near,
    out_of_steps,
    replaced_table,
)
from matcher.index.nearest import consider, nearest, sharing_tables
from matcher.index.shards import Shard, bits_of, mask_of, propose_joinable
from matcher.memory.bounded import Changes, Remembered
from matcher.memory.decisions import Seen, Served, Shapes, shape_of, tables_of
from matcher.model.budget import OutOfSteps, OutOfTime, decision, spent
from matcher.model.expr import Lit
from matcher.model.hash_consing import Sharing
from matcher.model.ir import Block, CachePlan, Choice, MatchOptions, Miss, Passed, Rewrite
from matcher.model.reasons import Reason, ReasonCode
from matcher.normalize.normal_query import NormalQuery
from matcher.normalize.prepared_plan import PreparedPlan
from matcher.normalize.relation_numbers import (
    FIRST_UNKNOWN_TABLE,
    OCCURRENCE,
    Interner,
    occurrences,
)
from matcher.rules.choose import preference
from matcher.rules.match_view import match_plan

Clear = Callable[[Rewrite], Passed | Reason]
_DEFAULTS: Final = MatchOptions()
# So many caches are asked what they lack where the index proposes none.
_NEAREST: Final = 3
_MOST_EXHAUSTED: Final = 1024


@dataclass(frozen=True, slots=True)
class _Asked(Generic[Passed]):
    """What a decision is asked for; see `Registry.decide`."""

    block: Block
    options: MatchOptions
    clear: Clear[Passed]
    first_rows: bool = False


@dataclass(slots=True)
class _Found(Generic[Passed]):
    """What the index proposed, and what came of it; `exhausted` if the steps ended before all were
    compared."""

    proposed: list[PreparedPlan] = field(default_factory=list)
    rewrites: list[tuple[Rewrite, PreparedPlan]] = field(default_factory=list)
    misses: list[Miss] = field(default_factory=list)
    served: tuple[Rewrite, Passed] | None = None
    tried_joining: bool = False
    exhausted: bool = False


def _passed(rewrite: Rewrite) -> Rewrite:
    """Of a rewrite that nobody checks."""
    return rewrite


class Registry:
    """All registered caches. Methods may be called from any thread."""

    def __init__(self) -> None:
        self._intern = Interner()
        self._plans: dict[str, PreparedPlan] = {}
        self._shards: dict[int, Shard] = {}
        self._by_table: dict[int, tuple[int, ...]] = {}
        self._by_home: dict[int, tuple[int, ...]] = {}
        self._share = Sharing()
        self._limited: frozenset[str] = frozenset()
        self._spelled: dict[str, str] = {}
        # the names of tables that some cache reads or once read
        self._named: set[str] = set()
        self._lock = Lock()
        self._changes = Changes()
        self._shapes = Shapes(self._changes)
        # the shapes on which the steps of a decision were used up
        self._exhausted: Remembered[Reason] = Remembered(self._changes, _MOST_EXHAUSTED)

    # -- writing ------------------------------------------------------------------------------

    def put(self, plan: CachePlan) -> None:
        """Register `plan`, replacing an earlier one of the same name."""
        with self._lock:
            prepared = PreparedPlan(plan, self._intern, self._share)
            old = self._plans.get(plan.name)
            if old is not None:
                self._take_out(old)
            self._put_in(prepared)
            self._plans[plan.name] = prepared
            self._spelled[plan.name.lower()] = plan.name
            self._named.update(relation.name.lower() for relation in plan.relations)
            if plan.holds_some:
                self._limited |= {plan.name}
            self._note(prepared, *(() if old is None else (old,)))

    def drop(self, name: str) -> None:
        """Remove a cache; nothing happens if there is none of that name."""
        with self._lock:
            old = self._plans.pop(name, None)
            if old is not None:
                self._take_out(old)
                # one that came in its place may have the same name in another case
                if self._spelled.get(name.lower()) == name:
                    del self._spelled[name.lower()]
                self._note(old)

    def forget_decisions(self) -> None:
        """Drop what is remembered of shapes; the next decision of each is a first sight again."""
        self._shapes.forget()
        self._exhausted.forget()

    def _note(self, *changed: PreparedPlan) -> None:
        self._changes.note(r.key for prepared in changed for r in prepared.plan.tables)

    def _put_in(self, prepared: PreparedPlan) -> None:
        mask = mask_of(prepared.relations)
        before = self._shards.get(mask)
        if before is None:
            for table in bits_of(mask):
                self._by_table[table] = (*self._by_table.get(table, ()), mask)
        shard = (before or Shard({}, {}, 0)).including(prepared)
        self._shards[mask] = shard
        if before is None or before.home != shard.home:
            self._by_home[shard.home] = (*self._by_home.get(shard.home, ()), mask)
        if before is not None and before.home != shard.home:
            self._leave_home(mask, before)

    def _leave_home(self, mask: int, shard: Shard) -> None:
        left = tuple(m for m in self._by_home[shard.home] if m != mask)
        self._by_home[shard.home] = left

    def _take_out(self, old: PreparedPlan) -> None:
        self._limited -= {old.name}
        mask = mask_of(old.relations)
        shard = self._shards[mask].excluding(old)
        if shard.groups:
            self._shards[mask] = shard
            return
        del self._shards[mask]
        self._leave_home(mask, shard)
        for table in bits_of(mask):
            self._by_table[table] = tuple(m for m in self._by_table[table] if m != mask)

    # -- reading ------------------------------------------------------------------------------

    def names(self) -> tuple[str, ...]:
        """Names of all caches, sorted."""
        return tuple(sorted(self._plans))

    def spelled(self, name: str) -> str | None:
        """A cache's name as it was registered, by its name in any case."""
        return self._spelled.get(name.lower())

    def plan(self, name: str) -> CachePlan | None:
        """The registered plan of that name, if any."""
        found = self._plans.get(name)
        return None if found is None else found.plan

    def tables(self) -> frozenset[str]:
        """Relation keys that some cache reads."""
        return frozenset(r.key for p in list(self._plans.values()) for r in p.plan.tables)

    @property
    def keeps_first_rows(self) -> bool:
        """True if some cache keeps the first rows of an ORDER BY … LIMIT alone."""
        return bool(self._limited)

    @overload
    def decide(
        self,
        block: Block,
        options: MatchOptions = _DEFAULTS,
        *,
        explain: bool = False,
        most: int | None = None,
        first_rows: bool = False,
        remember: bool = True,
    ) -> Choice[Rewrite]: ...

    @overload
    def decide(
        self,
        block: Block,
        options: MatchOptions,
        clear: Clear[Passed],
        *,
        explain: bool = False,
        most: int | None = None,
        first_rows: bool = False,
        remember: bool = True,
    ) -> Choice[Passed]: ...

    def decide(
        self,
        block: Block,
        options: MatchOptions = _DEFAULTS,
        clear: Clear[Any] = _passed,
        *,
        explain: bool = False,
        most: int | None = None,
        first_rows: bool = False,
        remember: bool = True,
    ) -> Choice[Any]:
        """The best rewrite of `block` that `clear` lets pass.

        Args:
            block: the query block, relation keys as in the registered plans.
            options: session switches.
            clear: asked for valid rewrites, best first, until it returns anything but a reason,
                which is handed back with the rewrite; a reason counts as that candidate's refusal.
            explain: also try the caches that the index would not propose, so that every candidate
                gets its reason.
            most: explain so many caches at most, the one that serves and those nearest to it; None
                explains all.
            first_rows: ask caches alone that hold the first rows (ORDER BY … LIMIT) or the groups
                that passed a HAVING.
            remember: False to decide as at first sight, and to remember nothing of it.
        """
        if first_rows and not self._limited:
            return Choice(None)
        asked = _Asked(block, options, clear, first_rows)
        if explain:
            served = None
            if most is not None:
                served = self.decide(block, options, clear, first_rows=first_rows).rewrite
            return self._explain(asked, most, served)
        since = self._changes.now  # before anything is looked at
        relations = self._relations(block)
        if relations is None:
            return Choice(None, (), (no_cache(block),))
        # made when it is first needed: a filled-in template needs none
        query = cache(lambda: NormalQuery(block, relations))
        if not remember:
            found = self._search(asked, query())
            return Choice(found.served, (), _reasons(found, block), exhausted=found.exhausted)
        shape, constants = shape_of(block)
        key = (shape, options, first_rows)
        seen = self._shapes.get(key, tables_of(block))
        if seen is not None:
            missed = seen.missed(block, constants)
            if missed is not None:
                return Choice(None, (), missed)
            again = _decide_again(asked, seen, query, constants)
            if again is not None:
                return again
        exhausted = self._exhausted.get(key, tables_of(block))
        if exhausted is not None:
            return Choice(None, (), (exhausted,), exhausted=True)
        before = spent().steps
        found = self._search(asked, query())
        reasons = _reasons(found, block)
        if found.exhausted:
            if found.served is None and (spent().steps - before) * 2 > options.most_steps:
                self._exhausted.keep(key, tables_of(block), since, lambda: reasons[0])
            return Choice(found.served, (), reasons, exhausted=True)
        self._shapes.put(
            key,
            since,
            query(),
            constants,
            tuple(found.proposed),
            found.rewrites,
            tried_joining=found.tried_joining,
            reasons=reasons,
        )
        return Choice(found.served, (), reasons)

    def _search(self, asked: _Asked[Passed], query: NormalQuery) -> _Found[Passed]:
        """Try the caches that have all tables; where none serves, those that must be joined with
        some."""
        found: _Found[Passed] = _Found()
        for may_join_tables in (False, True):
            if may_join_tables:
                without = hopeless(found.misses, (rewrite.cache for rewrite, _ in found.rewrites))
                plans = propose_joinable(
                    query, self._by_home, self._shards, without, asked.options.keys
                )
            else:
                plans = list(self._propose(query))
            if asked.first_rows:
                plans = [p for p in plans if p.plan.holds_some]
            matched = _matched(query, plans, asked.options, may_join_tables, found)
            found.proposed += plans
            found.rewrites += matched
            found.tried_joining = may_join_tables
            found.served = _first_passed(matched, asked.clear, found.misses)
            if found.served is not None or found.exhausted:
                break
        return found

    def _explain(
        self, asked: _Asked[Passed], most: int | None, served: Rewrite | None
    ) -> Choice[Passed]:
        relations = self._relations(asked.block)
        replaced = self._replaced(asked.block)
        if relations is None:
            return Choice(None, (), replaced or (none_near(asked.block),))
        query = NormalQuery(asked.block, relations)
        if most is None:
            near = [self._plans[name] for name in self.names()]
        else:
            near = self._some(query, most, served)
        plans = sharing_tables(query, near, asked.first_rows)
        found, valid, misses = consider(query, plans, asked.options, asked.clear)
        chosen = None if found is None else found[0]
        candidates = candidates_of(chosen, valid, misses, {p.name: p.plan for p in plans})
        if found is not None:
            return Choice(found, candidates, ())
        reasons = best_reasons(misses, none_near(asked.block))
        return Choice(None, candidates, (*replaced, *reasons))

    def _replaced(self, block: Block) -> tuple[Reason, ...]:
        """Which caches read another table under the name of one that no cache reads: it was
        replaced by one at another place."""
        others = {
            relation.name.lower(): relation
            for relation in block.relations
            if self._intern.known(relation.key) is None and relation.name.lower() in self._named
        }
        if not others:
            return ()
        return tuple(
            replaced_table(plan.name, others[name].name)
            for plan in sorted((p.plan for p in list(self._plans.values())), key=lambda p: p.name)
            for name in {relation.name.lower() for relation in plan.relations} & others.keys()
        )[:_NEAREST]

    def _some(self, query: NormalQuery, most: int, served: Rewrite | None) -> list[PreparedPlan]:
        serving = None if served is None else self._plans.get(served.cache)
        first = [] if serving is None else [serving]
        near = nearest(query, self._by_table, self._shards)
        others = (plan for plan in near if plan is not serving)
        return [*first, *islice(others, max(0, most - len(first)))]

    def why(
        self, block: Block, options: MatchOptions, reasons: tuple[Reason, ...]
    ) -> tuple[Reason, ...]:
        """The reasons for a miss as a person wants them: where the index proposed no cache, what
        the few that come nearest lack. It takes as long as a decision among these, so it is asked
        where reasons are told or logged, not where a query waits.

        Args:
            block: the block that was missed.
            options: the switches that it was decided under.
            reasons: what the decision said.
        """
        if any(reason.code is not ReasonCode.NO_CACHE_FOR_TABLES for reason in reasons):
            return reasons
        try:
            with decision(options.most_steps):
                near = self._explain(_Asked(block, options, _passed), _NEAREST, None)
        except (OutOfSteps, OutOfTime):
            return reasons
        return reasons if near.rewrite is not None else near.reasons

    def _relations(self, block: Block) -> tuple[int, ...] | None:
        """The block's tables by number, or None if all of them are in no cache."""
        found: list[int] = []
        unknown: dict[str, int] = {}
        for relation in block.relations:
            number = self._intern.known(relation.key)
            if number is None:
                number = unknown.setdefault(relation.key, FIRST_UNKNOWN_TABLE + len(unknown))
            found.append(number)
        return occurrences(found) if any(n < FIRST_UNKNOWN_TABLE for n in found) else None

    def _propose(self, query: NormalQuery) -> Iterator[PreparedPlan]:
        if any(rel % OCCURRENCE >= FIRST_UNKNOWN_TABLE for rel in query.relations):
            return
        wanted = mask_of(query.relations)
        rarest = min((self._by_table.get(t, ()) for t in bits_of(wanted)), key=len)
        for mask in rarest:
            if mask & wanted != wanted:
                continue
            shard = self._shards.get(mask)
            if shard is None or shard.mask(query.shown) is None:
                continue
            required = shard.mask(query.required)
            if required is None:
                continue
            for mentioned, plans in list(shard.groups.items()):
                if mentioned & required == required:
                    yield from plans


def _reasons(found: _Found[Passed], block: Block) -> tuple[Reason, ...]:
    return () if found.served is not None else best_reasons(found.misses, no_cache(block))


def _matched(
    query: NormalQuery,
    plans: Iterable[PreparedPlan],
    options: MatchOptions,
    may_join_tables: bool,
    so_far: _Found[Passed],
) -> list[tuple[Rewrite, PreparedPlan]]:
    """The best rewrite of each plan that has one, the best first; what was refused is noted."""
    rewrites: list[tuple[Rewrite, PreparedPlan]] = []
    for number, plan in enumerate(plans):
        try:
            for found in match_plan(
                query, plan, options, thorough=False, may_join_tables=may_join_tables
            ):
                if isinstance(found, Rewrite):
                    rewrites.append((found, plan))
                    break
                so_far.misses.append(found)
        except OutOfSteps:
            so_far.exhausted = True
            so_far.misses.insert(0, Miss("", None, (out_of_steps(options.most_steps, number),)))
            break
    rewrites.sort(key=lambda pair: preference(pair[0]))
    return rewrites


def _first_passed(
    rewrites: Iterable[tuple[Rewrite, PreparedPlan]], clear: Clear[Passed], misses: list[Miss]
) -> tuple[Rewrite, Passed] | None:
    for rewrite, _ in rewrites:
        passed = clear(rewrite)
        if not isinstance(passed, Reason):
            return rewrite, passed
        misses.append(Miss(rewrite.cache, rewrite.grouping_set, (passed,), matched=True))
    return None


def _decide_again(
    asked: _Asked[Passed], seen: Seen, query: Callable[[], NormalQuery], constants: tuple[Lit, ...]
) -> Choice[Passed] | None:
    """The decision by the caches that served such constants before; None to ask the index again."""
    refused: list[Reason] = []
    remembered, tried_joining = seen.served(asked.block, constants)
    for served in remembered:
        filled = served.filled(constants)
        found = [filled] if filled is not None else _valid(query(), served, asked.options)
        for rewrite in found:
            passed = asked.clear(rewrite)
            if not isinstance(passed, Reason):
                return Choice((rewrite, passed), by_shape=filled is not None)
            refused.append(passed)
    if not refused or not tried_joining:  # a cache that must be joined may still serve
        return None
    return Choice(None, (), tuple(dict.fromkeys(refused)))


def _valid(query: NormalQuery, served: Served, options: MatchOptions) -> list[Rewrite]:
    """The plan's best rewrite of the query, if any."""
    for found in match_plan(
        query, served.plan, options, thorough=False, may_join_tables=served.may_join_tables
    ):
        if isinstance(found, Rewrite):
            return [found]
    return []
