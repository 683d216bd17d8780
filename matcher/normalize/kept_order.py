"""What becomes of an ORDER BY in a definition: rows of a table have no order, but a table may be
clustered, so that what is near in that order is near in its files.

It is clustered by the columns that the ORDER BY names where Delta can do that: at most four, all of
them stored, of types whose least and greatest values Delta keeps for each file, and among the
columns for which it does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from matcher.model.expr import Expr, Lit
from matcher.model.ir import Block, CachePlan
from matcher.model.types import INTEGRAL, decimal_parts
from matcher.normalize.stored_block import stored_block

MOST_CLUSTERING_COLUMNS: Final = 4
# of which Delta keeps the least and the greatest value (delta.dataSkippingNumIndexedCols)
_COLUMNS_WITH_STATISTICS: Final = 32
_TYPES: Final = frozenset(
    {*INTEGRAL, "string", "float", "double", "date", "timestamp", "timestamp_ntz"}
)


@dataclass(frozen=True, slots=True)
class KeptOrder:
    """What an ORDER BY comes to.

    Args:
        cluster_by: The stored columns that the table is clustered by; none if it is not.
        why_not: Why it is not, for people; empty where it is, and where there is no ORDER BY.
    """

    cluster_by: tuple[str, ...] = ()
    why_not: str = ""


def kept_order(block: Block, plan: CachePlan) -> KeptOrder:
    """What the ORDER BY of a definition comes to.

    Args:
        block: The definition.
        plan: What is stored of it.

    >>> from matcher.examples import block_of, plan_of
    >>> text = "SELECT store, SUM(price) / COUNT(*) AS mean FROM sales GROUP BY store ORDER BY "
    >>> kept_order(block_of(text + "store DESC"), plan_of(text + "store DESC"))
    KeptOrder(cluster_by=('store',), why_not='')
    >>> kept_order(block_of(text + "mean"), plan_of(text + "mean")).why_not
    'mean is computed when it is read, and not stored'
    """
    keys = tuple(dict.fromkeys(k.expr for k in block.order_by if not isinstance(k.expr, Lit)))
    if not keys or block.limit is not None:
        return KeptOrder()
    if plan.is_cube:
        return KeptOrder(why_not="the table of a cube is laid out by its grouping sets")
    if len(keys) > MOST_CLUSTERING_COLUMNS:
        return KeptOrder(
            why_not=f"it names {len(keys)} columns, and a table is clustered by "
            f"{MOST_CLUSTERING_COLUMNS} at most"
        )
    stored = stored_block(plan).outputs
    places = {column.name: number for number, column in enumerate(stored)}
    names: dict[Expr, str] = {}
    for column in stored:
        names.setdefault(column.expr, column.name)
    for key in keys:
        what = next((o.name for o in block.outputs if o.expr == key and o.name), "one of its keys")
        if key not in names:
            return KeptOrder(why_not=f"{what} is computed when it is read, and not stored")
        if key.type not in _TYPES and not decimal_parts(key.type):
            return KeptOrder(why_not=f"{what} is a {key.type.upper()}, which no table clusters by")
        if places[names[key]] >= _COLUMNS_WITH_STATISTICS:
            return KeptOrder(
                why_not=f"{what} is stored behind the first {_COLUMNS_WITH_STATISTICS} columns"
            )
    return KeptOrder(tuple(names[key] for key in keys))
