"""One object for each expression that many caches hold.

Caches over the same tables say the same things: the join conditions, the keys, the sums. Held once,
10,000 plans take a fraction of the memory, and the garbage collector has as much less to look at.

Expressions compare without nullability and the types of operands, so `==` cannot decide what may be
shared: a key here holds all that a node is made of, and its children by identity.
"""

from __future__ import annotations

from matcher.expr import Agg, Call, Col, Expr, Lit

_CAPACITY = 500_000


class Sharing:
    """A table of expression nodes. Not safe for several threads at once."""

    __slots__ = ("_nodes",)

    def __init__(self) -> None:
        self._nodes: dict[object, Expr] = {}

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
