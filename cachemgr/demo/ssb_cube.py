"""The demo's DDL: four record-preserving joins, its own cube, and the published 16-set cube."""

from __future__ import annotations

CUBE_NAME = "ssb_cube"
PUBLISHED_NAME = "p_cube"
VIEW_NAME = "p_lineorder"

#: (name, dimension, fact's key, dimension's key)
_JOINS = (
    ("lo_dates", "dates", "lo_orderdate", "d_datekey"),
    ("lo_customer", "customer", "lo_custkey", "c_custkey"),
    ("lo_supplier", "supplier", "lo_suppkey", "s_suppkey"),
    ("lo_part", "part", "lo_partkey", "p_partkey"),
)

RECORD_PRESERVING_JOINS: tuple[str, ...] = tuple(
    f"CREATE RECORD PRESERVING JOIN IF NOT EXISTS {name}\n"
    f"AS lineorder INNER JOIN {dimension} ON {foreign} = {key} PRESERVES lineorder"
    for name, dimension, foreign, key in _JOINS
)

#: The sets of the demo's cube, each with the queries that it is for. No set is wider than its
#: queries need: that is what keeps hits small.
CUBE_SETS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("d_year", "lo_discount", "lo_quantity"), "Q1.1"),
    (("d_yearmonthnum", "lo_discount", "lo_quantity"), "Q1.2"),
    (("d_year", "d_weeknuminyear", "lo_discount", "lo_quantity"), "Q1.3"),
    (("d_year", "p_category", "p_brand1", "s_region"), "Q2.1 Q2.2 Q2.3"),
    (("d_year", "c_region", "s_region", "c_nation", "s_nation"), "Q3.1"),
    (("d_year", "c_nation", "s_nation", "c_city", "s_city"), "Q3.2 Q3.3"),
    (("d_year", "d_yearmonth", "c_city", "s_city"), "Q3.4"),
    (("d_year", "c_region", "s_region", "c_nation", "p_mfgr"), "Q4.1"),
    (("d_year", "c_region", "s_region", "s_nation", "p_mfgr", "p_category"), "Q4.2"),
    (("d_year", "c_region", "s_nation", "s_city", "p_category", "p_brand1"), "Q4.3"),
)

#: The published sets in their own spelling and order, the repeated ones included.
PUBLISHED_SETS: tuple[tuple[str, ...], ...] = (
    ("d_year", "d_weeknuminyear", "lo_discount", "lo_quantity"),
    ("d_year", "lo_discount", "lo_quantity"),
    ("lo_discount", "lo_quantity"),
    ("d_yearmonthnum", "lo_discount", "lo_quantity"),
    ("d_year", "p_category", "p_brand1", "s_region"),
    ("d_year", "p_category", "s_region"),
    ("d_year", "s_region"),
    ("d_year", "s_region", "c_region", "s_nation", "c_nation"),
    ("d_year", "s_city", "c_city", "s_nation", "c_nation"),
    ("d_year", "s_city", "c_city"),
    ("d_year", "d_yearmonth", "s_city", "c_city"),
    ("d_year", "s_region", "c_region", "c_nation", "p_mfgr"),
    ("d_year", "s_region", "s_nation", "c_region", "p_mfgr", "p_category"),
    ("d_year", "s_nation", "s_city", "c_region", "p_brand1", "p_category", "p_brand1"),
    ("d_year", "s_nation", "s_city", "c_region", "p_brand1", "p_category"),
    ("d_year", "s_nation", "s_city", "c_region", "p_category", "p_brand1"),
)

#: The smallest set that the published cube lacks for the published example.
PUBLISHED_FIX: tuple[str, ...] = (
    "d_year", "d_yearmonth", "s_city", "c_city", "s_nation", "c_nation",
)  # fmt: skip

PUBLISHED_COLUMNS: tuple[str, ...] = (
    "lo_discount", "lo_quantity", "d_year", "d_yearmonth", "d_yearmonthnum", "d_weeknuminyear",
    "s_region", "s_nation", "s_city", "c_region", "c_nation", "c_city",
    "p_mfgr", "p_category", "p_brand1",
)  # fmt: skip

_VIEW = f"""\
CREATE OR REPLACE {{temporary}}VIEW {VIEW_NAME} AS
SELECT lineorder.*, dates.*, customer.*, supplier.*, part.*,
  lo_extendedprice * lo_discount AS v_revenue
FROM lineorder
JOIN dates ON lo_orderdate = d_datekey
JOIN customer ON lo_custkey = c_custkey
JOIN supplier ON lo_suppkey = s_suppkey
JOIN part ON lo_partkey = p_partkey"""

PUBLISHED_EXAMPLE = f"""\
SELECT c_city, s_city, d_year, SUM(lo_revenue) AS revenue
FROM {VIEW_NAME}
WHERE c_nation = 'UNITED KINGDOM'
  AND s_nation = 'UNITED KINGDOM'
  AND (c_city = 'UNITED KI1' OR c_city = 'UNITED KI5')
  AND (s_city = 'UNITED KI1' OR s_city = 'UNITED KI5')
  AND d_yearmonth = 'Dec1997'
GROUP BY c_city, s_city, d_year
ORDER BY d_year ASC, revenue DESC"""


def cube_columns() -> tuple[str, ...]:
    """The group columns of the demo's cube, in order of first appearance.

    Returns:
        Column names.
    """
    return tuple(dict.fromkeys(column for columns, _ in CUBE_SETS for column in columns))


def cube_ddl(*, replace: bool = False) -> str:
    """The demo's own cube: no predicate but the four joins.

    Args:
        replace: Whether an older definition of the same name is replaced.

    Returns:
        The CREATE RELATIONAL CACHE statement.
    """
    columns = ", ".join(cube_columns())
    sets = ",\n  ".join(f"({', '.join(columns)})" for columns, _ in CUBE_SETS)
    head = "CREATE OR REPLACE RELATIONAL CACHE" if replace else "CREATE RELATIONAL CACHE"
    exists = "" if replace else " IF NOT EXISTS"
    return f"""\
{head}{exists} {CUBE_NAME}
COMMENT 'the demo cube: answers the 13 SSB queries'
REFRESH EVERY 1 HOUR AUTO STRICT ENABLE REWRITE
AS SELECT GROUPING_ID() AS grouping_id, {columns},
  SUM(lo_revenue) AS sum_revenue,
  SUM(lo_supplycost) AS sum_supplycost,
  SUM(lo_extendedprice * lo_discount) AS sum_discounted,
  COUNT(*) AS row_count
FROM lineorder, dates, customer, supplier, part
WHERE lo_orderdate = d_datekey
  AND lo_custkey = c_custkey
  AND lo_suppkey = s_suppkey
  AND lo_partkey = p_partkey
GROUP BY GROUPING SETS (
  {sets}
)"""


def published_view(*, temporary: bool = False) -> str:
    """The view that the published cube stands on.

    Args:
        temporary: Whether it is made as a temporary view.

    Returns:
        The CREATE VIEW statement.
    """
    return _VIEW.format(temporary="TEMPORARY " if temporary else "")


def published_ddl(
    *, name: str = PUBLISHED_NAME, extra_sets: tuple[tuple[str, ...], ...] = ()
) -> str:
    """The published cube: 15 columns, 16 sets, duplicates and spelling included.

    Args:
        name: The cache's name.
        extra_sets: Sets added at the end, for example `PUBLISHED_FIX`.

    Returns:
        The CREATE RELATIONAL CACHE statement.
    """
    columns = ", ".join(PUBLISHED_COLUMNS)
    sets = ",\n  ".join(f"({', '.join(one)})" for one in (*PUBLISHED_SETS, *extra_sets))
    return f"""\
CREATE RELATIONAL CACHE {name}
REFRESH ON DEMAND STRICT ENABLE REWRITE
AS SELECT GROUPING_ID() AS grouping_id, {columns},
  SUM(lo_revenue) AS lo_revenue_SUM,
  SUM(lo_supplycost) AS lo_supplycost_SUM,
  SUM(v_revenue) AS v_revenue_SUM
FROM {VIEW_NAME}
GROUP BY {columns}
GROUPING SETS (
  {sets}
)"""
