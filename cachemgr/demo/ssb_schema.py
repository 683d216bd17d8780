"""The five SSB tables: columns and row counts. Every column is NOT NULL, measures are BIGINT."""

from __future__ import annotations

import math
from dataclasses import dataclass

_LINEORDER = """
lo_orderkey BIGINT, lo_linenumber INT, lo_custkey INT, lo_partkey INT, lo_suppkey INT,
lo_orderdate INT, lo_orderpriority STRING, lo_shippriority STRING, lo_quantity BIGINT,
lo_extendedprice BIGINT, lo_ordtotalprice BIGINT, lo_discount BIGINT, lo_revenue BIGINT,
lo_supplycost BIGINT, lo_tax BIGINT, lo_commitdate INT, lo_shipmode STRING
"""
_CUSTOMER = """
c_custkey INT, c_name STRING, c_address STRING, c_city STRING, c_nation STRING, c_region STRING,
c_phone STRING, c_mktsegment STRING
"""
_SUPPLIER = """
s_suppkey INT, s_name STRING, s_address STRING, s_city STRING, s_nation STRING, s_region STRING,
s_phone STRING
"""
_PART = """
p_partkey INT, p_name STRING, p_mfgr STRING, p_category STRING, p_brand1 STRING, p_color STRING,
p_type STRING, p_size INT, p_container STRING
"""
_DATES = """
d_datekey INT, d_date STRING, d_dayofweek STRING, d_month STRING, d_year INT,
d_yearmonthnum INT, d_yearmonth STRING, d_daynuminweek INT, d_daynuminmonth INT,
d_daynuminyear INT, d_monthnuminyear INT, d_weeknuminyear INT, d_sellingseason STRING,
d_lastdayinweekfl INT, d_lastdayinmonthfl INT, d_holidayfl INT, d_weekdayfl INT
"""


def _columns(text: str) -> tuple[tuple[str, str], ...]:
    pairs = (part.split() for part in text.split(","))
    return tuple((name, kind) for name, kind in pairs)


#: Table to its (column, type) pairs; dimensions first, so that a fact never lacks its parents.
TABLES: dict[str, tuple[tuple[str, str], ...]] = {
    "dates": _columns(_DATES),
    "customer": _columns(_CUSTOMER),
    "supplier": _columns(_SUPPLIER),
    "part": _columns(_PART),
    "lineorder": _columns(_LINEORDER),
}

DAYS = 2557
CITY_COUNT = 250
BRAND_COUNT = 1000


@dataclass(frozen=True, slots=True)
class Sizes:
    """Row counts at a scale.

    Args:
        lineorder: Fact rows.
        customer: Customers, at least one a city.
        supplier: Suppliers, at least one a city.
        part: Parts, at least one a brand.
        dates: Days.
    """

    lineorder: int
    customer: int
    supplier: int
    part: int
    dates: int = DAYS

    def of(self, table: str) -> int:
        """Rows of a table by its name.

        Args:
            table: One of `TABLES`.

        Returns:
            The row count.
        """
        count: int = getattr(self, table)
        return count


def sizes(scale: float) -> Sizes:
    """The paper's cardinalities at a scale.

    Below scale 1 the dimensions shrink in proportion, but never below one row a city and one a
    brand, so that every value that a query names exists at every scale.

    Args:
        scale: Scale factor, above 0.

    Returns:
        The row counts.
    """
    part = 200_000 * (1 + math.floor(math.log2(scale))) if scale >= 1 else round(200_000 * scale)
    return Sizes(
        lineorder=max(1, round(6_000_000 * scale)),
        customer=max(CITY_COUNT, round(30_000 * scale)),
        supplier=max(CITY_COUNT, round(2_000 * scale)),
        part=max(BRAND_COUNT, part),
    )


def create_table(name: str, location: str) -> str:
    """The CREATE TABLE statement of one SSB table.

    Args:
        name: One of `TABLES`.
        location: Where its Delta files are.

    Returns:
        Spark SQL.
    """
    columns = ",\n  ".join(f"{column} {kind} NOT NULL" for column, kind in TABLES[name])
    path = location.replace("\\", "\\\\").replace("'", "\\'")
    return f"CREATE TABLE IF NOT EXISTS {name} (\n  {columns}\n) USING DELTA LOCATION '{path}'"
