# ruff: noqa: E501 - tables of SQL read better unbroken
"""Queries that join more than a cache has, by record-preserving joins that change nothing: rows, and
what becomes of them when the tables move."""

from __future__ import annotations

import pytest

import cachemgr
from tests.worlds.lab_roles import DATES, STAR, make_star
from tests.worlds.lab_star import JOIN

BY_REGION = "SELECT region, SUM(amt) AS s, COUNT(*) AS n FROM sales {} GROUP BY region"
JOINED = BY_REGION.format("JOIN cust ON cust = cid")
LEFT_JOINED = BY_REGION.format("LEFT JOIN cust ON cust = cid")
FOUND = BY_REGION.format("WHERE EXISTS (SELECT 1 FROM cust WHERE cid = cust)")
NEW_SALE = "INSERT INTO sales VALUES ({}, NULL, 'north', {}, 5, 5, 1.0, 1.0)"
ONE_ROLE = f"SELECT y.y, SUM(n) AS n {STAR} WHERE y.m < 3 GROUP BY y.y"


@pytest.fixture
def narrow(lab):
    """A cache that lacks the customers, and the key by which sales are joined to them."""
    lab.sql("DELETE FROM sales WHERE cust > 3 OR cust IS NULL")
    lab.sql(JOIN)
    lab.cache("narrow AS SELECT region, SUM(amt) AS s, COUNT(*) AS n FROM sales GROUP BY region")
    return lab


def test_a_table_that_changes_nothing_is_not_asked_for(narrow):
    for query in (JOINED, LEFT_JOINED, FOUND):
        narrow.hit(query)
    found = cachemgr.explain(narrow.spark, JOINED)
    assert "sc" in found.text() and "leave_out_tables" in found.text()
    narrow.hit(
        "SELECT region, SUM(amt) AS s FROM cust JOIN sales ON cid = cust GROUP BY 1 HAVING SUM(amt) > 20 ORDER BY 1"
    )
    narrow.miss(BY_REGION.format("JOIN cust ON cust = cid AND city = 'Rome'"))
    narrow.miss(BY_REGION.format("JOIN cust ON id = cid"))
    narrow.miss(BY_REGION.format("LEFT ANTI JOIN cust ON cust = cid"))


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO cust VALUES (1, 'Rome', NULL)",
        "DELETE FROM cust WHERE cid = 1",
        "UPDATE cust SET cid = 7 WHERE cid = 1",
    ],
)
def test_it_has_changed(narrow, change):
    narrow.hit(JOINED)
    narrow.plain.sql(change)
    narrow.miss(JOINED)
    narrow.sql("VALIDATE RECORD PRESERVING JOIN sc")
    narrow.miss(JOINED)


def test_it_has_changed_and_each_row_still_finds_one(narrow):
    narrow.plain.sql("UPDATE cust SET city = 'Riga' WHERE cid = 1")
    narrow.miss(JOINED)
    narrow.sql("VALIDATE RECORD PRESERVING JOIN sc")
    narrow.hit(JOINED)


@pytest.mark.parametrize("cust", [1, 777, "NULL"])
def test_rows_that_were_appended(narrow, cust):
    """Nobody has looked whether they find a customer."""
    narrow.plain.sql(NEW_SALE.format(9, cust))
    narrow.miss(JOINED)
    narrow.sql("REFRESH RELATIONAL CACHE narrow")
    narrow.check(JOINED, cust == 1)  # the refresh has looked at them
    (join,) = narrow.metastore().joins.all()
    assert join.state.value == ("VALID" if cust == 1 else "BROKEN")
    narrow.plain.sql("OPTIMIZE sales")
    narrow.sql("REFRESH RELATIONAL CACHE narrow")
    narrow.check(JOINED, cust == 1)
    narrow.plain.sql(NEW_SALE.format(10, cust))
    narrow.miss(JOINED)
    narrow.sql("VALIDATE RECORD PRESERVING JOIN sc")
    narrow.check(JOINED, cust == 1)  # beside the rows that the cache has not read


@pytest.mark.parametrize("mode", ["FULL", "INCREMENTAL"])
def test_what_was_updated_and_deleted_is_looked_at_as_well(narrow, mode):
    narrow.plain.sql("DELETE FROM sales WHERE id = 1")
    narrow.sql(f"REFRESH RELATIONAL CACHE narrow {mode}")
    narrow.hit(JOINED)
    narrow.plain.sql("UPDATE sales SET cust = 777 WHERE id = 2")
    narrow.sql(f"REFRESH RELATIONAL CACHE narrow {mode}")
    narrow.miss(JOINED)
    narrow.plain.sql("UPDATE sales SET cust = 2 WHERE id = 2")
    narrow.sql(f"REFRESH RELATIONAL CACHE narrow {mode}")
    narrow.miss(JOINED)
    narrow.sql("VALIDATE RECORD PRESERVING JOIN sc")
    narrow.hit(JOINED)


def test_where_the_changes_are_not_known_nobody_has_looked(narrow):
    narrow.plain.sql("CREATE OR REPLACE TABLE sales USING delta AS SELECT * FROM sales")
    narrow.sql("REFRESH RELATIONAL CACHE narrow")
    narrow.miss(JOINED)
    narrow.sql("VALIDATE RECORD PRESERVING JOIN sc")
    narrow.hit(JOINED)


def test_a_stale_cache_leaves_nothing_out(lab):
    lab.sql("DELETE FROM sales WHERE cust > 3 OR cust IS NULL")
    lab.sql(JOIN)
    lab.cache(
        "old MAX STALENESS UNLIMITED AS SELECT region, SUM(amt) AS s, COUNT(*) AS n FROM sales GROUP BY region"
    )
    lab.hit(JOINED)
    lab.plain.sql("DELETE FROM sales WHERE id = 1")
    lab.miss(JOINED)
    lab.sql("VALIDATE RECORD PRESERVING JOIN sc")
    lab.miss(JOINED, "MIXED_SNAPSHOTS")


def test_a_join_that_nobody_validated(lab):
    lab.sql(f"{JOIN} NOT VALIDATED")
    lab.cache("narrow AS SELECT region, SUM(amt) AS s, COUNT(*) AS n FROM sales GROUP BY region")
    lab.miss(JOINED)


def test_one_role_of_a_star(lab):
    make_star(lab)
    lab.hit(ONE_ROLE)
    lab.miss(ONE_ROLE.replace("WHERE", "WHERE z.m = 1 AND"))
    lab.plain.sql("INSERT INTO trips VALUES (3, 3, 3, 2, 9)")
    lab.miss(ONE_ROLE)  # whether the new trip finds its customer, and its days
    for mode in ("FULL", "INCREMENTAL"):
        lab.sql(f"REFRESH RELATIONAL CACHE role {mode}")
        lab.hit(ONE_ROLE)
        lab.plain.sql("INSERT INTO trips VALUES (3, 2, 1, 1, 4)")
    lab.miss(ONE_ROLE)
    for name in ("buyers", "day_a", "day_c"):
        lab.sql(f"VALIDATE RECORD PRESERVING JOIN {name}")
    lab.hit(ONE_ROLE)  # beside the new trip, which is joined as the query says
    lab.sql("REFRESH RELATIONAL CACHE role")
    lab.hit(ONE_ROLE)
    lab.plain.sql("INSERT INTO days VALUES (4, 2025, 1)")
    lab.miss(ONE_ROLE)
    lab.sql("REFRESH RELATIONAL CACHE role")
    lab.hit(ONE_ROLE)


@pytest.mark.parametrize("mode", ["FULL", "INCREMENTAL"])
def test_new_rows_without_a_partner_in_a_role_that_is_left_out(lab, mode):
    make_star(lab)
    query = f"SELECT y.y, SUM(n) AS n {DATES} GROUP BY y.y"
    lab.hit(query)
    lab.plain.sql("INSERT INTO trips VALUES (99, 3, 3, 2, 9), (1, 1, 99, 2, 4)")
    lab.miss(query)
    lab.sql(f"REFRESH RELATIONAL CACHE role {mode}")
    lab.miss(query)
    assert "does not hold" in cachemgr.explain(lab.spark, query).text()


def test_a_miss_names_the_join_that_is_not_proven(narrow):
    narrow.plain.sql("UPDATE cust SET city = 'Riga' WHERE cid = 1")
    narrow.miss(JOINED, "EXTRA_TABLE_NOT_PRESERVING")
    told = cachemgr.explain(narrow.spark, JOINED).text()
    assert "record-preserving join sc is not proven for the tables as they are now" in told
    assert "VALIDATE RECORD PRESERVING JOIN sc, or REFRESH RELATIONAL CACHE" in told
    narrow.plain.sql("DELETE FROM cust WHERE cid = 1")
    narrow.sql("VALIDATE RECORD PRESERVING JOIN sc")
    narrow.miss(JOINED, "EXTRA_TABLE_NOT_PRESERVING")
    told = cachemgr.explain(narrow.spark, JOINED).text()
    assert "record-preserving join sc does not hold: some row has no partner" in told


def test_part_of_a_key_and_a_condition_of_the_fact_alone(lab):
    """Two equalities, as many as the key has columns; found by an attack."""
    for text in (
        "CREATE TABLE f (r STRING, x INT, y INT, p INT, q INT, v INT) USING delta",
        "INSERT INTO f VALUES ('n', 1, 1, 7, 7, 10), ('n', 1, 2, 7, 8, 20), ('s', 2, 2, NULL, 9, 40)",
        "CREATE TABLE g (k1 INT, k2 INT) USING delta",
        "INSERT INTO g VALUES (1, 1), (1, 2), (2, 1), (2, 2)",
    ):
        lab.plain.sql(text)
    lab.sql(
        "CREATE RECORD PRESERVING JOIN fg AS f LEFT JOIN g ON f.x = g.k1 AND f.y = g.k2 PRESERVES f"
    )
    lab.cache("c AS SELECT r, p, q, x, y, SUM(v) AS s, COUNT(*) AS n FROM f GROUP BY r, p, q, x, y")
    query = "SELECT r, SUM(v) AS s, COUNT(*) AS n FROM f LEFT JOIN g ON {} GROUP BY r"
    lab.hit(query.format("g.k1 = f.x AND f.y = g.k2"))
    for condition in (
        "g.k1 = g.k2 AND f.p = f.q",
        "g.k1 = f.x AND f.p = f.q",
        "g.k1 = f.x AND g.k1 = f.y",
    ):
        found = cachemgr.explain(lab.spark, query.format(condition))
        assert "leave_out_tables" not in found.text()
        lab.check(query.format(condition), found.hit)


ANOTHER_COLUMN = {
    "dropped and added": ("DROP COLUMN cust", "ADD COLUMN cust INT"),
    "another one's name": ("RENAME COLUMN cust TO old", "RENAME COLUMN cost TO cust"),
}


@pytest.mark.parametrize("insert", [False, True], ids=["as it is", "with new rows"])
@pytest.mark.parametrize("mode", ["FULL", "INCREMENTAL"])
@pytest.mark.parametrize("changes", ANOTHER_COLUMN.values(), ids=ANOTHER_COLUMN)
def test_another_column_under_the_name_of_the_key(narrow, changes, mode, insert):
    """The cache does not read the key, so it stays exact; found by an attack."""
    narrow.plain.sql("ALTER TABLE sales SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    narrow.sql("REFRESH RELATIONAL CACHE narrow")
    narrow.sql("VALIDATE RECORD PRESERVING JOIN sc")
    narrow.hit(JOINED)
    for change in changes:
        narrow.plain.sql(f"ALTER TABLE sales {change}")
    narrow.miss(JOINED)
    if insert:
        narrow.plain.sql("INSERT INTO sales (id, region, cust, amt) VALUES (9, 'north', 1, 5)")
    narrow.miss(JOINED)
    narrow.sql(f"REFRESH RELATIONAL CACHE narrow {mode}")
    narrow.miss(JOINED)
    narrow.miss(FOUND)


def test_another_column_under_the_name_of_the_key_of_a_role(lab):
    make_star(lab)
    lab.plain.sql("ALTER TABLE trips SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    query = f"SELECT y.y, SUM(n) AS n {DATES} GROUP BY y.y"
    lab.sql("REFRESH RELATIONAL CACHE role FULL")
    for name in ("day_a", "day_c"):
        lab.sql(f"VALIDATE RECORD PRESERVING JOIN {name}")
    lab.hit(query)
    lab.plain.sql("ALTER TABLE trips DROP COLUMN a")
    lab.plain.sql("ALTER TABLE trips ADD COLUMN a INT")
    lab.miss(query)
    for text in ("REFRESH RELATIONAL CACHE role", "REFRESH RELATIONAL CACHE role FULL"):
        lab.sql(text)
        lab.miss(query)
        lab.plain.sql("INSERT INTO trips (a, b, c, cust, n) VALUES (3, 2, 1, 1, 4)")
