"""One object for each expression that many caches hold.

Caches over the same tables say the same things: the join conditions, the keys, the sums. Held once,
10,000 plans take a fraction of the memory, and the garbage collector has as much less to look at.

Expressions compare without nullability and the types of operands, so `==` cannot decide what may be
shared: a key here holds all that a node is made of, and its children by identity.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from matcher.model.expr import Agg, Call, Col, Expr, Lit

_CAPACITY = 500_000
_MOST_MOVED = 100_000


class Sharing:
    """A table of expression nodes. Not safe for several threads at once."""

    __slots__ = ("_moved", "_nodes")

    def __init__(self) -> None:
        self._nodes: dict[object, Expr] = {}
        self._moved: dict[tuple[int, Hashable], tuple[Expr, Expr]] = {}

    def __call__(self, expr: Expr) -> Expr:
        """The node to use for `expr`, the same for all that are alike to the last attribute.

        Args:
            expr: A node whose children came from here.

        Returns:
            `expr`, or the node met before.
        """
        if len(self._nodes) >= _CAPACITY:
            # Nodes of dropped caches are never looked for again; identities in keys die with them.
            self._nodes = {}
        return self._nodes.setdefault(_key(expr), expr)

    def moved(self, expr: Expr, place: Hashable, move: Callable[[Expr], Expr]) -> Expr:
        """What `move` makes of this very object in that place, made once.

        Args:
            expr: The expression.
            place: All else that the outcome follows from.
            move: Makes the outcome.
        """
        known = self._moved.get((id(expr), place))
        if known is None:
            if len(self._moved) >= _MOST_MOVED:
                self._moved = {}
            # with the object itself: while it is held, its identity is nobody else's
            known = self._moved[id(expr), place] = expr, move(expr)
        return known[1]


def _key(expr: Expr) -> object:
    kind = (expr.type, expr.nullable)
    if isinstance(expr, Col):
        return ("c", expr.rel, expr.name, kind)
    if isinstance(expr, Lit):
        return ("l", type(expr.value), str(expr.value), kind)
    children = tuple(map(id, expr.children))
    if isinstance(expr, Call):
        return ("f", expr.op, expr.params, children, kind)
    assert isinstance(expr, Agg)
    return ("a", expr.func, expr.params, expr.distinct, expr.filter is None, children, kind)
