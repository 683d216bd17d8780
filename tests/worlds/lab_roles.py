# ruff: noqa: E501 - tables of SQL read better unbroken
"""A fact that joins one dimension in three roles and another in one, with a cache over one role."""

from __future__ import annotations

from tests.worlds.lab_star import Lab

STAR = (
    "FROM trips JOIN days x ON a = x.k JOIN days y ON b = y.k JOIN days z ON c = z.k "
    "JOIN cust ON trips.cust = cid"
)
DATES = STAR.partition(" JOIN cust")[0]
_TABLES = (
    "CREATE TABLE days (k INT NOT NULL, y INT, m INT) USING delta",
    "INSERT INTO days VALUES (1, 2023, 1), (2, 2024, 2), (3, 2024, 3)",
    "CREATE TABLE trips (a INT NOT NULL, b INT NOT NULL, c INT NOT NULL, cust INT NOT NULL, n INT) USING delta",
    "INSERT INTO trips VALUES (1, 2, 3, 1, 5), (2, 3, 1, 2, 6), (2, 2, 2, 3, 7), (3, 1, 1, 1, NULL)",
)


def make_star(lab: Lab) -> None:
    """The tables, their record-preserving joins `day_a`, `day_b`, `day_c` and `buyers`, and the
    cache `role` over the second role."""
    for text in _TABLES:
        lab.plain.sql(text)
    for role in "abc":
        lab.sql(
            f"CREATE RECORD PRESERVING JOIN day_{role} AS trips INNER JOIN days ON {role} = k PRESERVES trips"
        )
    lab.sql(
        "CREATE RECORD PRESERVING JOIN buyers AS trips INNER JOIN cust ON trips.cust = cid PRESERVES trips"
    )
    lab.cache(
        "role AS SELECT d.y, d.m, SUM(n) AS n FROM trips JOIN days d ON b = d.k GROUP BY d.y, d.m"
    )
