"""The queries that the load is made of: a dashboard's shapes with fresh parameter values, shapes
that were never seen before, and some that no cache answers."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from typing import Final

_FROM: Final = """FROM lineorder, dates, customer, supplier, part
WHERE lo_orderdate = d_datekey AND lo_custkey = c_custkey
AND lo_suppkey = s_suppkey AND lo_partkey = p_partkey"""
_KEYS: Final = ("d_year", "s_region", "c_region", "c_nation", "p_mfgr")
_MEASURES: Final = ("lo_revenue", "lo_supplycost", "lo_revenue - lo_supplycost")
_FIRST_SIGHT: Final = 0.1
_MISSES: Final = 0.2


@dataclass(frozen=True)
class Asked:
    """One request.

    Args:
        kind: `seen` or `first`.
        hits: Whether a cache answers it.
        path: The endpoint.
        sql: The query.
    """

    kind: str
    hits: bool
    path: str
    sql: str


class Traffic:
    """An endless series of requests, the same for the same seed.

    Args:
        seed: Of all choices.
        shapes: How many shapes a dashboard has.
    """

    def __init__(self, seed: int, shapes: int = 40) -> None:
        self._random = random.Random(seed)
        self._numbers = itertools.count()
        self._seen = [self._shape(f"shown_{n}") for n in range(shapes)]

    def warm_up(self) -> list[Asked]:
        """Each shape of the dashboard once."""
        return [self._asked("seen", True, shape) for shape in self._seen]

    def next(self) -> Asked:
        """The next request."""
        if self._random.random() >= _FIRST_SIGHT:
            return self._asked("seen", True, self._random.choice(self._seen))
        hits = self._random.random() >= _MISSES
        shape = self._shape(f"new_{next(self._numbers)}", hits=hits)
        return self._asked("first", hits, shape)

    def _asked(self, kind: str, hits: bool, shape: str) -> Asked:
        path = self._random.choice(("/api/v1/rewrite", "/api/v1/explain"))
        year, other = self._random.randrange(1000, 3000), self._random.randrange(10**9)
        return Asked(kind, hits, path, shape.replace("%year", str(year)).replace("%s", str(other)))

    def _shape(self, alias: str, *, hits: bool = True) -> str:
        """A query whose constants are marks; the alias alone makes it a shape of its own."""
        choose = self._random
        keys = choose.sample(_KEYS, choose.randrange(1, 4))
        measure = choose.choice(_MEASURES) if hits else "lo_tax"
        items = [*keys, f"SUM({measure}) AS {alias}"]
        filters = []
        for column in choose.sample(_KEYS[1:], choose.randrange(0, 3)):
            one, many = f"{column} = 'r%s'", f"{column} IN ('a', 'b', 'r%s')"
            filters.append(choose.choice((one, many)))
        filters.append(f"d_year {choose.choice(('>=', '=', '<'))} %year")
        where = "".join(f"\nAND {f}" for f in filters)
        tail = choose.choice(("", f"\nORDER BY {keys[0]}", f"\nORDER BY {alias} DESC LIMIT 10"))
        return f"SELECT {', '.join(items)} {_FROM}{where}\nGROUP BY {', '.join(keys)}{tail}"
