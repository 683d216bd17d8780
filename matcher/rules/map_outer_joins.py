"""Outer, semi and anti joins: those of the cache and of the query are the same, or what differs
neither loses, repeats nor changes a row.

- The same join (kind, tables, condition) on both sides: nothing to do. Filters stand above it.
- A LEFT or SEMI join by exactly the keys of a record-preserving INNER join finds one row for each:
  it is the inner join, on either side.
- The cache has a LEFT join more: it may be ignored if a unique key of its one table stands in the
  condition, so that it finds at most one row, and the cache has no predicate on that table.
- The query has an inner join where the cache has LEFT: the rows for which nothing was found are
  filtered out, by a stored column of that side that is never NULL where something was found, or by
  a filter of the query's that no NULL of that side passes.
- The query outer-joins a table that the cache does not have: it is joined to the cache.

All else is refused: rows that are missing cannot be made up, and a stricter ON of a LEFT join
changes rows and drops none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from matcher.model.expr import Call, Col, Expr, columns, transform
from matcher.model.ir import OuterJoin, RecordPreservingJoin, Relation
from matcher.model.message import (
    NOTHING,
    CacheName,
    JoinName,
    Message,
    Several,
    Sql,
    TableName,
    Word,
    joined,
    listed,
)
from matcher.model.reasons import Reason, ReasonCode
from matcher.normalize.normal_query import NormalQuery
from matcher.normalize.outer_join_keys import OuterJoinKey
from matcher.normalize.prepared_plan import PreparedPlan
from matcher.predicates.context import PredicateContext, column_equality, fixed_columns
from matcher.predicates.implication import implies
from matcher.rules.attempt import PlanAttempt, Refused, ViewAttempt, spell, stored
from matcher.rules.declared_joins import spell_join, unvalidated, why_lapsed

_MOST_NAMED: Final = 3


def with_inner_joins(attempt: PlanAttempt) -> PlanAttempt:
    """Put inner joins for the LEFT and SEMI joins of query and cache that find exactly one row for
    each.

    Args:
        attempt: The query and the cache, with what the rules before have found.

    >>> from matcher.examples import answer
    >>> answer(
    ...     "SELECT id, name FROM sales LEFT JOIN items ON sales.item = items.item",
    ...     "SELECT id, name FROM sales JOIN items ON sales.item = items.item",
    ... )
    SELECT `id`, `name` FROM c
    """
    query, view = attempt.query, attempt.view
    if not query.outer_joins and not view.outer_joins:
        return attempt
    places = {relation.key for relation in view.plan.relations}
    joins = tuple(
        j
        for j in view.plan.joins
        if (j.validated or attempt.options.trust_unvalidated) and j.right in places
    )
    block = query.block
    found = _preserved(block.relations, block.predicates, block.outer, joins)
    if found is not None:
        predicates, outer, names = found
        inner = replace(block, predicates=predicates, outer=outer)
        query = NormalQuery(inner, query.relations)
        attempt = replace(attempt, query=query, joins_used=(*attempt.joins_used, *names))
    plan = view.plan
    found = _preserved(plan.relations, plan.predicates, plan.outer, joins)
    if found is not None:
        predicates, outer, names = found
        view = view.variant(replace(plan, predicates=predicates, outer=outer), joins)
        attempt = replace(attempt, view=view, joins_used=(*attempt.joins_used, *names))
    return replace(attempt, context=view.context)


def _preserved(
    relations: tuple[Relation, ...],
    predicates: tuple[Expr, ...],
    outer: tuple[OuterJoin, ...],
    joins: Iterable[RecordPreservingJoin],
) -> tuple[tuple[Expr, ...], tuple[OuterJoin, ...], tuple[str, ...]] | None:
    left = list(outer)
    names: list[str] = []
    again = True
    while again:
        again = False
        outer_tables = {rel for join in left for rel in join.right}
        for join in left:
            name = _keeps_each_row(relations, join, outer_tables, joins)
            if name is not None:
                predicates = (*predicates, *join.on)
                left.remove(join)
                names.append(name)
                again = True
                break
    return (predicates, tuple(left), tuple(names)) if names else None


def _keeps_each_row(
    relations: tuple[Relation, ...],
    candidate: OuterJoin,
    nullable: set[int],
    joins: Iterable[RecordPreservingJoin],
) -> str | None:
    """The record-preserving join that a LEFT or SEMI join is, from a table whose rows are all
    real."""
    if candidate.kind not in ("left", "semi") or len(candidate.right) != 1:
        return None
    pairs = [column_equality(p) for p in candidate.on]
    sides = [_sides(pair, candidate.right[0]) for pair in pairs if pair is not None]
    if len(sides) != len(candidate.on) or len({outer.rel for outer, _ in sides}) != 1:
        return None
    anchor = sides[0][0].rel
    given = {(outer.name, inner.name) for outer, inner in sides if inner.rel == candidate.right[0]}
    for join in joins:
        same = (
            join.finds_each
            and join.left == relations[anchor].key
            and join.right == relations[candidate.right[0]].key
        )
        if same and anchor not in nullable and set(join.keys) == given and len(given) == len(sides):
            return join.name
    return None


def _sides(pair: tuple[Col, Col], right: int) -> tuple[Col, Col]:
    return (pair[1], pair[0]) if pair[0].rel == right else pair


def map_outer_joins(attempt: PlanAttempt) -> PlanAttempt:
    """Find `inner_of`, `extra_outer_joins` and `ignored`.

    Args:
        attempt: The query and the cache, with what the rules before have found.

    Raises:
        Refused: OUTER_JOIN_DIFFERS where a join of one side has no counterpart.

    >>> from matcher.examples import answer
    >>> answer(
    ...     "SELECT id, stores.store AS s, city FROM sales LEFT JOIN stores ON sales.store = "
    ...     "stores.store",
    ...     "SELECT id, city FROM sales JOIN stores ON sales.store = stores.store",
    ... )
    SELECT `id`, `city` FROM c WHERE (`s` IS NOT NULL)
    >>> answer(
    ...     "SELECT id, city FROM sales JOIN stores ON sales.store = stores.store",
    ...     "SELECT id, city FROM sales LEFT JOIN stores ON sales.store = stores.store",
    ... )
    OUTER_JOIN_DIFFERS: cache c has no LEFT JOIN stores ON (store = store), as the query has
    """
    query, view = attempt.query, attempt.view
    if not query.outer_joins and not view.outer_joins:
        return attempt
    fixed = fixed_columns(query.predicates)
    theirs = {join.where_fixed(fixed): join for join in view.outer_joins}
    mine: set[OuterJoinKey] = set()
    extra_outer_joins: list[OuterJoinKey] = []
    for join in query.outer_joins:
        same = theirs.get(join.where_fixed(fixed))
        if same is not None:
            mine.add(same)
            continue
        if attempt.may_join_tables and join.right <= set(attempt.extra) and len(join.right) == 1:
            extra_outer_joins.append(join)
            continue
        raise Refused(_not_in_cache(attempt, join))
    inner_of: list[OuterJoinKey] = []
    ignored: frozenset[int] = frozenset()
    names: list[str] = []
    for join in reversed(view.outer_joins):  # what is joined to a table goes before the table
        if join in mine:
            continue
        finds_one = _finds_at_most_one(attempt, join, ignored)
        if finds_one is not None:
            ignored |= join.right
            names.append(finds_one)
            continue
        if join.kind != "left" or not join.right <= query.tables:
            raise Refused(not_in_query(attempt, join))
        if any(not join.right.isdisjoint(other.right) for other in query.outer_joins):
            raise Refused(not_in_query(attempt, join))
        inner_of.append(join)
    return replace(
        attempt,
        extra_outer_joins=tuple(extra_outer_joins),
        inner_of=tuple(inner_of),
        ignored=ignored,
        joins_used=(*attempt.joins_used, *names),
    )


def check_conditions(attempt: PlanAttempt) -> PlanAttempt:
    """Check that the query's inner joins imply the conditions of the cache's LEFT ones that stand
    for them; then these hold for all rows that pass the filter on found ones.

    Raises:
        Refused: OUTER_JOIN_DIFFERS where the query does not ask for one.
    """
    for join in attempt.inner_of:
        for part in sorted(join.on, key=repr):
            if not implies(attempt.context, part):
                raise Refused(not_in_query(attempt, join, part))
    if not (attempt.inner_of or attempt.kept):
        return attempt
    on = [p for join in attempt.inner_of for p in join.on]
    filtered = PredicateContext((*attempt.view.predicates, *on)) if on else attempt.filtered
    return replace(attempt, filtered=filtered, steps=(*attempt.steps, "filter_found"))


def filter_found(
    attempt: ViewAttempt,
) -> tuple[list[Expr], dict[frozenset[int], frozenset[Col]]]:
    """The filters that keep the rows for which the cache's LEFT joins found something.

    Args:
        attempt: The query and the view, with what the rules before have found.

    Returns:
        The filters, and for each join that no stored column tells of the columns that would, by
        the tables that it joins.
    """
    shared = attempt.shared
    found_there = [(join.right, _never_null_where_found(join)) for join in shared.inner_of]
    filters: list[Expr] = []
    untold: dict[frozenset[int], frozenset[Col]] = {}
    for rels, telling in (*shared.kept, *found_there):
        for expr, column in attempt.view.stored(attempt.grouping_set):
            if expr in telling:
                found = stored(column, expr)
                attempt.notes.used.add(column.name)
                filters.append(Call("isnotnull", (found,), "boolean", False))
                break
        else:
            untold[rels] = telling
    return filters, untold


def check_found(
    attempt: ViewAttempt,
    untold: Mapping[frozenset[int], frozenset[Col]],
    filters: Iterable[Expr],
) -> None:
    """Check that the query's own filters, as they stand over the cache, keep no row for which a
    join found nothing, where no stored column tells: there all columns of its tables are NULL.

    Args:
        attempt: The query and the view.
        untold: From `filter_found`.
        filters: The filters over the cache's columns.

    Raises:
        Refused: OUTER_JOIN_DIFFERS where a row that lacks the tables of a join may pass.
    """
    if not untold:
        return
    own = {c.name: expr for expr, c in attempt.view.stored(attempt.grouping_set)}
    rejected: set[int] = set()
    for each in filters:
        if all(column.rel == 0 and column.name in own for column in columns(each)):
            over_tables = transform(each, lambda e: own[e.name] if isinstance(e, Col) else None)
            rejected |= PredicateContext((over_tables,)).rejected()
    passing = {rels: telling for rels, telling in untold.items() if rels.isdisjoint(rejected)}
    if passing:
        raise Refused(_cannot_tell(attempt, passing), lacking=len(passing))


def _never_null_where_found(join: OuterJoinKey) -> frozenset[Col]:
    known = set(join.declared)
    context = PredicateContext(join.on)
    known.update(c for p in join.on for c in columns(p) if context.never_null(context.find(c)))
    return frozenset(c for c in known if c.rel in join.right)


def _finds_at_most_one(
    attempt: PlanAttempt, join: OuterJoinKey, ignored: frozenset[int]
) -> str | None:
    """The record-preserving join by which a LEFT join of a table that the query does not read
    finds at most one row; None where it may find more, or the table matters.

    Args:
        attempt: the query and the cache.
        join: one of the cache's.
        ignored: tables of such joins, whose conditions matter no more.
    """
    view = attempt.view
    if (
        join.kind != "left"
        or len(join.right) != 1
        or not join.right.isdisjoint(attempt.query.tables)
    ):
        return None
    (rel,) = join.right
    others = [o for o in view.outer_joins if o is not join and not o.right <= ignored]
    if any(other.mentions(rel) for other in others):
        return None
    if any(c.rel == rel for p in view.predicates for c in columns(p)):
        return None
    place = view.relation(rel).key
    bound = {
        inner.name
        for pair in map(column_equality, join.on)
        if pair is not None
        for outer, inner in [_sides(pair, rel)]
        if inner.rel == rel and outer.rel != rel
    }
    for known in view.joins:
        usable = known.validated or attempt.options.trust_unvalidated
        if usable and known.right == place and {right for _, right in known.keys} <= bound:
            return known.name
    return None


def _tables(attempt: PlanAttempt, rels: Iterable[int]) -> Several:
    view, query = attempt.view, attempt.query
    sides = ((view if rel in view.relations else query, rel) for rel in sorted(rels))
    return listed(TableName, (side.relation(rel).name for side, rel in sides))


def _names(attempt: PlanAttempt, rels: Iterable[int]) -> str:
    return str(Message("{tables}", tables=_tables(attempt, rels)))


def _words(attempt: PlanAttempt, join: OuterJoinKey) -> Sql:
    on = " AND ".join(sorted(map(spell, join.on))) or "TRUE"
    if join.kind == "full":
        left, right = sorted(_side(attempt, *side) for side in join.sides)
        return Sql(f"{left} FULL JOIN {right} ON {on}")
    return Sql(f"{join.kind.upper()} JOIN {_names(attempt, join.right)} ON {on}")


def _side(attempt: PlanAttempt, rels: frozenset[int], where: frozenset[Expr]) -> str:
    names = _names(attempt, rels)
    return f"({names} WHERE {' AND '.join(sorted(map(spell, where)))})" if where else names


def _not_in_cache(attempt: PlanAttempt, join: OuterJoinKey) -> Reason:
    fault = Message(
        "cache {cache} has no {join}, as the query has",
        cache=CacheName(attempt.view.name),
        join=_words(attempt, join),
    )
    # an INNER join that keeps each row is as good as a LEFT one
    inner = join.right if join.kind == "left" else ()
    lapsed = why_lapsed(attempt.view, inner, finding_each=True)
    if lapsed is not None:
        why, cure = lapsed
        return Reason(
            ReasonCode.OUTER_JOIN_DIFFERS,
            "{fault}, and {why}",
            "{cure}",
            fault=fault,
            why=why,
            cure=cure,
        )
    remedy = "declare a cache with this very join"
    if join.kind != "full":
        remedy += ", or one without {tables} that stores the columns of its condition"
    tables = _tables(attempt, join.right)
    return Reason(ReasonCode.OUTER_JOIN_DIFFERS, "{fault}", remedy, fault=fault, tables=tables)


def not_in_query(attempt: PlanAttempt, join: OuterJoinKey, part: Expr | None = None) -> Reason:
    fault = Message(
        "the query has no {join}, as cache {cache} has",
        join=_words(attempt, join),
        cache=CacheName(attempt.view.name),
    )
    if join.kind == "full":
        return Reason(
            ReasonCode.OUTER_JOIN_DIFFERS,
            "{fault}",
            "declare a cache with the query's own join: of a FULL join only all rows of one side "
            "or of both can be told apart",
            fault=fault,
        )
    but = NOTHING
    if part is not None:
        but = Message(", and the query does not ask for {part}", part=Sql(spell(part)))
    cure = Message(
        "declare a cache without this join of {tables}",
        tables=_tables(attempt, join.right),
    )
    # no declared join says anything of what the query reads
    if join.right.isdisjoint(attempt.query.tables):
        lapsed = why_lapsed(attempt.view, join.right, finding_each=False)
        if lapsed is not None:
            but, cure = Message(", and {why}", why=lapsed[0]), lapsed[1]
        elif join.kind == "left" and len(join.right) == 1:
            cure = joined((cure, _join_to_rely_on(attempt.view, join)), "")
    return Reason(
        ReasonCode.OUTER_JOIN_DIFFERS, "{fault}{but}", "{cure}", fault=fault, but=but, cure=cure
    )


def _join_to_rely_on(view: PreparedPlan, join: OuterJoinKey) -> Message:
    (rel,) = join.right
    waiting = unvalidated(view, rel)
    if waiting is not None:
        return Message(", or VALIDATE RECORD PRESERVING JOIN {join}", join=JoinName(waiting))
    declared = spell_join(view, rel, join.on, "LEFT")
    if declared is None:
        return NOTHING
    return Message(
        ", or CREATE RECORD PRESERVING JOIN … AS {join}, if it finds at most one row",
        join=Sql(declared),
    )


def _cannot_tell(attempt: ViewAttempt, passing: Mapping[frozenset[int], frozenset[Col]]) -> Reason:
    tables = [_names(attempt.shared, rels) for rels in passing]
    columns = [
        " or ".join(sorted(map(spell, telling))[:_MOST_NAMED]) or "a column that is never NULL"
        for telling in passing.values()
    ]
    wanted = [f"{column} of {table}" for column, table in zip(columns, tables, strict=True)]
    return Reason(
        ReasonCode.OUTER_JOIN_DIFFERS,
        "{view} also has rows for which {tables} was not found, and stores no column that tells "
        "them apart",
        "add {wanted} to the {clause} list of {cache}, or filter by one of its columns so that no "
        "NULL passes",
        view=attempt.view_name(),
        tables=listed(TableName, tables, " or "),
        wanted=listed(Sql, wanted, " and "),
        clause=Word("GROUP BY" if attempt.view.keys is not None else "SELECT"),
        cache=CacheName(attempt.view.name),
    )
