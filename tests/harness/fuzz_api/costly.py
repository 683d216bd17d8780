"""Texts that are right and ask for too much: what repeats in them makes a decision run out of
steps, or would, if it were not refused for its size; and names that are hard to carry.

They are over the tables of the Star Schema Benchmark, on which the tried caches are."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from tests.harness.growth.doublings import DOUBLINGS

_TIMES: Final = (2, 4, 6, 9, 12, 16, 24, 40, 80)
_MANY: Final = (100, 1_000, 10_000, 100_000)
# Some that a path, a header, a hint or a file system cannot carry, and some that all of them can.
NAMES: Final = (
    "x y", "x/y", "../x", "x ", " x", "a.b", "a`b", "Größe 日本", "🦄" * 255, "x" * 256, "select",
    "cache", "on", "demand", "1", "-", "%2F", "a%00b", "a\\b", "a?b#c", "a,b)c", "**", "a\nb", "",
    ".", "..", "a;b", "a'b", 'a"b', "\ufeffx", "e\u0301", "\u202ex", "NULL", "*", "{x}", "${x}",
)  # fmt: skip
_STATEMENTS: Final = (
    "CREATE RELATIONAL CACHE {} AS SELECT lo_discount, COUNT(*) AS n FROM lineorder GROUP BY 1",
    "CREATE OR REPLACE RELATIONAL CACHE {} REFRESH ON DEMAND AS SELECT lo_tax AS {} FROM lineorder",
    "CREATE RELATIONAL CACHE s.{} PARTITIONED BY ({}) AS SELECT d_year AS {} FROM dates",
    "ALTER RELATIONAL CACHE {} RENAME TO {}", "DROP RELATIONAL CACHE IF EXISTS {}.{}",
    "REFRESH RELATIONAL CACHE {}", "SHOW CREATE RELATIONAL CACHE {}", "EXPLAIN REFRESH {}",
    "CREATE RECORD PRESERVING JOIN {} AS a INNER JOIN b ON a.{} = b.{} PRESERVES a",
    "GRANT SELECT ON RELATIONAL CACHE {} TO {}", "RESTRICT TABLE {}",
    "GRANT SELECT ON BASE TABLE {} TO {}", "SHOW SELECT GRANTS ON BASE TABLE {}.{}",
)  # fmt: skip


def named(choose: random.Random) -> str:
    """A statement about something of a hard name."""
    statement = choose.choice(_STATEMENTS)
    while "{}" in statement:
        name = choose.choice(NAMES).replace("`", "``")
        statement = statement.replace("{}", f"`{name}`", 1)
    return statement


def costly(choose: random.Random) -> str:
    """A query that asks for much."""
    return choose.choice(_KINDS)(choose)


def _copies(choose: random.Random) -> str:
    """One table many times, its occurrences told apart by something, or by nothing."""
    times = choose.choice(_TIMES)
    apart = choose.choice(("l{}.lo_quantity = {}", "l{}.lo_tax > {} OR l{}.lo_tax < 9", "TRUE"))
    tests = [apart.replace("{}", str(i)) for i in range(times)]
    tests += [f"l{i}.lo_orderkey = l{i + 1}.lo_orderkey" for i in range(times - 1)]
    tables = ", ".join(f"lineorder l{i}" for i in range(times))
    return f"SELECT COUNT(*) AS n FROM {tables} WHERE {' AND '.join(tests)}"


def _roles(choose: random.Random) -> str:
    times = choose.choice(_TIMES)
    joins = " ".join(f"JOIN dates d{i} ON lo_orderdate = d{i}.d_datekey" for i in range(times))
    tests = " AND ".join(f"d{i}.d_year = {1990 + i}" for i in range(times))
    return f"SELECT d0.d_year, SUM(lo_revenue) AS r FROM lineorder {joins} WHERE {tests} GROUP BY 1"


def _ors(choose: random.Random) -> str:
    times = choose.choice((*_TIMES, *_MANY[:2]))
    one = choose.choice(
        ("(lo_discount = {} OR lo_quantity > {})", "NOT (lo_tax = {} AND lo_discount < {})",
         "(lo_discount + {} > lo_tax OR lo_quantity * {} < lo_tax OR lo_discount IS NULL)")
    )  # fmt: skip
    tests = choose.choice((" AND ", " OR ")).join(one.replace("{}", str(i)) for i in range(times))
    return f"SELECT SUM(lo_revenue) AS r FROM lineorder WHERE {tests}"


def _case(choose: random.Random) -> str:
    inner = "lo_quantity"
    around = choose.choice(
        ("CASE WHEN lo_tax = {i} THEN {inner} ELSE lo_discount END",
         "CASE WHEN lo_tax = {i} THEN 1 WHEN lo_discount > {i} THEN {inner} END",
         "CASE {inner} WHEN {i} THEN 1 WHEN 2 THEN 3 ELSE 4 END", "nullif({inner}, {i})",
         "coalesce({inner}, lo_tax + {i})", "if({inner} > {i}, {inner}, lo_tax)")
    )  # fmt: skip
    for i in range(choose.choice(_TIMES[:-1] if around.count("{inner}") == 1 else _TIMES[:5])):
        inner = around.format(inner=inner, i=i)
    if choose.random() < 0.5:
        return f"SELECT SUM(lo_revenue) AS r FROM lineorder WHERE {inner} > 5"
    return f"SELECT SUM({inner}) AS r FROM lineorder"


def _in_list(choose: random.Random) -> str:
    values = ", ".join(map(str, range(choose.choice(_MANY))))
    return f"SELECT SUM(lo_revenue) AS r FROM lineorder WHERE lo_quantity IN ({values})"


def _doubling(choose: random.Random) -> str:
    text = DOUBLINGS[choose.choice(sorted(DOUBLINGS))](choose.choice(_TIMES))
    for word, name in (("fact", "lineorder"), ("qty", "lo_quantity"), ("item", "lo_tax")):
        text = text.replace(word, name)
    return text


def _digits(choose: random.Random) -> str:
    number = choose.choice(("9", "1", "0")) * choose.choice((38, 39, 400, 4_300, 4_301, 50_000))
    sign, point = choose.choice(("", "-", "+")), choose.choice(("", ".5", "e5", "BD", "L", "D"))
    place = choose.choice(
        ("SELECT {} AS x FROM lineorder", "SELECT lo_tax FROM lineorder LIMIT {}",
         "SELECT SUM(lo_tax) AS s FROM lineorder WHERE lo_tax < {}",
         "SELECT COUNT(*) AS n FROM lineorder GROUP BY {}",
         "SELECT CAST(lo_tax AS DECIMAL({}, 2)) AS d FROM lineorder",
         "SELECT SUM(lo_tax) AS s FROM lineorder WHERE lo_tax IN (1, {})",
         "SELECT DATE '2020-01-01' + INTERVAL {} DAY AS d FROM lineorder")
    )  # fmt: skip
    return place.replace("{}", f"{sign}{number}{point}")


_KINDS: Final[tuple[Callable[[random.Random], str], ...]] = (
    _copies, _roles, _ors, _case, _in_list, _doubling, _digits,
)  # fmt: skip
