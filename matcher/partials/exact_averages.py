"""Which averages of whole numbers are exact over several parts of a block's rows.

Spark adds them up in DOUBLE, so AVG is SUM / COUNT while the absolute values of all rows, of all
parts together, add up to 2^53 at most. That no part by itself goes past it says nothing: each part
gives its own share of the bound, its largest value times its rows.

A part's rows are those of the block, after its joins. Where these are counted by one table's rows
alone, each of them has to yield one row of the block at most (`is_one_row_each`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from matcher.model.expr import Agg, Call, Col, Expr, aggregates, columns
from matcher.model.integer_bounds import EXACT_IN_DOUBLE, Bounds, expression_bounds, type_bounds
from matcher.model.ir import Block, RecordPreservingJoin
from matcher.model.types import INTEGRAL
from matcher.partials.lossless import equal_columns

# Of a group they are no more than its values add up to.
_OF_ONE_VALUE_EACH: Final = frozenset("sum try_sum min max first last max_by min_by".split())
# They are no more than their arguments add up to.
_ADDED: Final = frozenset({"add", "sub", "neg", "cast", "coalesce"})


@dataclass(frozen=True, slots=True)
class PartRows:
    """What is known of one part of a block's rows.

    Args:
        rows: How many the block has over this part at most.
        bounds: The bounds of columns of the block in these rows, where more is known of them than
            their types say.
    """

    rows: int
    bounds: Mapping[Col, Bounds]


def exact_averages(averaged: Mapping[str, Expr], parts: Iterable[PartRows]) -> frozenset[str]:
    """Those of a block's sums and keys of which an AVG over all parts is exact.

    Args:
        averaged: Sums and keys of whole numbers by the name of their state (`States.averaged`).
        parts: All parts of the rows.

    >>> x = Col(0, "x", "bigint")
    >>> stored = PartRows(1 << 20, {x: (0, 1 << 32)})
    >>> exact_averages({"c0": x}, [stored]) == {"c0"}
    True
    >>> exact_averages({"c0": x}, [stored, PartRows(1 << 20, {x: (0, 1 << 33)})])
    frozenset()
    """
    known = tuple(parts)
    return frozenset(name for name, expr in averaged.items() if _adds_exactly(expr, known))


def outputs_add_exactly(block: Block, numbers: Iterable[int], parts: Iterable[PartRows]) -> bool:
    """Whether the absolute values of some outputs of a block, over all its rows, add up to 2^53 at
    most each: then averages that are taken of them above do not show the order of these rows.

    A group has a row at least, and its SUM is no more than its rows add up to.

    Args:
        block: The block.
        numbers: The outputs, of whole numbers.
        parts: All parts of the rows that it is computed from.

    >>> from matcher.examples import block_of
    >>> query = block_of("SELECT store, SUM(qty) AS q, COUNT(*) AS n FROM sales GROUP BY store")
    >>> parts = [PartRows(1 << 23, {})]  # of which nothing is known, but that qty is INT
    >>> outputs_add_exactly(query, [2], parts), outputs_add_exactly(query, [1, 2], parts)
    (True, False)
    """
    known = tuple(parts)
    sets = len(block.grouping_sets or ((),))
    exprs = [block.outputs[number].expr for number in numbers]
    return all(
        sum(sets * max(part.rows, 1) * _weight(expr, _all_bounds(expr, part)) for part in known)
        <= EXACT_IN_DOUBLE
        for expr in exprs
    )


def _weight(expr: Expr, known: Mapping[Col, Bounds]) -> int:
    """The most that the absolute values of an output add up to, for each row behind the block."""
    of_type = 1 << (INTEGRAL[expr.type] - 1)
    if isinstance(expr, Agg):
        if expr.func == "count":
            return 1
        if expr.func in _OF_ONE_VALUE_EACH and expr.args[0].type in INTEGRAL:
            return min(of_type, _weight(expr.args[0], known))
        return of_type
    if isinstance(expr, Call) and expr.op in _ADDED and all(a.type in INTEGRAL for a in expr.args):
        return min(of_type, sum(_weight(a, known) for a in expr.args))
    bounds = None if any(True for _ in aggregates(expr)) else expression_bounds(expr, known)
    return of_type if bounds is None else min(of_type, max(map(abs, bounds)))


def _all_bounds(expr: Expr, part: PartRows) -> dict[Col, Bounds]:
    of_types = {c: type_bounds(c) for c in columns(expr) if c.type in INTEGRAL}
    return of_types | dict(part.bounds)


def _adds_exactly(expr: Expr, parts: Iterable[PartRows]) -> bool:
    total = 0
    for part in parts:
        bounds = expression_bounds(expr, _all_bounds(expr, part))
        if bounds is None:
            return False
        total += max(map(abs, bounds)) * part.rows
    return total <= EXACT_IN_DOUBLE


def is_one_row_each(block: Block, rel: int, joins: Iterable[RecordPreservingJoin]) -> bool:
    """Whether each row of one table yields one row of a block at most.

    So it is if every other table is joined by columns among which is a unique key of it, to that
    table or to others that are joined so. SEMI and ANTI joins repeat no row anyway.

    Args:
        block: The block.
        rel: The number of the table, which no outer join has on its right side.
        joins: Joins whose right side has a unique key in the rows that the block reads. Those that
            nobody validated do not count.

    >>> from matcher.examples import block_of
    >>> joined = block_of("SELECT city, qty FROM sales JOIN stores USING (store)")
    >>> [r.key for r in joined.relations]
    ['default.sales', 'default.stores']
    >>> key = RecordPreservingJoin("j", "default.sales", "default.stores", (("store", "store"),))
    >>> is_one_row_each(joined, 0, [key]), is_one_row_each(joined, 1, [key])
    (True, False)
    """
    keys: dict[str, list[frozenset[str]]] = {}
    for known in joins:
        if known.validated:
            names = frozenset(right.lower() for _, right in known.keys)
            keys.setdefault(known.right, []).append(names)
    inner = set(range(len(block.relations))).difference(*(join.right for join in block.outer))
    reached = {rel}
    if not _reach(block, inner, block.predicates, keys, reached):
        return False
    for join in block.outer:
        if join.kind == "left" and not _reach(block, set(join.right), join.on, keys, reached):
            return False
        if join.kind not in ("left", "semi", "anti"):
            return False
    return True


def _reach(
    block: Block,
    wanted: set[int],
    conditions: Iterable[Expr],
    keys: Mapping[str, Iterable[frozenset[str]]],
    reached: set[int],
) -> bool:
    """Add the tables to those that are reached by a unique key; False where some is not."""
    equal = [pair for condition in conditions if (pair := equal_columns(condition))]
    pairs = [*equal, *((right, left) for left, right in equal)]
    left = wanted - reached
    while left:
        found = {other for other in left if _by_key(block, other, pairs, keys, reached)}
        if not found:
            return False
        reached |= found
        left -= found
    return True


def _by_key(
    block: Block,
    rel: int,
    pairs: Iterable[tuple[Col, Col]],
    keys: Mapping[str, Iterable[frozenset[str]]],
    reached: set[int],
) -> bool:
    """Whether some unique key of a table is equal to columns of tables that are reached."""
    fixed = {mine.name.lower() for mine, its in pairs if mine.rel == rel and its.rel in reached}
    return any(key <= fixed for key in keys.get(block.relations[rel].key, ()))
