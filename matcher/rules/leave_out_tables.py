"""Tables of the query that the cache does not have, and that the query would be the same without.

A query joins B to A by exactly the keys of a record-preserving INNER join A → B, and names no other
column of B: each row of A finds exactly one of B, so the query without B gives the same rows
(Goldstein and Larson's cardinality-preserving joins, here on the query's side; what an optimiser
calls join elimination). What it says of B's keys it says of A's. A LEFT join by a unique key of B
loses and repeats no row either, if nothing of B is named outside of it. So a cube over one role of
a star answers the view that joins all of them.

The join must hold for the very rows of A and B that the query reads, and for the columns that have
the names of its keys there: it is one of `MatchOptions.keys`. What a cache knows of its own
snapshot is not enough, since a cache stays exact where a column that it does not read became
another one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from matcher.model.budget import spend
from matcher.model.expr import Call, Col, Expr, columns, conjuncts, transform
from matcher.model.ir import Block, LeftOut, OuterJoin, RecordPreservingJoin
from matcher.model.message import CacheName, JoinName, TableName, Word
from matcher.model.reasons import Reason, ReasonCode
from matcher.normalize.normal_query import NormalQuery
from matcher.predicates.context import PredicateContext, column_equality
from matcher.rules.attempt import PlanAttempt

# So many nodes of a query are looked at in a step.
_NODES_A_STEP: Final = 8


def leave_out_tables(attempt: PlanAttempt) -> PlanAttempt:
    """Take the query without the tables that the cache lacks and that change nothing in it.

    Args:
        attempt: The query and the cache, with what the rules before have found.

    >>> from matcher.examples import answer
    >>> answer(
    ...     "SELECT store, SUM(qty) AS q FROM sales GROUP BY store",
    ...     "SELECT store, SUM(qty) AS q FROM sales JOIN items USING (item) GROUP BY store",
    ... )
    SELECT `store`, `q` FROM c
    """
    query, view = attempt.query, attempt.view
    if not attempt.may_join_tables or query.tables <= view.tables:
        return attempt
    absent = query.tables - view.tables
    if absent == query.tables:
        return attempt
    if not attempt.options.keys:
        return attempt
    shorter, left_out = _without_absent(query, absent, attempt.options.keys)
    if not left_out:
        return attempt
    return replace(
        attempt,
        query=shorter,
        left_out=left_out,
        joins_used=(*attempt.joins_used, *(out.join.name for out in left_out)),
        steps=(*attempt.steps, "leave_out_tables"),
    )


def if_they_were_proven(attempt: PlanAttempt) -> tuple[Reason, ...]:
    """Why tables that the query joins besides are not left out, where that would do but for joins
    that are declared and not proven for what the query reads.

    Args:
        attempt: The query and the cache.
    """
    query, options = attempt.query, attempt.options
    absent = query.tables - attempt.view.tables
    if not options.lapsed or not attempt.may_join_tables or absent in (query.tables, frozenset()):
        return ()
    lapsed = {lapsed.join: lapsed for lapsed in options.lapsed}
    proven = tuple(key for key in options.keys if key.finds_each)
    _, left_out = _without_absent(query, absent, (*proven, *lapsed))
    return tuple(
        _not_proven(attempt.view.name, out, lapsed[out.join].broken)
        for out in left_out
        if out.join in lapsed
    )


def _not_proven(cache: str, out: LeftOut, broken: bool) -> Reason:
    if broken:
        why = "does not hold: some row has no partner, or several"
        remedy = (
            "SHOW RECORD PRESERVING JOINS names one; correct it, then "
            "VALIDATE RECORD PRESERVING JOIN {join}"
        )
    else:
        why = "is not proven for the tables as they are now"
        remedy = (
            "VALIDATE RECORD PRESERVING JOIN {join}, or REFRESH RELATIONAL CACHE {cache} after "
            "new rows"
        )
    return Reason(
        ReasonCode.EXTRA_TABLE_NOT_PRESERVING,
        "the query joins {table} and names nothing of it but its key, so it could be left out, "
        "but record-preserving join {join} {why}",
        remedy,
        table=TableName(out.table),
        join=JoinName(out.join.name),
        why=Word(why),
        cache=CacheName(cache),
    )


def may_be_left_out(query: NormalQuery, joins: Iterable[RecordPreservingJoin]) -> frozenset[int]:
    """The tables of a query of which it names no column but the keys of such a join: a look that
    is quick, for the index.

    Args:
        query: The query.
        joins: What is known to hold in the tables as the query reads them.
    """
    by_table: dict[str, list[set[str]]] = {}
    for join in joins:
        if join.finds_each:
            by_table.setdefault(join.right, []).append({right for _, right in join.keys})
    if not by_table:
        return frozenset()
    block = query.block
    conditions = [p for whole in block.predicates for p in conjuncts(whole)]
    conditions += [p for outer in block.outer for p in outer.conditions()]
    parts = [columns(p) for p in conditions]
    shown = (*(block.group_keys or ()), *block.shown())
    parts += [columns(expr) for expr in shown]
    found: set[int] = set()
    while True:  # what joins a table that is left out is not asked for either
        named: dict[int, set[str]] = {}
        for part in parts:
            if found.isdisjoint(c.rel for c in part):
                for column in part:
                    named.setdefault(column.rel, set()).add(column.name)
        more = {
            number
            for number, table in enumerate(block.relations)
            if number not in found
            and any(named.get(number, set()) <= keys for keys in by_table.get(table.key, ()))
        }
        if not more:
            return frozenset(query.relations[number] for number in found)
        found |= more


def _without_absent(
    query: NormalQuery, absent: frozenset[int], joins: tuple[RecordPreservingJoin, ...]
) -> tuple[NormalQuery, tuple[LeftOut, ...]]:
    """The query without those of the tables that joins let it be without, remembered."""
    key = (absent, joins)
    found = query.shorter.get(key)
    if found is None:
        found = query.shorter[key] = _without(query, absent, joins)
    return found


def _without(
    query: NormalQuery, absent: frozenset[int], joins: tuple[RecordPreservingJoin, ...]
) -> tuple[NormalQuery, tuple[LeftOut, ...]]:
    block, rels = query.block, query.relations
    found: list[LeftOut] = []
    again = True
    while again:  # what is left out may have been all that named a column of another
        again = False
        for number, rel in enumerate(rels):
            if rel in absent:
                spend(1 + query.weight // _NODES_A_STEP)
                shorter = _left_out(block, number, joins)
                if shorter is not None:
                    block, join = shorter
                    found.append(LeftOut(query.relation(rel).name, join))
                    rels = rels[:number] + rels[number + 1 :]
                    again = True
                    break
    return (NormalQuery(block, rels) if found else query), tuple(found)


def _left_out(
    block: Block, extra: int, joins: tuple[RecordPreservingJoin, ...]
) -> tuple[Block, RecordPreservingJoin] | None:
    """The block without a table, and the join that says that it may be left out; None if none
    does."""
    key = block.relations[extra].key
    usable = [join for join in joins if join.right == key]
    if not usable or any(join.kind == "full" for join in block.outer):
        return None
    own = next((join for join in block.outer if extra in join.right), None)
    others = tuple(join for join in block.outer if join is not own)
    if any(_names(join.conditions(), extra) for join in others):
        return None
    if own is None:
        return _inner_left_out(block, extra, usable)
    rest = replace(block, outer=others)
    if len(own.right) > 1 or _names(rest.expressions(), extra):
        return None
    by = next((join for join in usable if _keeps(block, own, extra, join)), None)
    return None if by is None else (_block_without(rest, extra, {}), by)


def _keeps(block: Block, own: OuterJoin, extra: int, join: RecordPreservingJoin) -> bool:
    """True if the LEFT join finds one row at most, or the SEMI join finds some for each row, by
    the keys of `join` and nothing else."""
    parts = tuple(part for on in own.on for part in conjuncts(on))
    pairs = [pair for part in parts if (pair := _joins(part, extra)) is not None]
    inner = sorted(own_column.name for own_column, _ in pairs)
    if len(pairs) != len(parts) or inner != sorted(right for _, right in join.keys):
        return False
    if own.kind == "left":
        return True
    return own.kind == "semi" and _found_by(block, parts, extra, join) is not None


def _joins(part: Expr, extra: int) -> tuple[Col, Col] | None:
    """The two columns that a condition says are equal, a table's own first; None unless it is about
    one of the table's and one of another's."""
    pair = column_equality(part)
    if pair is None or (pair[0].rel == extra) is (pair[1].rel == extra):
        return None
    return pair if pair[0].rel == extra else (pair[1], pair[0])


def _inner_left_out(
    block: Block, extra: int, usable: list[RecordPreservingJoin]
) -> tuple[Block, RecordPreservingJoin] | None:
    named = {c.name for expr in block.expressions() for c in columns(expr) if c.rel == extra}
    parts = tuple(part for p in block.predicates for part in conjuncts(p))
    for join in usable:
        if named <= {right for _, right in join.keys}:
            same = _found_by(block, parts, extra, join)
            if same is not None:
                keys = set(same.values())
                left = tuple(p for p in parts if not _always_true(p, same, keys))
                return _block_without(replace(block, predicates=left), extra, same), join
    return None


def _found_by(
    block: Block, parts: tuple[Expr, ...], extra: int, join: RecordPreservingJoin
) -> dict[Col, Col] | None:
    """For each column of the table's key that of the table of which each row finds one by it; None
    where there is none that is joined so."""
    if not join.finds_each:
        return None
    nullable = {rel for other in block.outer for rel in other.right}
    for anchor, table in enumerate(block.relations):
        if anchor not in nullable and table.key == join.left and anchor != extra:
            same = _joined_by(parts, extra, anchor, join)
            if same is not None:
                return same
    return None


def _names(conditions: Iterable[Expr], rel: int) -> bool:
    return any(c.rel == rel for p in conditions for c in columns(p))


def _joined_by(
    parts: tuple[Expr, ...], extra: int, anchor: int, join: RecordPreservingJoin
) -> dict[Col, Col] | None:
    """For each column of the table's key the anchor's that the query says it is equal to; None
    unless it says so of all of them."""
    left_of = {right: left for left, right in join.keys}
    equal: dict[str, list[Col]] = {}
    for part in parts:
        if (pair := _joins(part, extra)) is not None:
            equal.setdefault(pair[0].name, []).append(pair[1])
    if equal.keys() != left_of.keys():
        return None
    same: dict[Col, Col] = {}
    rest: PredicateContext | None = None
    for name, outers in equal.items():
        wanted = Col(anchor, left_of[name], outers[0].type)
        direct = next((outer for outer in outers if outer == wanted), None)
        if direct is None:  # equal to it by what else the query says
            rest = rest or PredicateContext(p for p in parts if not _names((p,), extra))
            if all(rest.find(outer) != rest.find(wanted) for outer in outers):
                return None
        same[Col(extra, name, outers[0].type)] = direct or wanted
    return same


def _block_without(block: Block, extra: int, same: dict[Col, Col]) -> Block:
    """The block without a table, the anchor's keys in the place of its own; the later tables move
    up."""

    def moved(column: Col) -> Col:
        rel = column.rel - (column.rel > extra)
        return Col(rel, column.name, column.type, column.nullable)

    def visit(expr: Expr) -> Expr | None:
        return moved(same.get(expr, expr)) if isinstance(expr, Col) else None

    outer = tuple(
        replace(
            join,
            right=tuple(rel - (rel > extra) for rel in join.right),
            declared=tuple(map(moved, join.declared)),
        )
        for join in block.outer
    )
    relations = block.relations[:extra] + block.relations[extra + 1 :]
    shorter = replace(block, relations=relations, outer=outer)
    return shorter.map(lambda expr: transform(expr, visit))


def _always_true(part: Expr, same: dict[Col, Col], keys: set[Col]) -> bool:
    """True for what the join itself says: that its keys are equal, and not NULL."""
    if isinstance(part, Call) and part.op == "isnotnull" and isinstance(part.args[0], Col):
        return part.args[0] in keys or part.args[0] in same
    if not isinstance(part, Call) or part.op != "eq":
        return False
    one, other = part.args
    return any(
        isinstance(a, Col) and a in same and same[a] == b for a, b in ((one, other), (other, one))
    )
