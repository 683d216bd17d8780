"""What to write instead of what no definition may hold."""

from __future__ import annotations

import re
from typing import Final

_INSTEAD: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern, re.IGNORECASE), advice)
    for pattern, advice in (
        (
            r"\bUNION\b|several SELECTs|\bINTERSECT\b|\bEXCEPT\b",
            "make a cache of each of its SELECTs: queries that put them together are answered from "
            "all of these",
        ),
        (
            r"window function|\bQUALIFY\b",
            "cache the rows or groups below it: a query's window functions are computed over what "
            "the cache gives",
        ),
        (
            r"DISTINCT (above|on top of) GROUP BY",
            "group by the columns that it shows, in place of DISTINCT",
        ),
        (
            r"DISTINCT ON",
            "group by its columns, and take MIN_BY or MAX_BY of the others",
        ),
        (
            r"table-generating function|LATERAL VIEW|\bexplode\b|makes several rows of one",
            "store the column that it takes apart in a cache of the rows below it",
        ),
        (
            r"scalar ?subquery",
            "store the columns around it, and leave it to the queries, or write its value in its "
            "place",
        ),
        (
            r"\b(IN|EXISTS) \((sub)?query\)|\bIN \(SELECT|\bEXISTS\b|\blistquery\b",
            "join the subquery's tables, or store the column that it tests and leave it to the "
            "queries",
        ),
        (
            r"\bLIMIT\b|\bOFFSET\b",
            "leave it out, or make it the LIMIT of the whole SELECT, with an ORDER BY of its "
            "outputs",
        ),
        (
            r"a filter on a subquery",
            "write it as the HAVING of the groups below it, or as WHERE where it is about their "
            "keys",
        ),
    )
)


def instead(told: str) -> str:
    """What a person may write instead, by what is said of a definition that is refused.

    Args:
        told: What it may not hold.

    Returns:
        The advice; empty where there is none that goes for every such definition.

    >>> instead("the block holds UNION")[:39]
    'make a cache of each of its SELECTs: qu'
    >>> instead("the block holds an RDD")
    ''
    """
    return next((advice for pattern, advice in _INSTEAD if pattern.search(told)), "")
