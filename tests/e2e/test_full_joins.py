# ruff: noqa: E501 - tables of SQL read better unbroken
"""FULL joins and lists of tuples through Catalyst: rows, and what a cache with a FULL join answers."""

from __future__ import annotations

import pytest

FULL = "SELECT city, SUM(amt) AS s, COUNT(*) AS n FROM sales FULL OUTER JOIN cust ON cust = cid {} GROUP BY city"


@pytest.fixture
def full(lab):
    """Sales without a customer, customers without a sale, and several of each."""
    lab.plain.sql(
        "INSERT INTO sales VALUES (9, NULL, 'north', NULL, 5, 5, 1.0, 1.0), (10, NULL, 'west', 77, 6, 5, 1.0, 1.0)"
    )
    lab.plain.sql("INSERT INTO cust VALUES (2, 'Bergen', 'Norway'), (4, 'Nice', NULL)")
    lab.cache(
        "fulls AS SELECT coalesce(cust, cid) AS who, city, cid, region, SUM(amt) AS s, COUNT(*) AS n, COUNT(id) AS ids "
        "FROM sales FULL JOIN cust ON cust = cid GROUP BY coalesce(cust, cid), city, cid, region"
    )
    return lab


def test_a_full_join_of_a_cache(full):
    full.hit(FULL.format(""))
    full.hit(FULL.format("WHERE region IS NULL"))
    full.hit(FULL.format("WHERE cid IS NULL"))
    full.hit(
        "SELECT region, COUNT(id), COUNT(*) FROM cust FULL JOIN sales ON cid = cust GROUP BY region"
    )
    full.hit(
        "SELECT coalesce(cid, cust) AS who, SUM(amt) FROM cust FULL JOIN sales ON cid = cust GROUP BY coalesce(cid, cust) ORDER BY 1"
    )


def test_what_is_left_of_a_full_join(full):
    full.hit(FULL.format("").replace("FULL OUTER", "RIGHT"))
    full.hit("SELECT city, COUNT(id) FROM cust LEFT JOIN sales ON cust = cid GROUP BY city")
    full.hit(FULL.format("WHERE city > 'B'"))
    full.miss(FULL.format("").replace("FULL OUTER", "LEFT"), "OUTER_JOIN_DIFFERS")
    full.miss(
        FULL.format("").replace("cust = cid", "cust = cid AND region = 'north'"),
        "OUTER_JOIN_DIFFERS",
    )


def test_a_full_join_shows_what_came_after_a_refresh(full):
    full.plain.sql("INSERT INTO cust VALUES (77, 'Graz', NULL)")
    full.miss(FULL.format(""), "STALE")
    full.sql("REFRESH RELATIONAL CACHE fulls")
    full.hit(FULL.format(""))


def test_tuples_in_a_list(lab):
    lab.cache(
        "flat AS SELECT cust, region, SUM(amt) AS s, COUNT(*) AS n FROM sales GROUP BY cust, region"
    )
    for listed in ("(1, 'north'), (3, 'south')", "(2, 'south')"):
        lab.hit(f"SELECT SUM(amt) FROM sales WHERE (cust, region) IN ({listed})")
        lab.hit(f"SELECT COUNT(*) FROM sales WHERE (cust, region) NOT IN ({listed})")
    many = (
        ", ".join(f"({i % 4}, 'north')" for i in range(4))
        + ", "
        + ", ".join(f"({i}, 'south')" for i in range(9))
    )
    lab.hit(f"SELECT cust, SUM(amt) FROM sales WHERE (cust, region) IN ({many}) GROUP BY cust")
