"""GROUP BY of the text door: keys, and the sets that GROUPING SETS, CUBE and ROLLUP stand for, in
Spark's numbering order.

The keys are in the order of the GROUP BY list; with bare GROUPING SETS, CUBE or ROLLUP in the
order of first appearance. Sets are kept as written, repeated ones included, because Spark returns
such a set's rows once for each repetition.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product
from typing import Final

from sqlglot import exp

from matcher.model.expr import Expr
from matcher.model.message import Number
from matcher.model.reasons import ReasonCode
from matcher.sql.expressions.scope import unsupported

_MAX_SETS: Final = 4096
Key = Callable[[exp.Expr], Expr]
Sets = list[tuple[Expr, ...]]


def read_groups(
    group: exp.Group, key: Key
) -> tuple[tuple[Expr, ...], tuple[tuple[int, ...], ...] | None]:
    """The group keys, and the sets as indices into them (None for a plain GROUP BY).

    Args:
        group: the parsed clause; GROUP BY ALL is the caller's.
        key: turns one key (a column, an alias, an ordinal, an expression) into an expression.

    Raises:
        NotSupported: a form that Spark has not, more than 4096 sets, or sets with two keys that
            are one here and not to Spark.
    """
    written: dict[Expr, exp.Expr] = {}
    several = False

    def noted(node: exp.Expr) -> Expr:
        nonlocal several
        found = key(node)
        first = written.setdefault(found, node)
        several |= first is not node and _bare(first) != _bare(node)
        return found

    keys, sets = _read(group, noted)
    if several and sets is not None:
        # `SELECT a, b … FROM (SELECT x AS a, x AS b …) GROUP BY CUBE (a, b)`: b is NULL in (a)
        raise unsupported(
            ReasonCode.GROUPING_SETS_IN_QUERY, "two keys of the grouping sets are always equal"
        )
    return keys, sets


def _bare(key: exp.Expr) -> exp.Expr:
    """A key whose columns have no table's name: with and without it they are the same."""
    plain = key.copy()
    for column in plain.find_all(exp.Column):
        column.set("table", None)
        column.set("this", exp.to_identifier(column.name.casefold()))
    return plain


def _read(
    group: exp.Group, key: Key
) -> tuple[tuple[Expr, ...], tuple[tuple[int, ...], ...] | None]:
    factors: list[Sets] = []
    keys: list[Expr] = []
    analytic = False
    for item in group.expressions:
        if isinstance(item, (exp.GroupingSets, exp.Cube, exp.Rollup)):
            analytic = True
            factors.append(_sets(item, key, keys))
        else:
            found = key(item)
            _remember(keys, found)
            factors.append([(found,)])
    trailing = [
        *(group.args.get("grouping_sets") or ()),
        *(group.args.get("cube") or ()),
        *(group.args.get("rollup") or ()),
    ]
    if not trailing:
        if not analytic:
            return tuple(keys), None
        return tuple(keys), _numbered(_cross(factors), keys)
    if analytic or len(trailing) > 1 or group.args.get("totals"):
        raise unsupported(ReasonCode.UNSUPPORTED_OPERATOR, "two grouping clauses in one GROUP BY")
    listed = list(keys)
    sets = _trailing_sets(trailing[0], key, keys)
    if keys != listed:
        raise unsupported(
            ReasonCode.UNSUPPORTED_OPERATOR,
            "a grouping set with a column that GROUP BY does not list",
        )
    return tuple(keys), _numbered(sets, keys)


def _trailing_sets(node: exp.Expr, key: Key, keys: list[Expr]) -> Sets:
    if isinstance(node, (exp.Cube, exp.Rollup)) and not node.expressions:
        items: Sets = [(k,) for k in keys]  # GROUP BY a, b WITH CUBE
        return _cube(items) if isinstance(node, exp.Cube) else _rollup(items)
    return _sets(node, key, keys)


def _sets(node: exp.Expr, key: Key, keys: list[Expr]) -> Sets:
    if isinstance(node, exp.GroupingSets):
        found: Sets = []
        for item in node.expressions:
            if isinstance(item, (exp.GroupingSets, exp.Cube, exp.Rollup)):
                found += _sets(item, key, keys)
            else:
                found.append(_members(item, key, keys))
        return found
    items = [_members(item, key, keys) for item in node.expressions]
    if len(items) > 12 and isinstance(node, exp.Cube):
        raise unsupported(
            ReasonCode.UNSUPPORTED_OPERATOR,
            "CUBE over {number} columns",
            number=Number(len(items)),
        )
    return _cube(items) if isinstance(node, exp.Cube) else _rollup(items)


def _members(item: exp.Expr, key: Key, keys: list[Expr]) -> tuple[Expr, ...]:
    if isinstance(item, exp.Tuple):
        nodes = item.expressions
    else:
        nodes = [item.this if isinstance(item, exp.Paren) else item]
    found = tuple(key(node) for node in nodes)
    for member in found:
        _remember(keys, member)
    return found


def _remember(keys: list[Expr], found: Expr) -> None:
    if found not in keys:
        keys.append(found)


def _cube(items: list[tuple[Expr, ...]]) -> Sets:
    return [
        tuple(e for item in chosen for e in item)
        for size in range(len(items), -1, -1)
        for chosen in combinations(items, size)
    ]


def _rollup(items: list[tuple[Expr, ...]]) -> Sets:
    return [tuple(e for item in items[:size] for e in item) for size in range(len(items), -1, -1)]


def _cross(factors: list[Sets]) -> Sets:
    total = 1
    for factor in factors:
        total *= len(factor)
    if total > _MAX_SETS:
        raise unsupported(
            ReasonCode.UNSUPPORTED_OPERATOR,
            "{number} grouping sets in one GROUP BY",
            number=Number(total),
        )
    return [tuple(e for part in chosen for e in part) for chosen in product(*factors)]


def _numbered(sets: Sets, keys: list[Expr]) -> tuple[tuple[int, ...], ...]:
    number = {k: i for i, k in enumerate(keys)}
    return tuple(tuple(dict.fromkeys(number[e] for e in members)) for members in sets)
