"""Families put together at random: what repeats in a query or in the caches, and how much of each.

`n` stands for how often each of the chosen parts repeats, so a family of `2 * n` is the same query,
doubled in every direction at once: conditions, joins with what tells their roles apart, measures,
and how deep a CASE is; or it is the same query beside twice the caches.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from tests.harness.growth.families import ROLES, Family, Grown

MOST_JOINS: Final = 6
_FIXED: Final = 8  # of what does not grow
_DEEPEST: Final = 90  # what a reader of texts takes
_CONDITIONS: Final = (
    "f.item <> {i}",
    "f.item + {i} > f.store",
    "(f.item = {i} OR f.store = {j})",
    "(f.item + {i} > f.store * {j} OR f.qty < {i} OR f.note LIKE 'a{i}%')",
    "((f.item = {i} AND f.store = {j}) OR (f.item = {j} AND f.qty > {i}))",
    "f.item IN ({i}, {j}, {k})",
    "f.note LIKE 'n{i}%'",
    "f.day > DATE '2020-01-01' + INTERVAL {i} DAY",
    "NOT (f.item = {i} AND f.store = {j})",
    "CASE WHEN f.store = {i} THEN f.item ELSE f.qty END > {j}",
    "coalesce(f.item, f.store, {i}) = {j}",
    "f.item BETWEEN {i} AND {j} + 100",
    "EXISTS (SELECT 1 FROM customer x WHERE x.custkey = f.custkey AND x.region = 'r{i}')",
)
_SHOWN: Final = (
    "SUM(f.qty + {i})",
    "SUM(CASE WHEN f.store = {i} THEN f.qty END)",
    "COUNT(DISTINCT f.item + {i})",
    "MIN(f.qty) + {i}",
    "AVG(f.qty * {i})",
    "COUNT_IF(f.item = {i})",
    "SUM(f.qty * {i} + f.qty)",
)
_KEYS: Final = ("f.item", "f.store", "f.item + {i}", "year(f.day)", "f.day", "f.note")
_JOINS: Final = (
    "JOIN dates d{i} ON f.d{i}_key = d{i}.datekey",
    "LEFT JOIN dates d{i} ON f.d{i}_key = d{i}.datekey",
    "JOIN fact c{i} ON f.id = c{i}.id",
    "JOIN customer c{i} ON f.custkey = c{i}.custkey",
)
# What tells one role or copy of a table from the others, by what it is joined as; it repeats as
# often as the join does.
_OF_A_ROLE: Final = {
    "dates": ("d{i}.year = 2000 + {i}", "(d{i}.month = {i} OR d{i}.week > {j})", "d{i}.week > 3"),
    "fact": ("c{i}.store = {i}", "(c{i}.item > {i} OR c{i}.qty = f.qty)", "c{i}.qty > 3"),
    "customer": ("c{i}.region = 'r{i}'", "c{i}.nation IN ('n{i}', 'n{j}')", "c{i}.region <> ''"),
}
# Around what it was before, n deep.
_DEEP: Final = (
    "CASE WHEN f.store = {i} THEN {inner} ELSE f.item END",
    "CASE WHEN f.store = {i} THEN f.qty WHEN f.item > {j} THEN {inner} END",
    "if(f.item = {i} OR f.store = {j}, {inner}, f.qty)",
    "coalesce({inner} + {i}, f.item)",
)
_CACHES: Final = (
    "SELECT item, store, SUM(qty) AS q, COUNT(*) AS n FROM fact GROUP BY item, store",
    "SELECT item, store, SUM(qty) AS q FROM fact WHERE id > {i} OR store < {j} "
    "GROUP BY item, store",
    "SELECT item, store, qty, note, day, custkey FROM fact WHERE item + store > {i}",
    "SELECT d.year, f.item, SUM(qty) AS q FROM fact f JOIN dates d ON f.d{r}_key = d.datekey "
    "GROUP BY d.year, f.item",
    "SELECT item, store, day, SUM(qty) AS q FROM fact GROUP BY CUBE (item, store, day)",
    "SELECT a.item, b.store, a.qty FROM fact a JOIN fact b ON a.id = b.id WHERE b.item > {i}",
    "SELECT x.year, y.month, f.item, SUM(f.qty) AS q FROM fact f JOIN dates x ON f.d{r}_key = "
    "x.datekey JOIN dates y ON f.d0_key = y.datekey GROUP BY x.year, y.month, f.item",
    "SELECT a.item, b.store, c.qty FROM fact a JOIN fact b ON a.id = b.id JOIN fact c "
    "ON a.id = c.id WHERE c.store = {i}",
)


def random_family(seed: int) -> Family:
    """A query that grows beside some caches; always the same for a seed."""
    return _family(seed, lambda n: (n, _FIXED))


def random_caches(seed: int) -> Family:
    """Caches that become more, and a query; that of `random_family`."""
    return _family(seed, lambda n: (_FIXED, n))


def _family(seed: int, sizes: Callable[[int], tuple[int, int]]) -> Family:
    rng = Random(seed)
    conditions = rng.sample(_CONDITIONS, rng.randint(1, 4))
    joins = rng.sample(_JOINS, rng.randint(0, 1))
    shown = rng.sample(_SHOWN, rng.randint(0, 3))
    keys = rng.sample(_KEYS, rng.randint(0, 3))
    caches = rng.sample(_CACHES, rng.randint(1, 4))
    many_caches = rng.random() < 0.3
    connect = rng.choice((" AND ", " AND ", " OR "))
    offset = rng.randint(0, 1000)
    of_a_role = next((p for table, p in _OF_A_ROLE.items() for j in joins if f"{table} " in j), ())
    roles = rng.sample(of_a_role, rng.randint(0, len(of_a_role)))
    deep = rng.choice(_DEEP) if rng.random() < 0.3 else ""
    deep_is_shown = rng.random() < 0.5

    def nested(n: int) -> str:
        inner = "f.qty"
        for i in range(min(n, _DEEPEST)):
            inner = deep.format(i=i + offset, j=i + 7, inner=inner)
        return inner

    def family(size: int) -> Grown:
        n, more = sizes(size)

        def each(parts: list[str], times: int) -> list[str]:
            return [
                part.format(i=i if "d{i}" in part else i + offset, j=i + 7, k=3 * i, r=i % ROLES)
                for i in range(times)
                for part in parts
            ]

        definitions = tuple(dict.fromkeys(each(caches, more if many_caches else 1)))
        joined = " ".join(each(joins, min(n, MOST_JOINS)))
        told_apart = each(roles, min(n, MOST_JOINS))
        case = nested(n) if deep else ""
        tests = [*each(conditions, n), *told_apart]
        if case and not deep_is_shown:
            tests.append(f"{case} > 5")
        where = connect.join(tests)
        aggregates = [*each(shown, n), *([f"SUM({case})"] if case and deep_is_shown else [])]
        columns = [f"{e} AS c{i}" for i, e in enumerate([*each(keys, 1), *aggregates])]
        group = f" GROUP BY {', '.join(each(keys, 1))}" if keys else ""
        select = ", ".join(columns) or "COUNT(*) AS n"
        return Grown(definitions, f"SELECT {select} FROM fact f {joined} WHERE {where}{group}")

    return family
