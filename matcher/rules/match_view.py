"""One query block against one cache: run the rules over each of its views and say what came out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from matcher.model.budget import NODES_A_STEP, spend
from matcher.model.expr import Call, Col, Expr, columns
from matcher.model.ir import GroupingSet, MatchOptions, Miss, Rewrite
from matcher.model.message import CacheName, Count, Number, TableName, Word, listed
from matcher.model.reasons import Reason, ReasonCode
from matcher.normalize.functional_dependencies import VALUE_OF_EQUALS
from matcher.normalize.mappings import MAX_MAPPINGS, mappings
from matcher.normalize.normal_query import NormalQuery
from matcher.normalize.prepared_plan import PreparedPlan
from matcher.predicates.null_sources import NULL_TESTS
from matcher.rules import PLAN_RULES, VIEW_RULES
from matcher.rules.attempt import PlanAttempt, Refused, ViewAttempt
from matcher.rules.cost import base_cost, base_is_cheaper, rewrite_cost
from matcher.rules.declared_joins import if_they_held
from matcher.rules.grouping_sets import match_by_sets, why_not_by_sets
from matcher.rules.invert_columns import comes_back
from matcher.rules.join_tables import joined
from matcher.rules.leave_out_tables import if_they_were_proven
from matcher.rules.restate_guards import filters_in_order
from matcher.rules.roll_up_aggregates import NeedsRegrouping

_TIMES = frozenset({"date", "timestamp", "timestamp_ntz"})


def match_plan(
    query: NormalQuery,
    view: PreparedPlan,
    options: MatchOptions,
    *,
    thorough: bool = True,
    may_join_tables: bool = False,
) -> Iterator[Rewrite | Miss]:
    """Try `query` against each view of the cache, cheapest first; one result a view (several where
    tables repeat), one a cache for a query with grouping sets.

    Lazy: a caller that takes the first `Rewrite` does not pay for the rest. Unless `thorough`,
    grouping sets that lack a key which the query cannot do without are passed over in silence. With
    `may_join_tables` the rewrite may join tables of the query to the cache.
    """
    if query.block.grouping_sets is None:
        yield from _match_views(query, view, options, thorough, may_join_tables)
    else:
        yield from _match_sets(query, view, options, may_join_tables)


def _match_sets(
    query: NormalQuery, view: PreparedPlan, options: MatchOptions, may_join_tables: bool
) -> Iterator[Rewrite | Miss]:
    """All sets by one aggregation, or each by its own view: what costs least. Tables that the
    cache lacks are joined once, for all sets."""
    reason = why_not_by_sets(query.block)
    if reason is not None:
        yield Miss(view.name, None, (reason,))
        return
    valid: list[Rewrite] = []
    misses: list[Miss] = []
    for found in _match_views(query, view, options, True, may_join_tables):
        if isinstance(found, Rewrite):
            valid.append(found)
        else:
            misses.append(found)
    if not may_join_tables and (view.plan.is_cube or not valid):
        apart, why = match_by_sets(query, lambda part: _some(part, view, options))
        misses = [replace(miss, cache=view.name) for miss in why]
        if apart is not None:
            valid.append(apart)
    if valid:
        yield min(valid, key=lambda r: r.cost)
    else:
        yield from misses


def _some(part: NormalQuery, view: PreparedPlan, options: MatchOptions) -> Iterator[Rewrite | Miss]:
    """The rewrite by the smallest view that serves, or else every view's refusal."""
    for found in _match_views(part, view, options, False, False):
        if isinstance(found, Rewrite):
            yield found
            return
    yield from _match_views(part, view, options, True, False)


def _match_views(
    query: NormalQuery,
    view: PreparedPlan,
    options: MatchOptions,
    thorough: bool,
    may_join_tables: bool,
) -> Iterator[Rewrite | Miss]:
    tried = 0
    for candidate in mappings(query, view, partly=may_join_tables):
        if tried == MAX_MAPPINGS:
            yield Miss(view.name, None, (_too_many(query),))
            return
        tried += 1
        yield from _match_mapped(candidate, view, options, thorough, may_join_tables)
    if not tried:
        yield from _match_mapped(query, view, options, thorough, may_join_tables)


def _too_many(query: NormalQuery) -> Reason:
    names = Counter(relation.name for relation in query.block.relations)
    repeated = [name for name, times in names.items() if times > 1]
    return Reason(
        ReasonCode.TOO_MANY_MAPPINGS,
        "{tables} can be laid over the cache in more than {most} ways, of which no more were tried",
        "split the query",
        tables=listed(TableName, repeated) if repeated else Word("a table"),
        most=Number(MAX_MAPPINGS),
    )


def _match_mapped(
    query: NormalQuery,
    view: PreparedPlan,
    options: MatchOptions,
    thorough: bool,
    may_join_tables: bool,
) -> Iterator[Rewrite | Miss]:
    spend(1 + query.weight // NODES_A_STEP)
    attempt = PlanAttempt(query, view, options, view.context, may_join_tables)
    try:
        for rule in PLAN_RULES:
            attempt = rule(attempt)
    except Refused as refused:
        more = _lacking_besides(attempt) if thorough else ()
        yield Miss(view.name, None, tuple(dict.fromkeys((refused.reason, *more))))
        return
    unproven = if_they_were_proven(attempt) if thorough else ()
    simple = not (thorough or may_join_tables or view.outer_joins)
    needed = _needed_keys(attempt) if simple and view.plan.is_cube else ()
    for grouping_set, mask in view.sets:
        if all(mask & bits for bits in needed):
            found = _match_view(attempt, grouping_set)
            if unproven and isinstance(found, Miss):
                found = replace(found, reasons=(*unproven, *found.reasons))
            yield found


def _lacking_besides(attempt: PlanAttempt) -> tuple[Reason, ...]:
    """What a query would be refused for if the cache's joins that do not hold did: to repair them
    alone would not help."""
    query, options, may_join = attempt.query, attempt.options, attempt.may_join_tables
    held = if_they_held(attempt.view, query.tables)
    if held is None:
        return ()
    found = list(_match_mapped(query, held, options, True, may_join))
    misses = [miss for miss in found if isinstance(miss, Miss)]
    return min(misses, key=lambda miss: miss.lacking).reasons if misses == found else ()


def match_regrouped(
    query: NormalQuery, view: PreparedPlan, options: MatchOptions
) -> Rewrite | Miss:
    """`query` from rows that are its groups already, but several a group: each aggregate is
    computed from them, even where one row would be the group.

    Args:
        query: The query; its relations have the numbers of the view's.
        view: What the rows are, not a cube; nothing is joined to it, and no cost is looked at.
        options: Session switches.
    """
    attempt = PlanAttempt(query, view, options, view.context)
    try:
        for rule in PLAN_RULES:
            attempt = rule(attempt)
        found = ViewAttempt(attempt, must_regroup=True)
        for view_rule in VIEW_RULES:
            found = view_rule(found)
        return _rewrite(found)
    except Refused as refused:
        return Miss(view.name, None, (refused.reason,), refused.lacking)


def _needed_keys(attempt: PlanAttempt) -> list[int]:
    """For each key column that filters and groups need: the mask of the cube's keys that give it
    (0: none does). A day or time may also come from any key that is computed from it."""
    context = attempt.context
    bits: dict[Expr, int] = {}
    within: dict[Expr, int] = {}
    for i, (expr, _) in enumerate(attempt.view.columns):
        canonical = context.canonical(expr)
        bits[canonical] = bits.get(canonical, 0) | 1 << i
        for part in columns(canonical):
            if part.type in _TIMES or comes_back(canonical, part):
                bits[part] = bits.get(part, 0) | 1 << i
            # a filter on it may be asked of a function of it
            within[part] = within.get(part, 0) | 1 << i
    for agg, _ in attempt.view.measures:  # may be the value of a column that the keys determine
        if agg.func in VALUE_OF_EQUALS and isinstance(agg.args[0], Col):
            bits[context.canonical(agg.args[0])] = -1
            within[context.canonical(agg.args[0])] = -1
    needed: set[int] = set()
    stack = [(p, False, True) for p in attempt.pending]
    stack += [(k, True, False) for k in attempt.query.group_keys or ()]
    while stack:
        expr, constants, partly = stack.pop()
        canonical = context.canonical(expr)
        if constants and context.constant(canonical) is not None:
            continue
        if isinstance(expr, Col):
            needed.add((within if partly else bits).get(canonical, 0))
        elif canonical not in bits:  # else it may come whole or from its parts
            # x > 5 is NULL where x is
            test = partly or (isinstance(expr, Call) and expr.op in NULL_TESTS)
            stack += [(child, constants, test) for child in expr.children]
    return list(needed)


def _match_view(shared: PlanAttempt, grouping_set: GroupingSet | None) -> Rewrite | Miss:
    spend(1 + shared.query.weight // (2 * NODES_A_STEP))
    for must_regroup in (False, True):
        attempt = ViewAttempt(shared, grouping_set, must_regroup)
        try:
            for rule in VIEW_RULES:
                attempt = rule(attempt)
            return _costed(attempt)
        except NeedsRegrouping:
            continue
        except Refused as refused:
            return Miss(shared.view.name, grouping_set, (refused.reason,), refused.lacking)
    raise AssertionError("a rolled-up attempt asked to be rolled up")


def _rewrite(attempt: ViewAttempt) -> Rewrite:
    query, groups, carried = attempt.query, attempt.groups, attempt.carried
    sets = query.block.grouping_sets
    keys = tuple(dict.fromkeys(groups.keys.values())) if groups.regroup else None
    extra = joined(attempt)
    filters = filters_in_order(attempt)
    guards = frozenset(attempt.filters.restated.values()).difference(attempt.compensating())
    return Rewrite(
        cache=attempt.view.name,
        grouping_set=attempt.grouping_set,
        filters=filters,
        guards=guards,
        group_keys=keys if sets is None else groups.set_keys,
        grouping_sets=sets,
        outputs=carried.outputs,
        having=carried.having,
        order_by=carried.order_by,
        limit=query.block.limit,
        offset=query.block.offset,
        steps=(
            *attempt.shared.steps,
            *(("roll_up",) if groups.regroup and attempt.view.keys is not None else ()),
            *(("join_again",) if attempt.notes.again else ()),
        ),
        joins_used=_declared(attempt),
        extra=extra,
        cost=rewrite_cost(
            attempt.view.plan,
            attempt.grouping_set,
            tuple(f for f in filters if f not in guards),
            passes=len(sets) if sets is not None else int(groups.regroup),
            joins=len(extra),
        ),
        by_constants=attempt.notes.by_constants,
        groups_by_constants=attempt.notes.groups_by_constants,
        left_out=attempt.shared.left_out,
    )


def _declared(attempt: ViewAttempt) -> tuple[str, ...]:
    """The record-preserving joins that are relied on, of those that somebody declared."""
    known = {join.name for join in attempt.view.joins if join not in attempt.view.plan.joins}
    used = dict.fromkeys((*attempt.shared.joins_used, *attempt.notes.joins_used))
    return tuple(name for name in used if name not in known)


def _costed(attempt: ViewAttempt) -> Rewrite:
    """The rewrite with its cost.

    Raises:
        Refused: BASE_IS_CHEAPER, unless the query's hint asks for this cache.
    """
    rewrite, plan = _rewrite(attempt), attempt.view.plan
    tables = [relation.key for relation in attempt.query.block.tables]
    sets = attempt.query.block.grouping_sets
    passes = len(sets) if sets is not None else int(attempt.query.group_keys is not None)
    base = base_cost(plan, tables, passes=passes)
    cost, joins = rewrite.cost, len(rewrite.extra)
    forced = attempt.view.name.lower() in attempt.options.forced
    if base is not None and not forced and base_is_cheaper(cost, base, joins, len(tables)):
        raise Refused(
            Reason(
                ReasonCode.BASE_IS_CHEAPER,
                "{view} would cost {cost}, the query's own tables {base}",
                "leave out columns that are not needed, PARTITION {cache} BY what is "
                "filtered, or force it: /*+ RELATIONAL_CACHE({cache}) */",
                view=attempt.view_name(),
                cost=Count(cost),
                base=Count(base),
                cache=CacheName(plan.name),
            )
        )
    return rewrite
