"""What the index knows of a cache: the columns that it mentions, and those by which tables may be
joined to it.

More than what can be served, never less: the index must lose no hit.
"""

from __future__ import annotations

from typing import Final

from matcher.model.expr import Col, columns
from matcher.normalize.normal_query import SINGLE_ROWS
from matcher.normalize.prepared_plan import PreparedPlan
from matcher.normalize.relation_numbers import OCCURRENCE
from matcher.predicates.context import PredicateContext

# With a table's number, stands for all of its columns where a plan may give each of them: it stores
# a unique key of the table, by which it may be joined again.
ANY_COLUMN: Final = ""
# Added to a table's number: the column, or one that equals it, is stored as it is.
STORED: Final = 1 << 21


def mentioned(plan: PreparedPlan) -> frozenset[tuple[int, str]]:
    """The (table, column) pairs of all that is stored or filtered by, with their equals, and what
    helps to join tables: the columns that are `STORED`, and `ANY_COLUMN`."""
    exprs = [e for e, _ in plan.columns] + [a for a, _ in plan.measures] + list(plan.predicates)
    exprs += [p for join in plan.outer_joins for p in join.conditions()]
    named = plan.context.with_equals(column for expr in exprs for column in columns(expr))
    found = frozenset((c.rel % OCCURRENCE, c.name) for c in named)
    found |= _joinable(plan)
    return found if plan.keys is not None else found | {SINGLE_ROWS}


def _joinable(plan: PreparedPlan) -> frozenset[tuple[int, str]]:
    if plan.context.is_never_true:  # no row is held, and everything is true of none
        return frozenset((rel % OCCURRENCE, ANY_COLUMN) for rel in plan.relations)
    known = plan.context
    if plan.outer_joins:  # some of these joins may be inner in a query
        conditions = (p for join in plan.outer_joins for p in join.conditions())
        known = PredicateContext((*plan.predicates, *conditions))
    stored = known.with_equals(e for e, _ in plan.columns if isinstance(e, Col))
    keys = {(c.rel, c.name) for c in stored}
    again = frozenset(
        (rel % OCCURRENCE, ANY_COLUMN)
        for rel, place in _places(plan)
        for join in plan.plan.joins
        if join.right == place and all((rel, key) in keys for _, key in join.keys)
    )
    return again | {(rel % OCCURRENCE + STORED, name) for rel, name in keys}


def fixed_tables(plan: PreparedPlan) -> frozenset[int]:
    """The tables that a query must read to be served: no record-preserving join says that they may
    be ignored."""
    found = {join.right for join in plan.joins}
    return frozenset(rel % OCCURRENCE for rel, place in _places(plan) if place not in found)


def _places(plan: PreparedPlan) -> list[tuple[int, str]]:
    """The number of each table occurrence, and its place."""
    return list(zip(plan.relations, (r.key for r in plan.plan.relations), strict=True))
