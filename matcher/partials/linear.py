"""Whether rows appended to one table change a block's rows by what is computed from them alone.

Selections, projections and inner joins are linear: the block over A and B together is the block
over A beside the block over B. So are joins that keep the table's rows, or filter them by another
table. A second occurrence of the table is not, nor the right side of an outer, SEMI or ANTI join:
a row appended there finds rows of the left side that were without a partner. How the rows of the
two parts merge above that, group by group, is `matcher.partials.split`.
"""

from __future__ import annotations

from typing import Final

from matcher.model.ir import Block
from matcher.model.message import Arg, TableName, Word
from matcher.model.reasons import Reason, ReasonCode

_NAMES: Final = {"left": "LEFT", "semi": "SEMI", "anti": "ANTI", "full": "FULL"}


def why_not_linear(block: Block, rel: int) -> Reason | None:
    """What keeps a block from being linear in one of its tables; None if it is.

    Args:
        block: The block.
        rel: Number of the table that rows are appended to.

    >>> from matcher.examples import block_of
    >>> joined = block_of("SELECT qty, city FROM sales LEFT JOIN stores USING (store)")
    >>> [r.name for r in joined.relations]
    ['sales', 'stores']
    >>> why_not_linear(joined, 0)
    >>> why_not_linear(joined, 1).detail
    'stores stands on the right of a LEFT JOIN: a row appended to it changes rows that were there'
    """
    relation = block.relations[rel]
    if sum(other.key == relation.key for other in block.relations) > 1:
        return _not_linear("{table} is read more than once", table=TableName(relation.name))
    for join in block.outer:
        if rel in join.right:
            side = "in" if join.kind == "full" else "on the right of"
            return _not_linear(
                "{table} stands {side} a {kind} JOIN: a row appended to it changes rows that were "
                "there",
                table=TableName(relation.name),
                side=Word(side),
                kind=Word(_NAMES.get(join.kind, join.kind)),
            )
    return None


def why_not_linear_in(block: Block, place: str) -> Reason | None:
    """What keeps a block from being linear in a base table; None if it is.

    Args:
        block: The block.
        place: The key of the table that rows are appended to.

    >>> from matcher.examples import block_of
    >>> summed = "(SELECT item, SUM(qty) AS s FROM sales GROUP BY item) g"
    >>> joined = block_of(f"SELECT name, s FROM items JOIN {summed} USING (item)")
    >>> sales, items = sorted({r.key for r in joined.tables}, reverse=True)
    >>> why_not_linear_in(joined, items)
    >>> why_not_linear_in(joined, sales).detail
    'sales is read below groups: a row appended to it changes groups that were there'
    """
    for relation in block.relations:
        for table in () if relation.groups is None else relation.tables:
            if table.key == place:
                return _not_linear(
                    "{table} is read below groups: a row appended to it changes groups that were "
                    "there",
                    table=TableName(table.name),
                )
    rel = next(i for i, relation in enumerate(block.relations) if relation.key == place)
    return why_not_linear(block, rel)


def _not_linear(template: str, /, **args: Arg) -> Reason:
    return Reason(ReasonCode.DELTA_NOT_LINEAR, template, "refresh the cache", **args)
