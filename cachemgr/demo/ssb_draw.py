"""Parameters of the 13 queries that no session has seen: drawn anew for each run.

Spark writes a query's constants into the code that it generates, and keeps that code. So a query
that comes again with the same constants is faster than one that a person sends for the first time,
and what is timed is never what warmed the session up.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from cachemgr.demo.ssb_queries import QUERIES, SsbQuery
from cachemgr.demo.ssb_words import MONTHS, NATIONS

DRAWN: Final = 5
_YEARS: Final = range(1992, 1999)
# Orders end in July of the last year.
_LAST_YEAR, _LAST_MONTH, _LAST_WEEK = 1998, 7, 30
MOST: Final = 1_000_000


def drawn(seed: int) -> tuple[SsbQuery, ...]:
    """The queries, each with the paper's parameters first and five drawn sets after them.

    Args:
        seed: The same one draws the same sets.

    >>> [drawn(7)[3].parameters[n] == drawn(7)[3].parameters[n] for n in (0, 5)]
    [True, True]
    """
    return tuple(_drawn(query, Random(f"{seed} {query.name}")) for query in QUERIES)


def _drawn(query: SsbQuery, rng: Random) -> SsbQuery:
    sets = [query.parameters[0]]
    while len(sets) <= DRAWN:
        found = _draw(rng)
        if query.parameters[0].get("month", "").isdigit():
            found["month"] = found["month_number"]
        one = {name: found[name] for name in query.parameters[0]}
        if one not in sets:
            sets.append(one)
    return replace(query, parameters=tuple(sets))


def _draw(rng: Random) -> dict[str, str]:
    """A value for every parameter of every query; those that belong together fit."""
    nation, region = rng.choice(NATIONS)
    year, since, until = rng.choice(_YEARS), *sorted(rng.sample(_YEARS, 2))
    year1, year2 = rng.sample(_YEARS, 2)
    is_last = year == _LAST_YEAR
    month = rng.randint(1, _LAST_MONTH if is_last else 12)
    low, few, first = rng.randint(0, 8), rng.randint(1, 40), rng.randint(1, 33)
    mfgr1, mfgr2 = rng.sample(range(1, 6), 2)
    category = f"MFGR#{rng.randint(1, 5)}{rng.randint(1, 5)}"
    digit1, digit2 = rng.sample(range(10), 2)
    city = f"{nation[:9]:<9}"
    found = {
        "region": region, "nation": nation, "city1": f"{city}{digit1}", "city2": f"{city}{digit2}",
        "year": year, "since": since, "until": until, "year1": year1, "year2": year2,
        "month": f"{MONTHS[month - 1][:3]}{year}", "month_number": year * 100 + month,
        "week": rng.randint(1, _LAST_WEEK if is_last else 52),
        "low": low, "high": low + 2, "few": few, "many": few + 9, "quantity": rng.randint(10, 40),
        "mfgr1": f"MFGR#{mfgr1}", "mfgr2": f"MFGR#{mfgr2}", "category": category,
        "first": f"{category}{first:02d}", "last": f"{category}{first + 7:02d}",
        "brand": f"{category}{rng.randint(1, 40):02d}",
    }  # fmt: skip
    return {name: str(value) for name, value in found.items()}
