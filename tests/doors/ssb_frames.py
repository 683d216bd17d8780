"""The 13 queries of the Star Schema Benchmark by the DataFrame API, with the paper's parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

_KEYS: Final = {
    "dates": ("lo_orderdate", "d_datekey"),
    "customer": ("lo_custkey", "c_custkey"),
    "supplier": ("lo_suppkey", "s_suppkey"),
    "part": ("lo_partkey", "p_partkey"),
}


@dataclass(frozen=True)
class _Frame:
    """One query: the dimensions that are joined, the values that columns must have (one, several
    or a range), the keys, and what is added up."""

    joined: tuple[str, ...]
    where: Mapping[str, object]
    keys: tuple[str, ...]
    value: tuple[str, ...]
    name: str = "revenue"
    by_value: bool = False


_DISCOUNT = ("lo_extendedprice", "*", "lo_discount")
_PROFIT = ("lo_revenue", "-", "lo_supplycost")
_ALL = ("dates", "customer", "supplier", "part")
_PLACES = ("customer", "supplier", "dates")
_TWO_CITIES = ["UNITED KI1", "UNITED KI5"]
_FRAMES: Final[Mapping[str, _Frame]] = {
    "Q1.1": _Frame(
        ("dates",),
        {"d_year": 1993, "lo_discount": (1, 3), "lo_quantity": (None, 24)},
        (),
        _DISCOUNT,
    ),
    "Q1.2": _Frame(
        ("dates",),
        {"d_yearmonthnum": 199401, "lo_discount": (4, 6), "lo_quantity": (26, 35)},
        (),
        _DISCOUNT,
    ),
    "Q1.3": _Frame(
        ("dates",),
        {
            "d_weeknuminyear": 6,
            "d_year": 1994,
            "lo_discount": (5, 7),
            "lo_quantity": (26, 35),
        },
        (),
        _DISCOUNT,
    ),
    **{
        name: _Frame(
            ("dates", "part", "supplier"),
            {**part, "s_region": region},
            ("d_year", "p_brand1"),
            ("lo_revenue",),
        )
        for name, part, region in (
            ("Q2.1", {"p_category": "MFGR#12"}, "AMERICA"),
            ("Q2.2", {"p_brand1": ("MFGR#2221", "MFGR#2228")}, "ASIA"),
            ("Q2.3", {"p_brand1": "MFGR#2221"}, "EUROPE"),
        )
    },
    **{
        name: _Frame(_PLACES, where, (*places, "d_year"), ("lo_revenue",), by_value=True)
        for name, where, places in (
            (
                "Q3.1",
                {"c_region": "ASIA", "s_region": "ASIA", "d_year": (1992, 1997)},
                ("c_nation", "s_nation"),
            ),
            (
                "Q3.2",
                {"c_nation": "UNITED STATES", "s_nation": "UNITED STATES", "d_year": (1992, 1997)},
                ("c_city", "s_city"),
            ),
            (
                "Q3.3",
                {"c_city": _TWO_CITIES, "s_city": _TWO_CITIES, "d_year": (1992, 1997)},
                ("c_city", "s_city"),
            ),
            (
                "Q3.4",
                {"c_city": _TWO_CITIES, "s_city": _TWO_CITIES, "d_yearmonth": "Dec1997"},
                ("c_city", "s_city"),
            ),
        )
    },
    "Q4.1": _Frame(
        _ALL,
        {"c_region": "AMERICA", "s_region": "AMERICA", "p_mfgr": ["MFGR#1", "MFGR#2"]},
        ("d_year", "c_nation"),
        _PROFIT,
        "profit",
    ),
    "Q4.2": _Frame(
        _ALL,
        {
            "c_region": "AMERICA",
            "s_region": "AMERICA",
            "d_year": [1997, 1998],
            "p_mfgr": ["MFGR#1", "MFGR#2"],
        },
        ("d_year", "s_nation", "p_category"),
        _PROFIT,
        "profit",
    ),
    "Q4.3": _Frame(
        _ALL,
        {
            "c_region": "AMERICA",
            "s_nation": "UNITED STATES",
            "d_year": [1997, 1998],
            "p_category": "MFGR#14",
        },
        ("d_year", "s_city", "p_brand1"),
        _PROFIT,
        "profit",
    ),
}


def ssb_frame(spark: Any, functions: ModuleType, name: str) -> Any:
    """A query as a DataFrame; its columns are those of its text.

    Args:
        spark: A classic session, or one of Spark Connect.
        functions: `pyspark.sql.functions`, or those of Spark Connect.
        name: `Q1.1` to `Q4.3`.
    """
    query, col = _FRAMES[name], functions.col
    rows = spark.table("lineorder")
    for table in query.joined:
        left, right = _KEYS[table]
        rows = rows.join(spark.table(table), col(left) == col(right))
    for column, wanted in query.where.items():
        rows = rows.where(_condition(col(column), wanted))
    first, *rest = query.value
    value = col(first)
    if rest:
        operator, second = rest
        value = value * col(second) if operator == "*" else value - col(second)
    total = functions.sum(value).alias(query.name)
    if not query.keys:
        return rows.agg(total)
    found = rows.groupBy(*query.keys).agg(total)
    if query.by_value:
        # its keys, then the year, then the sum: as in the text
        return found.orderBy(col("d_year").asc(), col(query.name).desc())
    return found.orderBy(*query.keys).select(*_columns(name, query))


def _columns(name: str, query: _Frame) -> tuple[str, ...]:
    return (query.name, *query.keys) if name.startswith("Q2") else (*query.keys, query.name)


def _condition(column: Any, wanted: object) -> Any:
    if isinstance(wanted, list):
        return column.isin(*wanted)
    if isinstance(wanted, tuple):
        low, high = wanted
        return column <= high if low is None else column.between(low, high)
    return column == wanted
