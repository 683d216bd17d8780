"""When a block of the text door and one of the Catalyst door say the same.

Catalyst has optimised what it shows: filters are pushed down (those of HAVING on group keys too),
`IS NOT NULL` is added where it follows, constants are folded, constant group keys and columns that
nobody reads are gone, and HAVING, ORDER BY and LIMIT stand above the block. So blocks are compared
by what they mean: the same tables; predicates that imply each other; the same group keys, grouping
sets and outputs in canonical spelling.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import permutations, product

from matcher.model.expr import Agg, Call, Expr, Lit, aggregates, columns, transform
from matcher.model.ir import Block, Relation
from matcher.normalize.normal_query import NormalQuery
from matcher.normalize.relation_numbers import Interner, occurrences
from matcher.predicates.context import PredicateContext, column_equality, fixed_columns
from matcher.predicates.implication import implies


def differences(text: Block, spark: Block, *, whole: bool = True) -> list[str]:
    """What tells the two blocks apart; nothing if they mean the same.

    Args:
        text: the text door's block.
        spark: the Catalyst door's, its relations under the text door's keys.
        whole: the query's own outputs are compared, in order; else (a block below others) Catalyst
            may have left out columns that nobody reads.
    """
    if Counter(r.key for r in text.relations) != Counter(r.key for r in spark.relations):
        return [f"tables {_names(text.relations)} and {_names(spark.relations)}"]
    intern = Interner()
    mine = NormalQuery(pushed_having(text), occurrences(intern(r.key) for r in text.relations))
    rels = occurrences(intern(r.key) for r in spark.relations)
    found: list[list[str]] = []
    for other in _assignments(rels):
        found.append(_compare(mine, NormalQuery(spark, other), whole))
        if not found[-1]:
            return []
    return min(found, key=len)


def pushed_having(block: Block) -> Block:
    """`block` with the conjuncts of HAVING that read group keys alone in its WHERE."""
    if not block.group_keys or block.grouping_sets is not None:
        return block
    down = tuple(h for h in block.having if not aggregates(h) and columns(h))
    kept = tuple(h for h in block.having if h not in down)
    return replace(block, predicates=(*block.predicates, *down), having=kept)


def _names(relations: Iterable[Relation]) -> str:
    return ", ".join(r.key for r in relations)


def _assignments(rels: tuple[int, ...]) -> Iterable[tuple[int, ...]]:
    """The numbers with the occurrences of each table in any order."""
    by_table: dict[int, list[int]] = {}
    for position, rel in enumerate(rels):
        by_table.setdefault(rel % (1 << 20), []).append(position)
    for choice in product(*(permutations(places) for places in by_table.values())):
        made = list(rels)
        for places, shuffled in zip(by_table.values(), choice, strict=True):
            for old, new in zip(places, shuffled, strict=True):
                made[old] = rels[new]
        yield tuple(made)


def _compare(text: NormalQuery, spark: NormalQuery, whole: bool) -> list[str]:
    mine, theirs = text.context(), spark.context()
    found = [f"only Catalyst has {p!r}" for p in spark.predicates if not implies(mine, p)]
    found += [
        f"only the text has {p!r}"
        for p in text.predicates
        if not implies(theirs, p) and not _same_constant(p, theirs)
    ]
    fixed = fixed_columns(text.predicates)
    if {j.where_fixed(fixed) for j in text.outer_joins} != {
        j.where_fixed(fixed) for j in spark.outer_joins
    }:
        found.append(f"outer joins {text.outer_joins!r} and {spark.outer_joins!r}")
    if (text.group_keys is None) != (spark.group_keys is None):
        return [*found, "only one aggregates"]
    if _keys(text, mine) != _keys(spark, mine):
        found.append(f"group keys {text.group_keys!r} and {spark.group_keys!r}")
    if _sets(text) != _sets(spark):
        found.append(f"grouping sets {text.block.grouping_sets} and {spark.block.grouping_sets}")
    return found + _outputs(text, spark, mine, whole)


def _same_constant(predicate: Expr, context: PredicateContext) -> bool:
    """True for an equality of two columns for each of which Spark has put the same constant."""
    pair = column_equality(predicate)
    values = [context.constant(context.canonical(side)) for side in pair or ()]
    return len(values) == 2 and values[0] is not None and values[0] == values[1]


def _keys(query: NormalQuery, context: PredicateContext) -> set[Expr]:
    """Canonical group keys; constants do not group."""
    found = {context.canonical(k) for k in query.group_keys or ()}
    return {k for k in found if not isinstance(k, Lit) and context.constant(k) is None}


def _sets(query: NormalQuery) -> Counter[frozenset[Expr]] | None:
    sets, keys = query.block.grouping_sets, query.group_keys or ()
    return None if sets is None else Counter(frozenset(keys[i] for i in s) for s in sets)


def _outputs(
    text: NormalQuery, spark: NormalQuery, context: PredicateContext, whole: bool
) -> list[str]:
    mine = [_output(o.expr, context) for o in text.outputs]
    theirs = [_output(o.expr, context) for o in spark.outputs]
    kinds = {e: e.type for e in mine}
    found = [
        f"{e!r} is {kinds[e]} and {e.type}" for e in theirs if e in kinds and kinds[e] != e.type
    ]
    tail = [*text.having, *(k.expr for k in text.order_by)]
    if whole and not tail and not _twice(mine):
        return found if mine == theirs else [*found, f"outputs {mine!r} and {theirs!r}"]
    known = {*mine, *_keys(text, context)}
    for expr in (*mine, *(_output(e, context) for e in tail)):
        known.update((expr, *aggregates(expr), *columns(expr)))
    found += [f"Catalyst puts out {e!r}" for e in theirs if not _computed(e, known)]
    lost = [e for e in mine if whole and not _computed(e, set(theirs))]
    return found + [f"Catalyst does not put out {e!r}" for e in lost]


def _twice(outputs: list[Expr]) -> bool:
    """True if an output uses an aggregate twice: Spark then computes it above the block
    (CollapseProject computes nothing twice)."""
    return any(len(set(found)) < len(found) for found in map(aggregates, outputs))


def _output(expr: Expr, context: PredicateContext) -> Expr:
    """Canonical, and a constant where the predicates leave one value only."""
    canonical = context.canonical(expr)
    fixed = context.constant(canonical)
    return transform(canonical, _counted) if fixed is None else fixed


def _counted(expr: Expr) -> Expr | None:
    """COUNT of what is never NULL counts rows."""
    if isinstance(expr, Agg) and expr.func == "count" and not expr.distinct:
        if all(not a.nullable for a in expr.args):
            return Agg("count", (), expr.type, False, filter=expr.filter)
    return None


def _computed(expr: Expr, known: set[Expr]) -> bool:
    """True if `expr` is among `known` or an expression over them."""
    if expr in known or isinstance(expr, Lit):
        return True
    return isinstance(expr, Call) and all(_computed(a, known) for a in expr.args)
