# ruff: noqa: E501 - tables of SQL read better unbroken
"""Compensating joins and outer joins through Catalyst: rows, snapshots, and tables that move."""

from __future__ import annotations

import pytest

import cachemgr
from cachemgr.errors import DefinitionError, NotFoundError
from cachemgr.refresh import validate_snapshot_joins
from cachemgr.spark import engine
from tests.worlds.lab_star import JOIN, same

FLAT = "flat AS SELECT cust, region, SUM(amt) AS s, COUNT(*) AS n, MIN(cost) AS lo FROM sales GROUP BY cust, region"
BY_CITY = (
    "SELECT city, SUM(amt) AS s, COUNT(*) AS n FROM sales JOIN cust ON cust = cid GROUP BY city"
)


@pytest.fixture
def flat(lab):
    lab.cache(FLAT)
    return lab


def test_a_table_that_no_cache_knows_is_joined(flat):
    flat.hit(BY_CITY)
    flat.hit(
        "SELECT nation, MIN(cost) FROM sales, cust WHERE cust = cid AND city <> 'Bari' GROUP BY 1"
    )
    flat.hit("SELECT COUNT(*), SUM(amt) FROM sales CROSS JOIN cust")
    flat.hit(
        "SELECT city, n FROM (SELECT cust, COUNT(*) AS n FROM sales GROUP BY cust) JOIN cust ON cust = cid"
    )


def test_a_cache_that_was_never_refreshed_is_what_a_miss_names(lab):
    """The first thing that is asked after a declared join and a cache over it."""
    lab.sql(JOIN)
    joined = "SELECT region, city, SUM(amt) AS s FROM sales JOIN cust ON cust = cid GROUP BY 1, 2"
    lab.cache(f"new AS {joined}", refresh=False)
    for query in (joined, "SELECT region, SUM(amt) AS s FROM sales GROUP BY region"):
        lab.miss(query)
        assert lab.codes(query) == {"CACHE_NOT_REFRESHED"}, query


def test_a_join_that_does_not_hold_is_what_a_miss_names(lab):
    lab.sql("DELETE FROM sales WHERE cust > 3 OR cust IS NULL")
    lab.sql(JOIN)
    lab.cache(
        "cube AS SELECT city, day, SUM(amt) AS a FROM sales JOIN cust ON cust = cid GROUP BY 1, 2"
    )
    query = "SELECT day, SUM(amt) AS a FROM sales GROUP BY day"
    lab.hit(query)
    lab.plain.sql("INSERT INTO sales VALUES (90, DATE'2024-03-01', 'x', 777, 5, 1, 4.00, 0.5)")
    [refreshed] = lab.sql("REFRESH RELATIONAL CACHE cube")
    assert "record-preserving join sc did not hold when it was refreshed" in refreshed.reason
    described = {row.col_name: row.data_type for row in lab.sql("DESCRIBE RELATIONAL CACHE cube")}
    assert "record-preserving join sc did not hold" in described["broken join"]
    lab.miss(query, "EXTRA_TABLE_NOT_PRESERVING")
    told = cachemgr.explain(lab.spark, query).text()
    assert "record-preserving join sc does not hold" in told
    assert "VALIDATE RECORD PRESERVING JOIN sc and REFRESH RELATIONAL CACHE" in told
    left = "SELECT city, SUM(amt) AS a FROM sales LEFT JOIN cust ON cust = cid GROUP BY city"
    lab.miss(left, "OUTER_JOIN_DIFFERS")
    assert "and record-preserving join sc does not" in cachemgr.explain(lab.spark, left).text()
    lab.plain.sql("DELETE FROM sales WHERE cust = 777")
    lab.sql("VALIDATE RECORD PRESERVING JOIN sc")
    told = cachemgr.explain(lab.spark, query).text()
    assert "record-preserving join sc is not proven for the rows in it (REFRESH" in told
    lab.sql("REFRESH RELATIONAL CACHE cube")
    lab.hit(left)
    described = {row.col_name for row in lab.sql("DESCRIBE RELATIONAL CACHE cube")}
    assert "broken join" not in described
    lab.hit(query)
    lab.sql("DROP RECORD PRESERVING JOIN sc")
    told = cachemgr.explain(lab.spark, query).text()
    assert "nothing says that this join keeps each row exactly once (declare" in told


def test_a_left_join_that_finds_several_rows_is_what_a_miss_names(lab):
    """Its LEFT join relied on a declared join, which says that one row is found at most."""
    lab.sql("DELETE FROM sales WHERE cust > 3 OR cust IS NULL")
    lab.sql(JOIN)
    lab.cache(
        "cube AS SELECT city, day, SUM(amt) AS a FROM sales LEFT JOIN cust ON cust = cid "
        "GROUP BY 1, 2"
    )
    query = "SELECT day, SUM(amt) AS a FROM sales GROUP BY day"
    lab.hit(query)
    lab.plain.sql("INSERT INTO cust VALUES (1, 'Rome', 'Italy')")
    lab.sql("REFRESH RELATIONAL CACHE cube")
    lab.miss(query, "OUTER_JOIN_DIFFERS")
    told = cachemgr.explain(lab.spark, query).text()
    assert "cube has, and record-preserving join sc does not hold" in told
    assert "VALIDATE RECORD PRESERVING JOIN sc and REFRESH RELATIONAL CACHE" in told


def test_a_data_frame_that_joins_such_a_table(flat):
    def frames(spark):
        sales, cust = spark.table("sales"), spark.table("cust")
        keyed = sales.join(cust, sales.cust == cust.cid)
        return [sales.crossJoin(cust).groupBy("city").count(), keyed.groupBy("city").sum("amt")]

    for got, expected in zip(frames(flat.spark), frames(flat.plain), strict=True):
        before = flat.hits()
        rows = got.collect()
        assert flat.hits() == before + 1
        same(got, rows, expected, ordered=False)


def test_it_is_read_as_it_is_now(flat):
    flat.hit(BY_CITY)
    flat.plain.sql("INSERT INTO cust VALUES (3, 'Bonn', NULL), (1, 'Rome', 'Italy')")
    flat.hit(BY_CITY)
    flat.plain.sql("DELETE FROM cust WHERE cid = 2")
    flat.hit(BY_CITY)


def test_and_at_one_snapshot_however_often(flat):
    flat.hit(
        "SELECT a.city, a.n, b.n FROM (SELECT city, COUNT(*) AS n FROM sales JOIN cust ON cust = cid GROUP BY city) a "
        "JOIN (SELECT city, COUNT(*) AS n FROM cust GROUP BY city) b ON a.city = b.city"
    )
    flat.hit(
        "SELECT COUNT(*) FROM sales s JOIN cust c ON s.cust = c.cid JOIN cust d ON c.nation = d.nation"
    )


def test_a_stale_cache_is_not_joined_with_tables_of_now(lab):
    lab.sql(f"CREATE RELATIONAL CACHE flat MAX STALENESS UNLIMITED {FLAT.removeprefix('flat ')}")
    lab.sql("REFRESH RELATIONAL CACHE flat")
    lab.hit(BY_CITY)
    lab.plain.sql("INSERT INTO sales VALUES (9, NULL, 'north', 1, 5, 5, 1.0, 1.0)")
    with lab.caches_alone():
        lab.miss(BY_CITY, "MIXED_SNAPSHOTS")
    lab.hit(BY_CITY)  # with what was appended, joined with the same table of now
    lab.plain.sql("DELETE FROM sales WHERE id = 9")
    lab.plain.sql("DELETE FROM sales WHERE id = 1")
    lab.miss(BY_CITY, "MIXED_SNAPSHOTS")
    lab.sql("REFRESH RELATIONAL CACHE flat")
    lab.hit(BY_CITY)


def test_the_repeated_rows_of_a_join_count(flat):
    flat.plain.sql("INSERT INTO cust VALUES (1, 'Como', 'Italy'), (1, 'Rome', NULL)")
    flat.hit(
        "SELECT cust, region, SUM(amt), COUNT(*) FROM sales JOIN cust ON cust = cid GROUP BY 1, 2"
    )
    flat.miss(
        "SELECT nation, AVG(amt) FROM sales JOIN cust ON cust = cid GROUP BY 1", "AVG_NOT_EXACT"
    )


def test_files_without_versions_can_be_joined(flat):
    flat.plain.sql(
        "CREATE TABLE zones USING parquet AS SELECT * FROM VALUES ('north', 1), ('west', 2) AS v(r, zone)"
    )
    flat.hit("SELECT zone, SUM(amt) FROM sales JOIN zones ON region = r GROUP BY zone")


def test_an_attribute_is_fetched_by_its_key(lab):
    lab.sql(JOIN)
    lab.cache(
        "k AS SELECT cid, SUM(amt) AS s, COUNT(*) AS n FROM sales JOIN cust ON cust = cid GROUP BY cid"
    )
    lab.hit(BY_CITY)
    lab.hit(
        "SELECT nation, COUNT(*) FROM sales JOIN cust ON cust = cid WHERE city LIKE 'R%' GROUP BY nation"
    )
    assert cachemgr.explain(lab.spark, BY_CITY).joins == ("sc",)
    lab.plain.sql("UPDATE cust SET city = 'Turin' WHERE cid = 1")
    lab.miss(BY_CITY, "STALE")


def test_without_a_declared_key_it_is_not(lab):
    lab.cache("k AS SELECT cid, SUM(amt) AS s FROM sales JOIN cust ON cust = cid GROUP BY cid")
    lab.miss(BY_CITY.replace("COUNT(*)", "SUM(amt)"), "COLUMN_NOT_IN_CACHE")


def test_a_write_may_join(flat):
    flat.spark.sql(f"CREATE TABLE made USING delta AS {BY_CITY}")
    flat.check("SELECT * FROM made", False)
    assert sorted(map(str, flat.plain.sql("SELECT * FROM made").collect())) == sorted(
        map(str, flat.plain.sql(BY_CITY).collect())
    )


LEFT = "SELECT city, SUM(amt) AS s, COUNT(*) AS n FROM sales LEFT JOIN cust ON cust = cid {} GROUP BY city"


def test_outer_joins_of_a_cache(lab):
    lab.plain.sql(
        "INSERT INTO sales VALUES (9, NULL, 'north', NULL, 5, 5, 1.0, 1.0), (10, NULL, 'west', 77, 6, 5, 1.0, 1.0)"
    )
    lab.plain.sql("INSERT INTO cust VALUES (2, 'Bergen', 'Norway')")
    lab.cache(
        "outs AS SELECT city, nation, cid, region, SUM(amt) AS s, COUNT(*) AS n "
        "FROM sales LEFT JOIN cust ON cust = cid GROUP BY city, nation, cid, region"
    )
    lab.hit(LEFT.format(""))
    lab.hit(LEFT.format("WHERE region = 'north'"))
    lab.hit(LEFT.format("WHERE cid IS NULL"))
    lab.hit(LEFT.format("WHERE city LIKE 'B%'"))
    lab.hit(LEFT.format("").replace("LEFT JOIN", "JOIN"))
    lab.hit(
        "SELECT nation, COUNT(*) FROM cust RIGHT JOIN sales ON cid = cust WHERE region IS NOT NULL GROUP BY nation"
    )
    lab.miss(
        LEFT.format("").replace("cust = cid", "cust = cid AND city > 'C'"), "OUTER_JOIN_DIFFERS"
    )
    lab.miss("SELECT region, SUM(amt) FROM sales GROUP BY region", "OUTER_JOIN_DIFFERS")


def test_outer_and_semi_joins_to_a_table_beside_the_cache(flat):
    flat.hit(LEFT.format(""))
    flat.hit(LEFT.format("WHERE nation IS NULL"))
    flat.hit(
        "SELECT region, SUM(amt) FROM sales LEFT SEMI JOIN cust ON cust = cid AND city < 'P' GROUP BY region"
    )
    flat.hit(
        "SELECT region, COUNT(*) FROM sales LEFT ANTI JOIN cust ON cust = cid AND nation = 'Italy' GROUP BY region"
    )


EXISTS = (
    "SELECT region, SUM(amt) AS s FROM sales "
    "WHERE {}EXISTS (SELECT 1 FROM cust WHERE cid = cust AND nation = 'Italy') GROUP BY region"
)


def test_subqueries_that_are_joined_to_a_cache(flat):
    flat.hit(EXISTS.format(""))
    flat.hit(EXISTS.format("NOT "))
    flat.hit(
        "SELECT region, COUNT(*) FROM sales WHERE cust IN (SELECT cid FROM cust WHERE city < 'P') GROUP BY 1"
    )
    flat.miss(  # NULL customers
        "SELECT COUNT(*) FROM sales WHERE cust NOT IN (SELECT cid FROM cust WHERE city < 'P')",
        "UNSUPPORTED_OPERATOR",
    )
    flat.plain.sql("INSERT INTO cust VALUES (1, 'Como', 'Italy'), (77, 'Rome', 'Italy')")
    flat.hit(EXISTS.format(""))
    flat.hit(EXISTS.format("NOT "))


def test_data_frames_that_read_such_a_subquery(flat):
    text = "SELECT * FROM sales WHERE EXISTS (SELECT 1 FROM cust WHERE cid = cust)"
    before = flat.hits()
    got = flat.spark.sql(text).groupBy("region").sum("amt")
    rows = got.collect()
    assert flat.hits() == before + 1
    same(got, rows, flat.plain.sql(text).groupBy("region").sum("amt"), ordered=False)


def test_a_cache_whose_definition_holds_a_subquery(lab):
    lab.cache(
        "exist AS SELECT region, cust, SUM(amt) AS s, COUNT(*) AS n FROM sales "
        "WHERE EXISTS (SELECT 1 FROM cust WHERE cid = cust AND nation = 'Italy') GROUP BY region, cust"
    )
    queries = [
        EXISTS.format(""),
        EXISTS.format("").replace("GROUP BY", "AND cust < 3 GROUP BY"),
        "SELECT region, COUNT(*) FROM sales WHERE cust IN (SELECT cid FROM cust WHERE nation = 'Italy') GROUP BY 1",
        "SELECT region, COUNT(*) FROM sales LEFT SEMI JOIN cust ON cid = cust AND nation = 'Italy' GROUP BY 1",
    ]
    for query in queries:
        lab.hit(query)
    lab.miss(EXISTS.format("NOT "), "OUTER_JOIN_DIFFERS")
    lab.plain.sql("UPDATE cust SET nation = 'Norway' WHERE cid = 1")
    for query in queries:
        lab.miss(query, "STALE")
    lab.sql("REFRESH RELATIONAL CACHE exist")
    for query in queries:
        lab.hit(query)


def test_a_stale_cache_and_the_tables_of_a_subquery(lab):
    """What the cache's own subquery read is of its moment; what another reads is of now."""
    lab.sql(
        "CREATE RELATIONAL CACHE old MAX STALENESS UNLIMITED AS SELECT region, cust, SUM(amt) AS s FROM sales "
        "WHERE EXISTS (SELECT 1 FROM cust WHERE cid = cust AND nation = 'Italy') GROUP BY region, cust"
    )
    lab.sql("REFRESH RELATIONAL CACHE old")
    fresh = lab.sql(EXISTS.format(""))
    lab.plain.sql("INSERT INTO sales VALUES (9, NULL, 'north', 1, 5, 5, 1.0, 1.0)")
    before = lab.hits()
    assert sorted(lab.sql(EXISTS.format("")), key=str) == sorted(fresh, key=str)
    assert lab.hits() == before + 1
    beside = " AND EXISTS (SELECT 1 FROM cust WHERE cid = cust AND city < 'P') GROUP BY"
    mixed = EXISTS.format("").replace(" GROUP BY", beside)
    either = f"SELECT * FROM ({EXISTS.format('')}) WHERE s > 0 OR region IN (SELECT city FROM cust)"
    with lab.caches_alone():
        lab.miss(mixed, "MIXED_SNAPSHOTS")
        lab.miss(either, "MIXED_SNAPSHOTS")
    lab.hit(mixed)
    lab.hit(either)


def test_an_average_over_a_table_joined_by_its_key(lab):
    average = "SELECT nation, AVG(amt) FROM sales JOIN cust ON cust = cid GROUP BY nation"
    lab.cache("avgs AS SELECT cust, region, AVG(amt) AS a FROM sales GROUP BY cust, region")
    lab.miss(average, "AVG_NOT_EXACT")
    lab.sql(JOIN)
    lab.hit(average)
    lab.plain.sql("INSERT INTO cust VALUES (1, 'Como', 'Italy')")  # the key is there twice
    lab.miss(average, "AVG_NOT_EXACT")
    lab.plain.sql("DELETE FROM cust WHERE city = 'Como'")
    lab.miss(average, "AVG_NOT_EXACT")  # nobody has looked yet
    lab.sql("VALIDATE RECORD PRESERVING JOIN sc")
    lab.hit(average)
    lab.sql("DROP RECORD PRESERVING JOIN sc")
    lab.miss(average, "AVG_NOT_EXACT")


def while_validating(monkeypatch, where, then) -> None:
    """As another process would: `then` is called once, between a validation and its note."""
    validate = where.validate_join

    def validated(*args, **more):
        found = validate(*args, **more)
        monkeypatch.undo()
        then()
        return found

    monkeypatch.setattr(where, "validate_join", validated)


def test_a_join_declared_anew_while_the_one_of_its_name_is_validated(lab, monkeypatch) -> None:
    """Nobody has looked at the new one: what was found of the old one is no news of it."""
    key, other = "ON sales.cust = cust.cid", "ON sales.cust = cust.zone"

    def declare(on: str, how: str = "") -> None:
        lab.sql(
            f"CREATE RECORD PRESERVING JOIN j AS sales INNER JOIN cust {on} PRESERVES sales{how}"
        )

    def again() -> None:
        lab.sql("DROP RECORD PRESERVING JOIN j")
        declare(other, " NOT VALIDATED")

    lab.sql("DELETE FROM sales WHERE cust > 3 OR cust IS NULL")
    lab.plain.sql("ALTER TABLE cust ADD COLUMN zone INT")
    lab.plain.sql("UPDATE cust SET zone = 1")  # of which there are three
    lab.cache(f"wrong AS SELECT day, city, SUM(amt) AS s FROM sales JOIN cust {other} GROUP BY ALL")
    query = "SELECT day, SUM(amt) AS s FROM sales GROUP BY day"
    declare(key)
    while_validating(monkeypatch, engine, again)
    with pytest.raises(NotFoundError, match="j was dropped while it was validated"):
        lab.sql("VALIDATE RECORD PRESERVING JOIN j")
    lab.miss(query)
    lab.sql("DROP RECORD PRESERVING JOIN j")
    declare(key)
    lab.cache(f"right AS SELECT city, SUM(cost) AS c FROM sales JOIN cust {key} GROUP BY city")
    lab.plain.sql("INSERT INTO sales SELECT * FROM sales LIMIT 1")
    while_validating(monkeypatch, validate_snapshot_joins, again)
    lab.sql("REFRESH RELATIONAL CACHE right FULL")
    lab.sql("REFRESH RELATIONAL CACHE wrong FULL")
    [join] = lab.sql("SHOW RECORD PRESERVING JOINS")
    assert (join.keys, join.state) == ("cust = zone", "NOT_VALIDATED")
    lab.miss(query)


def test_a_join_dropped_while_a_refresh_validates_it(lab, monkeypatch) -> None:
    lab.sql("DELETE FROM sales WHERE cust > 3 OR cust IS NULL")
    lab.sql(JOIN)
    lab.cache("cube AS SELECT city, SUM(amt) AS s FROM sales JOIN cust ON cust = cid GROUP BY city")
    lab.plain.sql("INSERT INTO sales SELECT * FROM sales LIMIT 1")
    drop = "DROP RECORD PRESERVING JOIN sc"
    while_validating(monkeypatch, validate_snapshot_joins, lambda: lab.sql(drop))
    [refreshed] = lab.sql("REFRESH RELATIONAL CACHE cube FULL")
    assert refreshed.result == "PUBLISHED"
    lab.miss("SELECT SUM(amt) AS s FROM sales")


def test_a_join_of_a_table_with_a_column_of_char(lab) -> None:
    lab.plain.sql("CREATE TABLE coded (cust INT NOT NULL, code CHAR(3), amt BIGINT) USING delta")
    lab.plain.sql("INSERT INTO coded VALUES (1, 'a', 5), (2, 'b', 6), (1, NULL, 7)")
    lab.sql(
        "CREATE RECORD PRESERVING JOIN coded_cust AS coded INNER JOIN cust "
        "ON coded.cust = cust.cid PRESERVES coded"
    )
    lab.cache(
        "by_city AS SELECT city, coded.cust, SUM(amt) AS s FROM coded JOIN cust "
        "ON coded.cust = cust.cid GROUP BY city, coded.cust"
    )
    lab.hit("SELECT cust, SUM(amt) AS s FROM coded GROUP BY cust")
    lab.plain.sql("CREATE VIEW renamed AS SELECT amt AS cust, cust AS amt FROM coded")
    lab.spark.table("coded").selectExpr("amt AS cust").createOrReplaceTempView("ours")
    for view in ("renamed", "ours"):
        with pytest.raises(DefinitionError, match="is a view or no Delta table"):
            lab.sql(
                f"CREATE RECORD PRESERVING JOIN v AS {view} INNER JOIN cust "
                f"ON {view}.cust = cust.cid PRESERVES {view}"
            )
