"""Families of queries that grow by one number, each of a kind that has hurt some matcher.

Each is a function of `n` that gives definitions and one query, over the tables of `SCHEMA`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from matcher.index.registry import Registry
from matcher.model import budget
from matcher.model.ir import Choice, MatchOptions, Rewrite
from matcher.normalize.stored_plan import plan_definition
from matcher.sql.reader import parse_query
from matcher.sql.schema import Schema

ROLES: Final = 16
_KEYS: Final = [f"d{i}_key" for i in range(ROLES)]
SCHEMA: Final = (
    "CREATE TABLE dates (datekey INT NOT NULL PRIMARY KEY, year INT, month INT, week INT);"
    "CREATE TABLE customer (custkey INT NOT NULL PRIMARY KEY, region STRING, nation STRING);"
    + "".join(
        f"CREATE TABLE link{i} (k{i} INT NOT NULL PRIMARY KEY, k{i + 1} INT NOT NULL, name STRING, "
        f"CONSTRAINT l{i} FOREIGN KEY (k{i + 1}) REFERENCES link{i + 1} (k{i + 1}) RELY);"
        for i in range(24)
    )
    + "CREATE TABLE link24 (k24 INT NOT NULL PRIMARY KEY, name STRING);"
    "CREATE TABLE fact (id BIGINT NOT NULL, k0 INT NOT NULL, item INT, store INT, note STRING, "
    "day DATE, qty INT, price DECIMAL(9, 2), custkey INT NOT NULL, "
    + "".join(f"{key} INT NOT NULL, " for key in _KEYS)
    + "CONSTRAINT fk FOREIGN KEY (k0) REFERENCES link0 (k0) RELY, "
    "CONSTRAINT fc FOREIGN KEY (custkey) REFERENCES customer (custkey) RELY, "
    + ", ".join(
        f"CONSTRAINT f_{key} FOREIGN KEY ({key}) REFERENCES dates (datekey) RELY" for key in _KEYS
    )
    + ");"
)
_BY_ITEM: Final = (
    "SELECT item, store, SUM(qty) AS q, COUNT(*) AS n, COUNT(qty) AS c, MIN(qty) AS lo "
    "FROM fact GROUP BY item, store"
)
_ROWS: Final = "SELECT id, item, store, note, day, qty, price, custkey FROM fact"
_FILTERED: Final = (
    "SELECT item, store, SUM(qty) AS q FROM fact WHERE item + store > 5 OR item > 7 "
    "GROUP BY item, store"
)


@dataclass(frozen=True, slots=True)
class Grown:
    """One member of a family."""

    definitions: tuple[str, ...]
    query: str


Family = Callable[[int], Grown]
FAMILIES: Final[dict[str, Family]] = {}


def _family(make: Family) -> Family:
    FAMILIES[make.__name__] = make
    return make


def _filtered(condition: str, *definitions: str) -> Grown:
    return Grown(definitions or (_BY_ITEM,), f"SELECT SUM(qty) AS q FROM fact WHERE {condition}")


def _ors(parts: Iterable[str]) -> str:
    return "(" + " OR ".join(parts) + ")"


def _ands(parts: Iterable[str]) -> str:
    return " AND ".join(parts)


def _copies(n: int) -> str:
    return ", ".join(f"fact f{i}" for i in range(n))


@_family
def copies_in_a_chain(n: int) -> Grown:
    on = _ands(f"f{i}.item = f{i + 1}.item" for i in range(n - 1)) or "TRUE"
    return Grown((_BY_ITEM,), f"SELECT COUNT(*) AS n FROM {_copies(n)} WHERE {on}")


@_family
def copies_told_apart_by_nothing(n: int) -> Grown:
    two = "SELECT a.id, b.id AS other FROM fact a, fact b WHERE a.price > 100"
    return Grown((two, _BY_ITEM), f"SELECT f0.id FROM {_copies(n)}")


@_family
def copies_filtered_apart(n: int) -> Grown:
    where = _ands(f"f{i}.store = {i}" for i in range(n))
    join = _ands(f"f{i}.id = f0.id" for i in range(1, n)) or "TRUE"
    pairs = "SELECT a.id, b.qty FROM fact a JOIN fact b ON a.id = b.id WHERE b.store = 1"
    return Grown((pairs, _BY_ITEM), f"SELECT f0.id FROM {_copies(n)} WHERE {where} AND {join}")


def _roles(n: int, kind: str) -> str:
    joins = (f"{kind} dates d{i} ON f.d{i}_key = d{i}.datekey" for i in range(n))
    return " ".join(("FROM fact f", *joins))


@_family
def roles(n: int) -> Grown:
    n = min(n, ROLES)
    one = "SELECT d.year, SUM(qty) AS q FROM fact f JOIN dates d ON f.d0_key = d.datekey"
    three = (
        "SELECT a.year AS y, b.month AS m, SUM(qty) AS q FROM fact f "
        "JOIN dates a ON f.d1_key = a.datekey JOIN dates b ON f.d0_key = b.datekey"
    )
    return Grown(
        (f"{one} GROUP BY d.year", f"{three} GROUP BY a.year, b.month"),
        f"SELECT d0.year, SUM(qty) AS q {_roles(n, 'JOIN')} GROUP BY d0.year",
    )


@_family
def roles_by_left_joins(n: int) -> Grown:
    n = min(n, ROLES)
    whole = f"SELECT d0.year, d1.month, SUM(qty) AS q {_roles(n, 'LEFT JOIN')}"
    query = f"SELECT d0.year, SUM(qty) AS q {_roles(n, 'LEFT JOIN')} GROUP BY d0.year"
    if n < 2:
        return Grown((_BY_ITEM,), query)
    return Grown((f"{whole} GROUP BY d0.year, d1.month",), query)


@_family
def chain_of_keys(n: int) -> Grown:
    n = min(n, 24)
    chain = "FROM fact JOIN link0 ON fact.k0 = link0.k0 " + " ".join(
        f"JOIN link{i + 1} ON link{i}.k{i + 1} = link{i + 1}.k{i + 1}" for i in range(n)
    )
    stored = f"SELECT link0.k0, link{n}.name AS last, SUM(qty) AS q {chain}"
    return Grown(
        (f"{stored} GROUP BY link0.k0, link{n}.name",),
        "SELECT fact.k0, SUM(qty) AS q FROM fact JOIN link0 ON fact.k0 = link0.k0 GROUP BY fact.k0",
    )


@_family
def or_of_pairs(n: int) -> Grown:
    return _filtered(_ors(f"(item = {i} AND store = {i + 1})" for i in range(n)))


@_family
def or_over_the_same_or(n: int) -> Grown:
    where = _ors(f"(item = {i} AND store = {i + 1})" for i in range(n))
    stored = f"SELECT item, store, SUM(qty) AS q FROM fact WHERE {where} GROUP BY item, store"
    return _filtered(where, stored)


@_family
def or_over_another_or(n: int) -> Grown:
    where = _ors(f"(item = {i} AND store < {i + 5})" for i in range(n))
    stored = f"SELECT item, store, SUM(qty) AS q FROM fact WHERE {where} GROUP BY item, store"
    return _filtered(_ors(f"(item = {i} AND store = {i + 1})" for i in range(n)), stored)


@_family
def or_of_expressions(n: int) -> Grown:
    return _filtered(_ors(f"item + {i} > store * {i + 1}" for i in range(n)), _FILTERED)


@_family
def and_of_ors(n: int) -> Grown:
    parts = (_ors(f"item + {i * j} > store * {i + j}" for j in range(3)) for i in range(n))
    return _filtered(_ands(parts), _BY_ITEM, _FILTERED)


@_family
def and_of_ors_of_values(n: int) -> Grown:
    parts = (_ors(f"(item = {i + j} AND store = {i * j})" for j in range(4)) for i in range(n))
    return _filtered(_ands(parts), _BY_ITEM, _FILTERED)


@_family
def and_of_comparisons(n: int) -> Grown:
    return _filtered(_ands(f"item <> {i}" for i in range(n)))


@_family
def and_of_column_comparisons(n: int) -> Grown:
    return _filtered(_ands(f"item + {i} <= store" for i in range(n)), _BY_ITEM, _FILTERED)


@_family
def likes(n: int) -> Grown:
    return _filtered(_ands(f"note LIKE 'a{i}%b'" for i in range(n)), _ROWS)


@_family
def nested_case(n: int) -> Grown:
    case = "item"
    for i in range(min(n, 90)):
        case = f"CASE WHEN store = {i} THEN {i} ELSE {case} END"
    return _filtered(f"{case} = 5")


@_family
def wide_case(n: int) -> Grown:
    whens = " ".join(f"WHEN store = {i} THEN {i}" for i in range(n))
    case = f"CASE {whens} ELSE item END"
    return Grown((_BY_ITEM,), f"SELECT {case} AS k, SUM(qty) AS q FROM fact GROUP BY {case}")


@_family
def sum_of_nested_case(n: int) -> Grown:
    case = "qty"
    for i in range(min(n, 90)):
        case = f"CASE WHEN store = {i} THEN {case} ELSE 0 END"
    return Grown((_BY_ITEM,), f"SELECT item, SUM({case}) AS q FROM fact GROUP BY item")


@_family
def sum_of_a_long_sum(n: int) -> Grown:
    terms = " + ".join(f"qty * {i + 1}" for i in range(n))
    return Grown((_BY_ITEM,), f"SELECT item, SUM({terms}) AS q FROM fact GROUP BY item")


@_family
def in_list(n: int) -> Grown:
    return _filtered(f"item IN ({', '.join(str(2 * i) for i in range(4 * n))})")


@_family
def not_in_list(n: int) -> Grown:
    return _filtered(f"item NOT IN ({', '.join(str(2 * i) for i in range(4 * n))})")


@_family
def in_list_of_an_expression(n: int) -> Grown:
    return _filtered(f"item + store IN ({', '.join(str(2 * i) for i in range(4 * n))})", _FILTERED)


@_family
def tuples_in_list(n: int) -> Grown:
    return _filtered(f"(item, store) IN ({', '.join(f'({i}, {i + 1})' for i in range(n))})")


@_family
def common_table_expressions(n: int) -> Grown:
    ctes = ", ".join(
        f"t{i} AS (SELECT item, SUM(qty) AS q FROM fact WHERE store = {i} GROUP BY item)"
        for i in range(n)
    )
    parts = " UNION ALL ".join(f"SELECT * FROM t{i}" for i in range(n))
    return Grown((_BY_ITEM,), f"WITH {ctes} {parts}")


@_family
def nested_subqueries(n: int) -> Grown:
    query = "SELECT item, store, qty FROM fact"
    for i in range(min(n, 90)):
        query = f"SELECT item, store, qty FROM ({query}) WHERE item <> {i}"
    return Grown((_BY_ITEM,), f"SELECT item, SUM(qty) AS q FROM ({query}) GROUP BY item")


@_family
def exists_subqueries(n: int) -> Grown:
    tests = _ands(
        f"EXISTS (SELECT 1 FROM customer c WHERE c.custkey = f.custkey AND c.region = 'r{i}')"
        for i in range(n)
    )
    return Grown((_BY_ITEM, _ROWS), f"SELECT SUM(qty) AS q FROM fact f WHERE {tests}")


@_family
def deep_arithmetic(n: int) -> Grown:
    depth = min(n, 90)
    return _filtered("(" * depth + "item" + f" + {n})" * depth + " > 5")


@_family
def deep_functions(n: int) -> Grown:
    depth = min(n, 90)
    return _filtered("coalesce(" * depth + "item" + ", store)" * depth + " = 5")


@_family
def many_columns(n: int) -> Grown:
    shown = ", ".join(f"qty + {i} AS c{i}" for i in range(4 * n))
    return Grown((_ROWS,), f"SELECT {shown} FROM fact")


@_family
def many_sums(n: int) -> Grown:
    shown = ", ".join(f"SUM(qty + {i}) AS c{i}" for i in range(4 * n))
    return Grown((_BY_ITEM,), f"SELECT {shown} FROM fact")


@_family
def many_keys(n: int) -> Grown:
    keys = ", ".join(f"qty + {i}" for i in range(4 * n))
    return Grown((_ROWS,), f"SELECT COUNT(*) AS n FROM fact GROUP BY {keys}")


@_family
def many_conditions_on_groups(n: int) -> Grown:
    having = _ands(f"SUM(qty) <> {i}" for i in range(n))
    return Grown((_BY_ITEM,), f"SELECT item, SUM(qty) AS q FROM fact GROUP BY item HAVING {having}")


@_family
def union_of_blocks(n: int) -> Grown:
    parts = (f"SELECT item + {i} AS k, SUM(qty) AS q FROM fact GROUP BY item" for i in range(n))
    return Grown((_BY_ITEM,), " UNION ALL ".join(parts))


@_family
def grouping_sets(n: int) -> Grown:
    sets = ("(item)", "(store)", "(item, store)", "(day, note)", "()")
    cube = (
        "SELECT item, store, day, note, SUM(qty) AS q FROM fact "
        "GROUP BY CUBE (item, store, day, note)"
    )
    written = ", ".join(sets[i % len(sets)] for i in range(n))
    return Grown((cube,), f"SELECT SUM(qty) AS q FROM fact GROUP BY GROUPING SETS ({written})")


@_family
def caches_alike(n: int) -> Grown:
    stored = tuple(
        f"SELECT item, store, SUM(qty) AS q FROM fact WHERE id > {i} GROUP BY item, store"
        for i in range(n)
    )
    return Grown(stored, "SELECT item, SUM(qty) AS q FROM fact GROUP BY item")


@_family
def caches_alike_and_a_long_filter(n: int) -> Grown:
    stored = tuple(
        f"SELECT item, store, SUM(qty) AS q FROM fact WHERE id > {i} OR store < {i} "
        "GROUP BY item, store"
        for i in range(n)
    )
    return _filtered(_ands(f"(id > {i} OR store = {i})" for i in range(1000, 1020)), *stored)


@_family
def caches_alike_to_be_joined(n: int) -> Grown:
    stored = tuple(
        f"SELECT item, custkey, SUM(qty) AS q FROM fact WHERE id > {i} GROUP BY item, custkey"
        for i in range(n)
    )
    return Grown(
        stored,
        "SELECT region, SUM(qty) AS q FROM fact JOIN customer USING (custkey) GROUP BY region",
    )


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a query: how much was spent on reading it, and on deciding."""

    read: budget.Spent
    decided: budget.Spent
    decisions: tuple[Choice[Rewrite], ...]


_schema: Schema | None = None


def schema() -> Schema:
    """The tables of `SCHEMA`, read once."""
    global _schema
    if _schema is None:
        _schema = Schema.parse(SCHEMA)
    return _schema


def registry_of(definitions: Iterable[str]) -> Registry:
    """A registry of the caches c0, c1, …"""
    registry = Registry()
    for number, text in enumerate(definitions):
        (located,) = parse_query(text, schema()).walk()
        assert located.block is not None, located.reasons
        registry.put(plan_definition(f"c{number}", located.block, schema().joins()))
    return registry


def decide(registry: Registry, query: str, steps: int = 1 << 40) -> Outcome:
    """Read and decide a query.

    Args:
        registry: The caches.
        query: The text.
        steps: The most steps for each of the two.
    """
    with budget.decision(steps, 600.0):
        blocks = [located.block for located in parse_query(query, schema()).walk()]
        read = budget.spent()
    options = MatchOptions(time_zone="UTC", most_steps=steps)
    with budget.decision(steps, 600.0):
        decisions = tuple(
            registry.decide(block, options, remember=False) for block in blocks if block is not None
        )
        decided = budget.spent()
    return Outcome(read, decided, decisions)
