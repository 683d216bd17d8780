"""Hits between refreshes: STRICT caches answer right after their table was appended to, with the
appended rows in the answer; and nothing else that changed a table is taken for an append."""

from __future__ import annotations

import pytest

import cachemgr
from cachemgr.delta.own_session import SET_BY_DELTA
from tests.worlds.lab_star import JOIN

pytestmark = pytest.mark.spark

BY_REGION = (
    "by_region AS SELECT region, day, SUM(amt) AS amt, SUM(price) AS price, COUNT(*) AS n, "
    "COUNT(amt) AS known, MIN(day) AS first, MAX(price) AS dearest FROM sales GROUP BY region, day"
)
MORE = (
    "INSERT INTO sales VALUES (9, DATE'2024-03-01', 'north', 2, 5, 1, 4.00, 0.5), "
    "(10, NULL, NULL, 9, NULL, NULL, NULL, NULL), (11, DATE'2024-01-01', 'east', 3, 7, 1, 8.00, 1)"
)
QUERIES = (
    "SELECT region, SUM(amt) AS a, COUNT(*) AS n, COUNT(amt) AS k FROM sales GROUP BY region",
    "SELECT region, day, SUM(amt) AS a FROM sales GROUP BY region, day",
    "SELECT SUM(price) AS p, COUNT(*) AS n, MIN(day) AS d, MAX(price) AS m FROM sales",
    "SELECT AVG(price) AS a FROM sales WHERE region = 'north'",
    "SELECT SUM(amt) AS a FROM sales WHERE region = 'nowhere'",
    "SELECT COUNT(*) AS n FROM sales WHERE region = 'nowhere'",
    "SELECT region, SUM(amt) AS a FROM sales GROUP BY region HAVING SUM(amt) > 20",
    "SELECT region, SUM(amt) + COUNT(*) AS a FROM sales GROUP BY region ORDER BY region NULLS LAST",
    "SELECT region, SUM(amt) AS a FROM sales GROUP BY region ORDER BY a DESC, region LIMIT 2",
    "SELECT DISTINCT region FROM sales",
    "SELECT region, day, SUM(amt) AS a FROM sales GROUP BY CUBE (region, day)",
    "SELECT year(day) AS y, SUM(amt) AS a FROM sales GROUP BY year(day)",
    "SELECT region, SUM(amt) FILTER (WHERE day > DATE'2024-01-15') AS a FROM sales GROUP BY region",
    "WITH t AS (SELECT region, SUM(amt) AS a FROM sales GROUP BY region) "
    "SELECT COUNT(*) AS n FROM t JOIN t AS u USING (region)",
    "SELECT COUNT(DISTINCT region) AS n FROM sales",
)


def fresh(lab) -> int:
    return cachemgr.counters(lab.spark).get("fresh_hits", 0)


def check_fresh(lab, query: str) -> None:
    before = fresh(lab)
    lab.hit(query)
    assert fresh(lab) > before, f"no appended rows were read: {query}"


@pytest.mark.parametrize("other", ["COUNT(*)", "MAX(amt)"])
def test_appended_rows_are_not_read_beside_a_cache_that_lags(lab, other) -> None:
    """One of them would show the table as it is now, and the other as it was."""
    lab.cache(BY_REGION)
    behind = f"SELECT region, {other} AS n FROM sales GROUP BY region"
    lab.cache(f"behind MAX STALENESS UNLIMITED AS {behind}")
    lab.plain.sql(MORE)
    now = "SELECT region, SUM(amt) AS amt FROM sales GROUP BY region"
    check_fresh(lab, now)
    lab.hit(f"SELECT a.region, a.amt, b.n FROM ({now}) a JOIN ({behind}) b ON a.region = b.region")
    lab.hit(f"SELECT * FROM ({now}) a UNION ALL SELECT * FROM ({behind}) b")


def test_who_is_behind_and_not_needed_is_not_told_to_be_refreshed(lab) -> None:
    """Each of the two might answer with the appended rows, and the other one does."""
    lab.cache(BY_REGION)
    lab.cache("finer AS SELECT region, day, cust, SUM(amt) AS amt FROM sales GROUP BY 1, 2, 3")
    query = "SELECT region, SUM(amt) AS a FROM sales GROUP BY region"

    def told() -> tuple[str, list[str]]:
        """Which cache answers, and what is suggested for the other one."""
        found = sorted(cachemgr.explain(lab.spark, query).candidates, key=lambda c: c.outcome)
        assert [c.outcome for c in found] == ["chosen", "refused"]
        return found[0].cache, [reason.suggestion for reason in found[1].reasons]

    lab.plain.sql(MORE)
    check_fresh(lab, query)
    name, suggested = told()
    assert suggested == [f"nothing: {name} answers; without it this one might"]
    lab.sql(f"REFRESH RELATIONAL CACHE {name}")  # nothing is read beside it any more
    assert told() == (name, suggested)
    with lab.caches_alone():  # then it may not
        assert "REFRESH RELATIONAL CACHE" in told()[1][0]


def test_a_session_after_reset(lab) -> None:
    """RESET takes back what Delta's extension has set, and no row depends on it."""
    query = "SELECT k, SUM(v) AS s FROM t GROUP BY k"
    lab.plain.sql("CREATE TABLE t (k STRING, v BIGINT) USING delta")
    lab.plain.sql("INSERT INTO t VALUES ('a', 1), ('a', 2), (NULL, 3)")
    lab.cache("before AS SELECT k, SUM(v) AS s, COUNT(*) AS n FROM t GROUP BY k")
    kept = {key: lab.spark.conf.get(key) for key in SET_BY_DELTA}
    assert kept == SET_BY_DELTA
    try:
        for key in SET_BY_DELTA:
            lab.spark.conf.unset(key)
        lab.hit(query)
        lab.sql("DROP RELATIONAL CACHE before")
        lab.cache("after AS SELECT k, SUM(v) AS s, COUNT(*) AS n FROM t GROUP BY k")
    finally:
        for key, value in kept.items():
            lab.spark.conf.set(key, value)
    lab.hit(query)


def test_columns_mapped_by_id(lab) -> None:
    lab.plain.sql(
        "CREATE TABLE t (k STRING, v BIGINT) USING delta "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'id')"
    )
    lab.plain.sql("INSERT INTO t VALUES ('a', 1), ('a', 2), (NULL, 3)")
    query = "SELECT k, SUM(v) AS s FROM t GROUP BY k"
    # Delta makes a relation under the settings of the thread's session, whichever that is
    other = lab.plain.newSession()
    other.conf.set("spark.sql.parquet.fieldId.read.enabled", "false")
    sessions = lab.plain._jvm.org.apache.spark.sql.classic.SparkSession
    before = sessions.getActiveSession()
    sessions.setActiveSession(other._jsparkSession)
    try:
        lab.cache("of_t AS SELECT k, SUM(v) AS s, COUNT(*) AS n FROM t GROUP BY k")
        lab.hit(query)
        for number in range(3):  # once read from the file and then from memory
            lab.plain.sql(f"INSERT INTO t VALUES ('b', {number})")
            for _ in range(2):
                check_fresh(lab, query)
        lab.sql("REFRESH RELATIONAL CACHE of_t INCREMENTAL ONLY")
        lab.hit(query)
    finally:
        sessions.setActiveSession(before.get())


def test_explain_names_each_candidate_once(lab) -> None:
    lab.sql(JOIN)  # by which a cache is tried a second time, with tables joined to it
    lab.cache(BY_REGION)
    lab.plain.sql(MORE)
    explained = cachemgr.explain(lab.spark, QUERIES[0])
    assert [(c.cache, c.outcome) for c in explained.candidates] == [
        (f"{lab.schema}.by_region", "chosen")
    ]


def test_a_hit_has_the_appended_rows_in_it(lab) -> None:
    lab.cache(BY_REGION)
    for query in QUERIES[:3]:
        lab.hit(query)
    assert fresh(lab) == 0
    lab.plain.sql(MORE)
    for query in QUERIES:
        check_fresh(lab, query)
    lab.plain.sql("INSERT INTO sales VALUES (12, NULL, 'north', 1, 1000, 1, 1.00, 1)")
    for query in QUERIES:
        check_fresh(lab, query)
    lab.sql("REFRESH RELATIONAL CACHE by_region")
    before = fresh(lab)
    for query in QUERIES:
        lab.hit(query)
    assert fresh(lab) == before
    assert cachemgr.counters(lab.spark)["fresh_rows"] > 0


def test_rows_of_a_cache_without_groups(lab) -> None:
    lab.cache("flat AS SELECT id, region, amt, price FROM sales WHERE amt > 5 OR amt IS NULL")
    lab.plain.sql(MORE)
    for query in (
        "SELECT id, amt FROM sales WHERE amt > 6",
        "SELECT region, SUM(amt) AS a FROM sales WHERE amt > 6 GROUP BY region",
        "SELECT COUNT(*) AS n FROM sales WHERE amt > 6",
        "SELECT id FROM sales WHERE amt > 6 ORDER BY id DESC LIMIT 2",
    ):
        check_fresh(lab, query)


def test_joins(lab) -> None:
    """The appended rows are joined by the query's own join, not by the cache's."""
    lab.sql("DELETE FROM sales WHERE cust > 3")
    lab.sql(JOIN)
    lab.cache(
        "joined AS SELECT city, nation, region, SUM(amt) AS amt, COUNT(*) AS n "
        "FROM sales JOIN cust ON cust = cid GROUP BY city, nation, region"
    )
    # one customer is unknown: the cache's own join would lose the row
    lab.plain.sql(MORE)
    check_fresh(lab, "SELECT region, SUM(amt) AS a FROM sales GROUP BY region")
    check_fresh(lab, "SELECT city, COUNT(*) AS n FROM sales JOIN cust ON cust = cid GROUP BY city")
    lab.plain.sql("INSERT INTO cust VALUES (1, 'Bergen', NULL)")
    query = "SELECT city, COUNT(*) AS n FROM sales JOIN cust ON cust = cid GROUP BY city"
    lab.miss(query, "DIMENSION_CHANGED")
    check_fresh(lab, "SELECT region, SUM(amt) AS a FROM sales GROUP BY region")


def test_a_left_join_grows_on_its_preserved_side_alone(lab) -> None:
    lab.cache(
        "lefty AS SELECT city, SUM(amt) AS amt, COUNT(*) AS n "
        "FROM sales LEFT JOIN cust ON cust = cid GROUP BY city"
    )
    query = "SELECT city, SUM(amt) AS a FROM sales LEFT JOIN cust ON cust = cid GROUP BY city"
    lab.plain.sql(MORE)
    check_fresh(lab, query)
    lab.sql("REFRESH RELATIONAL CACHE lefty")
    lab.plain.sql("INSERT INTO cust VALUES (9, 'Bergen', NULL)")
    lab.miss(query, "DELTA_NOT_LINEAR")


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM sales WHERE id = 1",
        "UPDATE sales SET amt = amt + 1 WHERE id = 1",
        "MERGE INTO sales t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "INSERT OVERWRITE sales SELECT * FROM sales WHERE id > 2",
    ],
)
def test_rows_that_went_are_no_append(lab, change: str) -> None:
    lab.cache(BY_REGION)
    lab.plain.sql(MORE)
    lab.plain.sql(change)
    lab.miss(QUERIES[0], "STALE")


def test_a_merge_that_only_inserts_is_an_append(lab) -> None:
    lab.cache(BY_REGION)
    lab.plain.sql(
        "MERGE INTO sales t USING (SELECT 77L AS id) s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT (id, region, amt) VALUES (s.id, 'north', 3)"
    )
    check_fresh(lab, QUERIES[0])


@pytest.mark.parametrize(
    ("aggregate", "values"),
    [
        ("COUNT(DISTINCT amt)", "amt"),
        ("PERCENTILE(price, 0.5)", "price"),
        ("COUNT(DISTINCT region, cust)", "cust"),
    ],
)
def test_a_miss_says_which_aggregate_needs_values_that_no_cache_stores(
    lab, aggregate: str, values: str
) -> None:
    query = f"SELECT region, {aggregate} AS n FROM sales GROUP BY region"
    lab.cache(f"kinds AS {query}")
    lab.plain.sql(MORE)
    lab.miss(query, "STALE")
    told = cachemgr.explain(lab.spark, query).text()
    assert f"needs the single values of {values}, and no cache that matches stores them" in told
    assert "needed for group by" not in told


def test_a_deletion_vector_on_an_appended_file(lab) -> None:
    lab.plain.sql("ALTER TABLE sales SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    lab.cache(BY_REGION)
    lab.plain.sql(MORE)
    lab.plain.sql("DELETE FROM sales WHERE id = 9")
    check_fresh(lab, QUERIES[0])
    lab.plain.sql("DELETE FROM sales WHERE id = 2")
    lab.miss(QUERIES[0], "STALE")


def test_appended_rows_that_were_compacted_cannot_be_read_apart(lab) -> None:
    lab.cache(BY_REGION)
    lab.plain.sql(MORE)
    lab.plain.sql("OPTIMIZE sales")
    lab.miss(QUERIES[0], "RANGE_REWRITTEN")
    lab.sql("REFRESH RELATIONAL CACHE by_region")
    lab.plain.sql(MORE)
    check_fresh(lab, QUERIES[0])


def test_mapped_columns_and_partitions(lab) -> None:
    lab.plain.sql(
        "CREATE TABLE parts (k STRING, v INT, `a b` BIGINT) USING delta PARTITIONED BY (k) "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    lab.plain.sql("INSERT INTO parts VALUES ('x', 1, 2), (NULL, 3, 4)")
    lab.cache("mapped AS SELECT k, SUM(v) AS v, SUM(`a b`) AS ab FROM parts GROUP BY k")
    lab.plain.sql("ALTER TABLE parts RENAME COLUMN `a b` TO c")
    lab.plain.sql("INSERT INTO parts VALUES ('x', 10, 20), ('y', 30, 40), (NULL, 50, 60)")
    lab.miss("SELECT k, SUM(c) AS ab FROM parts GROUP BY k")
    lab.plain.sql("ALTER TABLE parts RENAME COLUMN c TO `a b`")
    check_fresh(lab, "SELECT k, SUM(v) AS v, SUM(`a b`) AS ab FROM parts GROUP BY k")
    check_fresh(lab, "SELECT SUM(v) AS v FROM parts WHERE k = 'x'")


def test_limits_and_switches(lab) -> None:
    lab.cache(BY_REGION)
    lab.plain.sql(MORE)
    with lab.conf(spark__cachemgr__freshHits="false"):
        lab.miss(QUERIES[0], "STALE")
    with lab.conf(spark__cachemgr__freshHits__maxFiles="2"):
        check_fresh(lab, QUERIES[0])
        lab.plain.sql(MORE)
        lab.miss(QUERIES[0], "TOO_MUCH_APPENDED")
    with lab.conf(spark__cachemgr__freshHits__maxRows="2"):
        lab.miss(QUERIES[0], "TOO_MUCH_APPENDED")
    check_fresh(lab, QUERIES[0])


def test_floats_are_added_up_only_where_that_is_allowed(lab) -> None:
    lab.cache("heavy AS SELECT region, SUM(weight) AS w FROM sales GROUP BY region")
    query = "SELECT region, SUM(weight) AS w FROM sales GROUP BY region"
    lab.hit(query)
    lab.plain.sql(MORE)
    lab.miss(query, "FLOAT_NOT_EXACT")


def test_partial_sums_that_overflow_where_the_total_does_not(lab) -> None:
    lab.plain.sql("CREATE TABLE big (k INT, v BIGINT) USING delta")
    lab.plain.sql("INSERT INTO big VALUES (1, 9223372036854775807), (2, 5)")
    lab.cache("bigs AS SELECT k, SUM(v) AS v FROM big GROUP BY k")
    lab.plain.sql("INSERT INTO big VALUES (1, -9223372036854775807), (1, 1)")
    check_fresh(lab, "SELECT k, SUM(v) AS v FROM big GROUP BY k")


def test_explanations_tell_of_the_appended_rows(lab) -> None:
    lab.cache(BY_REGION)
    lab.plain.sql(MORE)
    found = cachemgr.explain(lab.spark, QUERIES[0])
    assert found.hit and "add_appended_rows" in found.steps
    assert "3 rows in 2 files appended to" in found.text()
    (appended,) = found.as_data()["appended"]
    assert (appended["files"], appended["rows"]) == (2, 3)


def test_every_way_of_asking(lab, capsys) -> None:
    lab.cache(BY_REGION)
    lab.plain.sql(MORE)
    query = QUERIES[0]
    before = fresh(lab)
    lab.spark.sql(query).show()
    assert fresh(lab) > before and "east" in capsys.readouterr().out
    expected = {tuple(r) for r in lab.plain.sql(query).collect()}
    lab.sql(f"CREATE TABLE copied USING delta AS {query}")
    assert {tuple(r) for r in lab.plain.sql("SELECT * FROM copied").collect()} == expected
    frame = lab.spark.table("sales").groupBy("region").count()
    before = fresh(lab)
    assert frame.count() == lab.plain.table("sales").groupBy("region").count().count()
    assert fresh(lab) > before
    inner = "SELECT * FROM cust WHERE cid < (SELECT COUNT(*) FROM sales WHERE region = 'north')"
    check_fresh(lab, inner)


def test_what_was_appended_later_is_not_in_an_answer_that_was_planned(lab) -> None:
    """The files are those of the snapshot that the query saw."""
    lab.cache(BY_REGION)
    lab.plain.sql(MORE)
    frame = lab.spark.sql(QUERIES[0])
    frame.explain()  # plans it
    lab.plain.sql(MORE)
    rows = {tuple(r) for r in frame.collect()}
    assert rows == {
        tuple(r)
        for r in lab.plain.sql(
            QUERIES[0].replace("FROM sales", "FROM sales VERSION AS OF 2")
        ).collect()
    }


def test_a_stale_answer_within_its_bound_is_taken_as_before(lab) -> None:
    lab.cache(f"{BY_REGION.replace('by_region AS', 'by_region MAX STALENESS UNLIMITED AS')}")
    old = {tuple(r) for r in lab.plain.sql(QUERIES[0]).collect()}
    lab.plain.sql(MORE)
    assert {tuple(r) for r in lab.sql(QUERIES[0])} == old
    assert fresh(lab) == 0
    # beside a table that is read as it is now the answer is exact
    check_fresh(
        lab,
        "SELECT c.city, t.n FROM cust c JOIN (SELECT region, COUNT(*) AS n FROM sales "
        "GROUP BY region) t ON t.n = c.cid",
    )


def test_appended_rows_go_before_a_large_cache_that_may_lag(lab) -> None:
    lab.plain.sql(
        "CREATE TABLE many USING delta AS SELECT id, id % 7 AS k, id AS v FROM range(300000)"
    )
    lab.cache("large MAX STALENESS UNLIMITED AS SELECT id, k, SUM(v) AS v FROM many GROUP BY id, k")
    lab.cache("small AS SELECT k, SUM(v) AS v FROM many GROUP BY k")
    lab.plain.sql("INSERT INTO many VALUES (1, 1, 1000000), (2, 9, 5)")
    query = "SELECT k, SUM(v) AS v FROM many GROUP BY k"
    found = cachemgr.explain(lab.spark, query)
    assert [(c.cache, c.outcome) for c in found.candidates] == [
        (f"{lab.schema}.small", "chosen"),
        (f"{lab.schema}.large", "valid"),
    ]
    check_fresh(lab, query)
    # each part by itself: no moment in which one has the appended rows and the other one has not
    by_id = "SELECT id % 100 AS i, SUM(v) AS v FROM many WHERE id < 1000 GROUP BY id % 100"
    both = f"SELECT k, v FROM ({query}) UNION ALL SELECT i, v FROM ({by_id})"
    before = lab.plain.sql(f"SELECT SUM(v) FROM ({both.replace('many', 'many VERSION AS OF 0')})")
    assert lab.sql(f"SELECT SUM(v) FROM ({both})") == before.collect()


AVERAGES = (
    "SELECT region, AVG(amt) AS a FROM sales GROUP BY region",
    "SELECT AVG(amt) AS a, SUM(amt) AS s, COUNT(amt) AS n FROM sales",
    "SELECT region, AVG(amt) AS a FROM sales GROUP BY region HAVING AVG(amt) > 10 ORDER BY region",
    "SELECT AVG(amt) AS a FROM sales WHERE region = 'nowhere'",
    "SELECT region, day, AVG(amt) AS a FROM sales GROUP BY ROLLUP (region, day)",
)


def test_averages_of_whole_numbers(lab) -> None:
    lab.cache(BY_REGION)
    lab.plain.sql(MORE)
    for query in AVERAGES:
        check_fresh(lab, query)
    # of all rows together too much for DOUBLE: the sum of the others is lost in the last digits
    lab.plain.sql(f"INSERT INTO sales VALUES (13, NULL, 'north', 1, {1 << 53}, 1, 1, 1)")
    for query in AVERAGES:
        lab.miss(query, "AVG_NOT_EXACT")
    check_fresh(lab, QUERIES[0])
    lab.sql("REFRESH RELATIONAL CACHE by_region")
    lab.plain.sql(MORE)
    lab.miss(AVERAGES[0], "AVG_NOT_EXACT")


@pytest.mark.parametrize(("value", "hit"), [(1 << 52, True), ((1 << 52) + 1, False)])
def test_averages_near_the_edge_of_double(lab, value: int, hit: bool) -> None:
    """Each of the two parts stays within 2^53 by itself."""
    lab.plain.sql("CREATE TABLE big (k INT, v BIGINT, w INT) USING delta")
    lab.plain.sql(f"INSERT INTO big VALUES (1, {value}, 1)")
    sums = "SUM(v) AS v, COUNT(v) AS n, SUM(w) AS w, COUNT(w) AS m"
    lab.cache(f"bigs AS SELECT k, {sums} FROM big GROUP BY k")
    query = "SELECT k, AVG(v) AS v FROM big GROUP BY k"
    lab.plain.sql(f"INSERT INTO big VALUES (1, {value}, 2147483647)")
    if hit:
        check_fresh(lab, query)
    else:
        lab.miss(query, "AVG_NOT_EXACT")
    check_fresh(lab, "SELECT AVG(w) AS w FROM big")
    check_fresh(lab, "SELECT k, SUM(v) AS v FROM big GROUP BY k")


def test_averages_over_joins(lab) -> None:
    lab.sql("DELETE FROM sales WHERE cust > 3")
    lab.cache(
        "joined AS SELECT city, SUM(amt) AS amt, COUNT(amt) AS n, SUM(cid) AS cid, COUNT(*) AS m "
        "FROM sales JOIN cust ON cust = cid GROUP BY city"
    )
    query = "SELECT city, AVG(amt) AS a FROM sales JOIN cust ON cust = cid GROUP BY city"
    lab.plain.sql("INSERT INTO sales VALUES (9, NULL, 'north', 2, 5, 1, 4.00, 0.5)")
    lab.miss(query, "AVG_NOT_EXACT")  # a customer may be there twice
    lab.sql(JOIN)
    lab.sql("REFRESH RELATIONAL CACHE joined")
    lab.plain.sql(MORE)
    check_fresh(lab, query)
    check_fresh(lab, query.replace("AVG(amt)", "AVG(cid)"))


def test_averages_over_a_table_joined_to_the_cache(lab) -> None:
    lab.cache("by_cust AS SELECT cust, SUM(amt) AS amt, COUNT(amt) AS n FROM sales GROUP BY cust")
    query = "SELECT nation, AVG(amt) AS a FROM sales JOIN cust ON cust = cid GROUP BY nation"
    lab.plain.sql(MORE)
    lab.miss(query, "AVG_NOT_EXACT")
    lab.sql("DELETE FROM sales WHERE cust > 3")
    lab.sql(JOIN)
    lab.sql("REFRESH RELATIONAL CACHE by_cust")
    lab.plain.sql(MORE)
    check_fresh(lab, query)
    lab.plain.sql("INSERT INTO cust VALUES (1, 'Como', 'Italy')")  # the key is there twice
    lab.miss(query, "AVG_NOT_EXACT")
