"""Texts that stand for twice as much with each level: what a name or a function repeats is one
object for the reader of texts, and 2^n nodes for whoever walks it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

Doubling = Callable[[int], str]
DOUBLINGS: Final[dict[str, Doubling]] = {}


def _doubling(make: Doubling) -> Doubling:
    DOUBLINGS[make.__name__] = make
    return make


def _nested(around: str, n: int) -> str:
    inner = "qty"
    for i in range(n):
        inner = around.format(inner=inner, i=i)
    return inner


@_doubling
def nullif_as_a_measure(n: int) -> str:
    return f"SELECT SUM({_nested('nullif({inner}, {i})', n)}) AS q FROM fact"


@_doubling
def nullif_as_a_condition(n: int) -> str:
    return f"SELECT SUM(qty) AS q FROM fact WHERE {_nested('nullif({inner}, {i})', n)} > 3"


@_doubling
def nullif_as_a_key(n: int) -> str:
    key = _nested("nullif({inner}, {i})", n)
    return f"SELECT SUM(qty) AS q FROM fact GROUP BY {key} HAVING {key} > 3 ORDER BY {key}"


@_doubling
def case_of_a_case(n: int) -> str:
    return (
        f"SELECT SUM({_nested('CASE {inner} WHEN 1 THEN 2 WHEN 3 THEN 4 END', n)}) AS q FROM fact"
    )


@_doubling
def between_of_a_between(n: int) -> str:
    return f"SELECT SUM({_nested('CAST({inner} BETWEEN 1 AND 3 AS INT)', n)}) AS q FROM fact"


@_doubling
def aliases(n: int) -> str:
    shown = ", ".join(f"x{i} + x{i} AS x{i + 1}" for i in range(n))
    return f"SELECT qty AS x0, {shown} FROM fact"


@_doubling
def subqueries(n: int) -> str:
    query = "SELECT item, qty AS x FROM fact"
    for _ in range(n):
        query = f"SELECT item, x + x AS x FROM ({query})"
    return f"SELECT item, SUM(x) AS q FROM ({query}) GROUP BY item"


@_doubling
def common_table_expressions(n: int) -> str:
    ctes = ", ".join(f"t{i + 1} AS (SELECT item, x + x AS x FROM t{i})" for i in range(n))
    begun = "WITH t0 AS (SELECT item, qty AS x FROM fact)"
    return f"{begun}, {ctes} SELECT item, SUM(x) AS q FROM t{n} GROUP BY item"


@_doubling
def joins_of_common_table_expressions(n: int) -> str:
    ctes = ", ".join(
        f"t{i + 1} AS (SELECT a.item, a.x FROM t{i} a JOIN t{i} b ON a.item = b.item)"
        for i in range(n)
    )
    begun = "WITH t0 AS (SELECT item, qty AS x FROM fact)"
    return f"{begun}, {ctes} SELECT item, SUM(x) AS q FROM t{n} GROUP BY item"


@_doubling
def conditions_of_joins(n: int) -> str:
    key = _nested("nullif({inner}, {i})", n)
    return f"SELECT SUM(qty) AS q FROM fact JOIN customer c ON c.custkey = {key}"
