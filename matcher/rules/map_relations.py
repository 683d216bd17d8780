"""Relations: every table of the query is in the cache or can be joined to it, and the cache's extra
ones neither lose nor multiply a row.

An extra table B may be ignored if the cache joins it to a table A that stays, on exactly the keys
of a record-preserving INNER join A → B, and puts no other predicate on B (docs/contract.md;
Goldstein and Larson's cardinality-preserving joins, section 3.2). The equalities of the ignored
joins hold for every row of the query too, and are added to what its predicates say.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from matcher.model.expr import Call, Col, Expr, columns
from matcher.model.ir import RecordPreservingJoin
from matcher.model.message import CacheName, JoinName, Message, Sql, TableName, listed
from matcher.model.reasons import Reason, ReasonCode
from matcher.normalize.prepared_plan import PreparedPlan
from matcher.normalize.relation_numbers import OCCURRENCE
from matcher.predicates.context import PredicateContext, column_equality
from matcher.rules.attempt import PlanAttempt, Refused, spell
from matcher.rules.declared_joins import spell_join, why_lapsed

_JOIN_IT: Final = (
    "join {tables} in the definition of {cache}, or store there the columns that the query joins "
    "{tables} by"
)
_SAME_GROUPS: Final = (
    "join {tables} in the definition of {cache}: groups below have to be the same, in tables, "
    "joins, conditions and keys"
)


@dataclass(frozen=True, slots=True)
class Removal:
    """What is left of the cache's predicates without its extra tables, and what ignoring them
    relied on."""

    predicates: tuple[Expr, ...]
    equalities: tuple[tuple[Col, Col], ...]
    joins: tuple[str, ...]


def ignore_extra_tables(attempt: PlanAttempt) -> PlanAttempt:
    """Find the context of the query, and the cache's predicates that it must imply, without the
    tables that only the cache has.

    Args:
        attempt: The query and the cache, with what the rules before have found.

    Raises:
        Refused: EXTRA_TABLE_NOT_PRESERVING or EXTRA_TABLE_FILTERED.

    >>> from matcher.examples import answer
    >>> answer(
    ...     "SELECT class, qty FROM sales JOIN items ON sales.item = items.item",
    ...     "SELECT SUM(qty) AS a FROM sales",
    ... )
    SELECT SUM(`qty`) AS `a` FROM c
    >>> answer(
    ...     "SELECT city, qty FROM sales JOIN stores ON sales.store = stores.store",
    ...     "SELECT SUM(qty) AS a FROM sales",
    ... )
    EXTRA_TABLE_NOT_PRESERVING: cache c also joins stores, and nothing says that this join
    keeps each row exactly once
    """
    view, query = attempt.view, attempt.query
    shared = query.tables & view.tables
    if len(shared) == view.table_count:
        return replace(attempt, context=query.context(), required=view.predicates)
    memo_key = (shared | attempt.ignored, attempt.options.trust_unvalidated)
    found = view.removals.get(memo_key)
    if found is None:
        found = _remove_extra(view, shared | attempt.ignored, attempt.options.trust_unvalidated)
        view.removals[memo_key] = found
    if isinstance(found, Reason):
        raise Refused(found)
    assert isinstance(found, Removal)
    return replace(
        attempt,
        context=query.context(found.equalities),
        required=found.predicates,
        joins_used=(*attempt.joins_used, *found.joins),
        steps=(*attempt.steps, "ignore_extra_tables"),
    )


def join_absent_tables(attempt: PlanAttempt) -> PlanAttempt:
    """Join the tables that the cache does not have to it, where that is allowed.

    Args:
        attempt: The query and the cache, with what the rules before have found.

    Raises:
        Refused: TABLE_NOT_IN_CACHE.

    >>> from matcher.examples import answer
    >>> answer(
    ...     "SELECT id, qty FROM sales",
    ...     "SELECT city FROM sales JOIN stores ON sales.store = stores.store",
    ... )
    PREDICATE_COLUMN_MISSING: cache c lacks store (needed for filter)
    TABLE_NOT_IN_CACHE: cache c does not read stores
    """
    query = attempt.query
    shared = query.tables & attempt.view.tables
    if len(shared) == len(query.tables):
        return attempt
    absent = tuple(rel for rel in query.relations if rel not in shared)
    outer_tables = [
        rel for join in query.outer_joins for rel in query.relations if rel in join.right
    ]
    absent = tuple(
        sorted(absent, key=lambda rel: outer_tables.index(rel) + 1 if rel in outer_tables else 0)
    )
    groups = any(query.relation(rel).groups is not None for rel in absent)
    if attempt.may_join_tables and shared and not groups:
        return replace(attempt, extra=absent, steps=(*attempt.steps, "join_tables"))
    names = sorted(_table_name(attempt, rel) for rel in absent)
    raise Refused(
        Reason(
            ReasonCode.TABLE_NOT_IN_CACHE,
            "cache {cache} does not read {tables}",
            _SAME_GROUPS if groups else _JOIN_IT,
            cache=CacheName(attempt.view.name),
            tables=listed(TableName, names),
        )
    )


def _remove_extra(view: PreparedPlan, keep: frozenset[int], trust: bool) -> Removal | Reason:
    present = set(view.relations)
    predicates = view.context.conjuncts
    equalities: list[tuple[Col, Col]] = []
    joins: list[str] = []
    usable = [j for j in view.plan.joins if j.validated or trust]
    while left := sorted(present - keep):
        ways = (_way(view, extra, present, predicates, usable) for extra in left)
        way = next((found for found in ways if found is not None), _Way(left[0]))
        if not way.joins:
            return _why_not(view, way.table, predicates)
        predicates = _about(predicates, way.table, False)
        equalities += way.equalities
        joins += way.joins
        present.discard(way.table)
    return Removal(predicates, tuple(equalities), tuple(joins))


@dataclass(frozen=True, slots=True)
class _Way:
    """How an extra table may be ignored: by which record-preserving join (by none, it may not),
    and the equalities of that."""

    table: int
    equalities: tuple[tuple[Col, Col], ...] = ()
    joins: tuple[str, ...] = ()


def _way(
    view: PreparedPlan,
    extra: int,
    present: set[int],
    predicates: tuple[Expr, ...],
    usable: list[RecordPreservingJoin],
) -> _Way | None:
    touching = _about(predicates, extra, True)
    context = PredicateContext(_about(predicates, extra, False))
    for join in usable:
        if not join.finds_each or join.right != view.relation(extra).key:
            continue
        for anchor in present - {extra}:
            if view.relation(anchor).key == join.left:
                pairs = _only_join_keys(touching, extra, anchor, join, context)
                if pairs is not None:
                    return _Way(extra, tuple(pairs), (join.name,))
    return None


def _about(predicates: tuple[Expr, ...], table: int, about: bool) -> tuple[Expr, ...]:
    """The predicates that name a column of the table, or those that do not."""
    return tuple(p for p in predicates if any(c.rel == table for c in columns(p)) is about)


def _only_join_keys(
    touching: tuple[Expr, ...],
    extra: int,
    anchor: int,
    join: RecordPreservingJoin,
    context: PredicateContext,
) -> list[tuple[Col, Col]] | None:
    """What the columns of the extra table's key are equal to, if it is joined by the keys of the
    join, all of them and nothing else.

    Each is equal to the anchor's own column of the join, whatever else the cache joins it by: that
    another column equals this one is a predicate of the cache, which the query must imply by
    itself.
    """
    left_of = {right: left for left, right in join.keys}
    pairs: list[tuple[Col, Col]] = []
    for predicate in touching:
        pair = column_equality(predicate)
        if pair is None:
            if _is_not_null_of_key(predicate, extra, left_of):
                continue
            return None
        inner, outer = pair if pair[0].rel == extra else (pair[1], pair[0])
        if outer.rel == extra or inner.name not in left_of:
            return None
        expected = Col(anchor, left_of[inner.name], outer.type)
        if context.find(outer) != context.find(expected):
            return None
        pairs.append((outer if outer == expected else expected, inner))
    return pairs if {inner.name for _, inner in pairs} == set(left_of) else None


def _is_not_null_of_key(predicate: Expr, extra: int, left_of: dict[str, str]) -> bool:
    if not isinstance(predicate, Call) or predicate.op != "isnotnull":
        return False
    operand = predicate.args[0]
    return isinstance(operand, Col) and operand.rel == extra and operand.name in left_of


def _why_not(view: PreparedPlan, extra: int, predicates: tuple[Expr, ...]) -> Reason:
    name = view.relation(extra).name
    declared = [j for j in view.plan.joins if j.finds_each and j.right == view.relation(extra).key]
    if not declared:
        why, cure = _why_not_preserving(view, extra, predicates)
        return Reason(
            ReasonCode.EXTRA_TABLE_NOT_PRESERVING,
            "cache {cache} also joins {table}, and {why}",
            "{cure}",
            cache=CacheName(view.name),
            table=TableName(name),
            why=why,
            cure=cure,
        )
    touching = [spell(p) for p in _about(predicates, extra, True)]
    return Reason(
        ReasonCode.EXTRA_TABLE_FILTERED,
        "cache {cache} joins {table} by more or other than the keys of {join}: {touching}",
        "drop the predicate on {table} from the definition of {cache}",
        cache=CacheName(view.name),
        table=TableName(name),
        join=JoinName(declared[0].name),
        touching=listed(Sql, touching, " AND "),
    )


def _why_not_preserving(
    view: PreparedPlan, extra: int, predicates: tuple[Expr, ...]
) -> tuple[Message, Message]:
    """Why nothing may be relied on that says that a join keeps each row once, and what to do."""
    lapsed = why_lapsed(view, (extra,), finding_each=True)
    if lapsed is not None:
        return lapsed
    loose = [j for j in view.joins if j.validated and j.right == view.relation(extra).key]
    if loose:
        groups = view.relation(extra).groups is not None
        return (
            Message("a row finds one of its groups or none")
            if groups
            else Message(
                "by record-preserving join {join} a row finds one of it or none",
                join=JoinName(loose[0].name),
            ),
            Message(
                "join it by LEFT JOIN in the definition of {cache}", cache=CacheName(view.name)
            ),
        )
    why = Message("nothing says that this join keeps each row exactly once")
    table = TableName(view.relation(extra).name)
    declared = spell_join(view, extra, predicates, "INNER")
    if declared is None:
        return why, Message("declare a cache without {table}", table=table)
    return why, Message(
        "declare CREATE RECORD PRESERVING JOIN … AS {join} if each row finds exactly one, or a "
        "cache without {table}",
        join=Sql(declared),
        table=table,
    )


def _table_name(attempt: PlanAttempt, rel: int) -> str:
    name = attempt.query.relation(rel).name
    return name if rel < OCCURRENCE else f"{name} (again)"
