"""How large expressions are as trees.

What stands for a name, or is an argument that a function has twice, is one object in several
places: a tree of 2^n nodes is made of n objects. Whoever walks one without a look at its size does
not end.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from matcher.model.budget import MOST_NODES
from matcher.model.errors import NotSupported
from matcher.model.expr import Expr, count_nodes
from matcher.model.message import Number
from matcher.model.reasons import ReasonCode


@dataclass(slots=True)
class TreeSize:
    """Counts the nodes of expressions, those of a part that stands in several places at each.

    Args:
        nodes: How many there are so far.
    """

    nodes: int = 0

    def add(self, expr: Expr) -> None:
        """Count one more expression, no further than it matters.

        Raises:
            NotSupported: QUERY_TOO_LARGE where all have more than `budget.MOST_NODES` nodes.

        >>> from matcher.model.expr import Call, Lit
        >>> expr = Lit(1, "int")
        >>> for _ in range(60):
        ...     expr = Call("add", (expr, expr), "int", False)
        >>> try:
        ...     TreeSize().add(expr)
        ... except NotSupported as error:
        ...     print(error.code)
        QUERY_TOO_LARGE
        """
        self.nodes += count_nodes((expr,), MOST_NODES - self.nodes)
        if self.nodes > MOST_NODES:
            raise NotSupported(
                ReasonCode.QUERY_TOO_LARGE,
                "more than {most} operators, columns and constants in one SELECT, which is "
                "the most that is compared with caches",
                most=Number(MOST_NODES, ","),
            )


def check_size(expressions: Iterable[Expr]) -> int:
    """How many nodes the expressions of one block have.

    Args:
        expressions: All of them.

    Raises:
        NotSupported: QUERY_TOO_LARGE where that is more than `budget.MOST_NODES`.
    """
    size = TreeSize()
    for expr in expressions:
        size.add(expr)
    return size.nodes
