"""The names under which texts of ours read what has no name of its own in them.

Whoever runs such a text hands over the relation of each name beside it. All begin with two
underscores, as hidden columns do: a text that also names tables of a user's has none of these.
"""

from __future__ import annotations

from typing import Final

# The rows of the cache that a rewrite reads, one a group.
CACHE: Final = "__cache"
# What the cache's table holds: partial rows, or the rows before a refresh.
STORED: Final = "__stored"
# The appended rows of a cache, computed already; several parts of them are `tail_part`.
TAIL: Final = "__tail"
# Any one table or result.
TABLE: Final = "__t"
# All rows of a table; those that a change brought to it, and those that it took away.
ALL: Final = "__all"
CAME: Final = "__came"
WENT: Final = "__went"
# Rows of several parts under each other, and the query whose states they are.
PARTS: Final = "__parts"
STATES: Final = "__states"
# The base tables of a query, of which the appended rows are read beside a cache.
BASE: Final = "__base"
# A table that is joined to a cache.
JOINED: Final = "__table"


def tables_of(count: int) -> list[str]:
    """The names of a definition's relations, in its order.

    >>> tables_of(2)
    ['__t0', '__t1']
    """
    return _numbered(TABLE, count)


def joined(count: int) -> list[str]:
    """The names of the tables that a rewrite joins to its cache, in its order."""
    return _numbered(JOINED, count)


def bases(count: int) -> list[str]:
    """The names of a query's relations where appended rows are read of them, in its order."""
    return _numbered(BASE, count)


def tail_parts(count: int) -> list[str]:
    """The names of the parts of which a tail is put together."""
    return _numbered(TAIL, count)


def _numbered(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]
