"""Caches whose appended rows are held, rows to append, and queries that are asked until a tail
answers them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

import cachemgr
from cachemgr.spark.held.tails import TailStore

CUBE = (
    "cube AS SELECT city, region, day, SUM(amt) AS amt, SUM(price) AS price, COUNT(*) AS n, "
    "COUNT(amt) AS known, MAX(price) AS dearest FROM sales JOIN cust ON cust = cid "
    "GROUP BY GROUPING SETS ((city, region), (region, day), (region), ())"
)
GROUPED = (
    "by_region AS SELECT region, day, SUM(amt) AS amt, COUNT(*) AS n, MIN(id) AS first FROM sales "
    "GROUP BY region, day"
)
ROW = "INSERT INTO sales VALUES ({id}, DATE'2024-03-01', {region}, {cust}, {amt}, 1, 4.00, 0.5)"
QUERIES = (
    "SELECT region, SUM(amt) AS a, COUNT(*) AS n, COUNT(amt) AS k FROM sales GROUP BY region",
    "SELECT SUM(amt) AS a, COUNT(*) AS n FROM sales",
    "SELECT SUM(amt) AS a FROM sales WHERE region = 'nowhere'",
    "SELECT region, SUM(amt) AS a FROM sales GROUP BY region HAVING SUM(amt) > 20",
    "SELECT region, SUM(amt) AS a FROM sales GROUP BY region ORDER BY a DESC NULLS LAST LIMIT 2",
)


def append(lab, id: int, region: str = "'north'", cust: str = "1", amt: str = "5") -> None:
    lab.plain.sql(ROW.format(id=id, region=region, cust=cust, amt=amt))


def count(lab, name: str) -> int:
    return cachemgr.counters(lab.spark).get(name, 0)


def by_tail(lab, query: str) -> None:
    """The query is answered with a tail; it is asked until there is one."""
    _until_by_tail(lab, query, lab.hit)


def alike(lab, query: str) -> None:
    assert Counter(lab.sql(query)) == Counter(lab.plain.sql(query).collect())


def alike_until_by_tail(lab, query: str) -> None:
    """The same where it may miss at first: whether a dimension's new keys are new is looked at."""
    _until_by_tail(lab, query, lambda query: alike(lab, query))


def _until_by_tail(lab, query: str, ask: Callable[[str], object]) -> None:
    for _ in range(60):
        before = count(lab, "tail_hits")
        ask(query)
        if count(lab, "tail_hits") > before:
            return
        time.sleep(0.25)
    raise AssertionError(f"no tail serves: {query}")


def without_tail(lab, query: str) -> None:
    before = count(lab, "tail_hits"), count(lab, "fresh_hits")
    lab.hit(query)
    assert count(lab, "fresh_hits") > before[1]
    assert count(lab, "tail_hits") == before[0]


def all_by_tail(lab, query: str) -> None:
    """The query is asked until no file is left to be read beside its tail."""
    for _ in range(60):
        lab.hit(query)
        told = cachemgr.explain(lab.spark, query).text()
        if "all of them held in memory" in told:
            return by_tail(lab, query)
        time.sleep(0.1)
    raise AssertionError(f"files are still read: {query}")


def links(tails: TailStore) -> list[int]:
    """Of the one tail there is: for each part how many it was made of."""
    (state,) = [state for state in tails._states.values() if state.made is not None]
    assert state.made is not None
    return [part.links for part in state.made.parts]


JOINED = "SELECT city, SUM(amt) AS a FROM sales JOIN cust ON cust = cid GROUP BY city"
