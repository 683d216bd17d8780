# ruff: noqa: E501 - tables of SQL read better unbroken
"""FLOAT and DOUBLE where rows may lie in another order, and the two zeros, which files tell apart."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.spark

# So many rows of a value that Parquet writes it to a dictionary, by which it passes over row groups.
MANY = "LATERAL VIEW explode(sequence(1, 300)) AS e"
CONDITIONS = (
    "k = 0D",
    "k <=> 0D",
    "k IN (0D, 7D)",
    "0D >= k",
    "k BETWEEN 0D AND 1D",
    "f IN (0F, 2F)",
    "CAST(f AS DOUBLE) = 0D",
)
OF_MINUS_ZERO = ("k = -0D", "k IN (-0.0D, 7D)", "k <= 0D * -1", "f = CAST('-0' AS FLOAT)")


def _table(lab, *files):
    """Table z with each of the files full of the given values."""
    lab.plain.sql("CREATE TABLE z (g INT, k DOUBLE, f FLOAT) USING delta")
    for values in files:
        rows = ", ".join(f"({number}, '{value}')" for number, value in enumerate(values))
        lab.plain.sql(
            "INSERT INTO z SELECT /*+ COALESCE(1) */ g, CAST(v AS DOUBLE), CAST(v AS FLOAT) "
            f"FROM VALUES {rows} AS t(g, v) {MANY}"
        )


@pytest.mark.parametrize(
    ("cache", "select"),
    [
        (
            "groups AS SELECT k, f, COUNT(*) AS n FROM z GROUP BY k, f",
            "SELECT COUNT(*) AS n FROM z",
        ),
        ("raw AS SELECT * FROM z", "SELECT k, f, COUNT(*) AS n FROM z"),
    ],
)
def test_both_zeros_are_found(lab, cache, select):
    _table(lab, ("0.0", "-0.0", "1.5", "-2"))
    lab.cache(cache)
    keys = " GROUP BY k, f" if "k, f" in select else ""
    with lab.conf(spark__cachemgr__pin__enabled="false"):
        for condition in CONDITIONS:
            lab.hit(f"{select} WHERE {condition}{keys}")
    for condition in OF_MINUS_ZERO:
        lab.miss(f"{select} WHERE {condition}{keys}", "UNSUPPORTED_EXPRESSION")


def test_what_spark_itself_finds_of_zeros_depends_on_files(lab):
    """Why a condition with -0.0 is no cache's: of rows that hold 0.0 alone Spark finds none by it
    where they are in a dictionary, and all of them where Parquet's filters are off."""
    _table(lab, ("0.0", "1.5"))
    lab.cache("raw AS SELECT * FROM z")
    assert lab.miss("SELECT COUNT(*) AS n FROM z WHERE k = -0.0D")[0].n == 0
    with lab.conf(spark__sql__parquet__filterPushdown="false"):
        assert lab.miss("SELECT COUNT(*) AS n FROM z WHERE k = -0.0D")[0].n == 300
    assert lab.hit("SELECT COUNT(*) AS n FROM z WHERE k = 0.0D")[0].n == 300


def test_zeros_are_found_above_what_a_cache_gives(lab):
    """HAVING stays above the groups in Spark's plan, which pushes it into the cache's files."""
    lab.plain.sql(
        "CREATE TABLE z USING delta AS SELECT id AS g, CAST('-0.0' AS DOUBLE) AS k FROM range(400)"
    )
    lab.cache("c AS SELECT g, MIN(k) AS low, COUNT(*) AS n FROM z GROUP BY g")
    with lab.conf(spark__cachemgr__pin__enabled="false"):
        for condition in ("= 0D", "= -0.0D", ">= 0D", "IN (0D, 7D)"):
            query = f"SELECT COUNT(*) AS n FROM (SELECT g FROM z GROUP BY g HAVING MIN(k) {condition}) x"
            assert lab.hit(query)[0].n == 400


# so many rows of 1e16, 1 and -1e16 that their sum shows in which order they were added
WILD = "CREATE TABLE w USING delta AS SELECT id, CAST(id % 3 AS INT) AS g, CASE id % 3 WHEN 0 THEN 1e16 WHEN 1 THEN CAST(id AS DOUBLE) / 3 ELSE -1e16 END AS x, CAST(CASE WHEN id % 2 = 0 THEN '0.0' ELSE '-0.0' END AS DOUBLE) AS z, CAST(id % 7 AS INT) AS n FROM range(0, 3000, 1, 4)"
ADDING = (
    "SELECT SUM(x) AS s FROM w",
    "SELECT n, AVG(x) AS s FROM w WHERE g < 2 GROUP BY n",
    "SELECT SUM(DISTINCT x) AS s FROM w",
    "SELECT VARIANCE(n) AS s, SKEWNESS(x) AS k, CORR(x, n) AS c FROM w",
    "SELECT id, SUM(x) OVER (PARTITION BY n) AS s FROM w",
    "SELECT SUM(s) AS s FROM (SELECT x + row_number() OVER (ORDER BY id) AS s FROM w) y",
    "SELECT SUM(x) AS s FROM (SELECT x FROM w WHERE g = 1 UNION ALL SELECT x FROM w WHERE g = 2) y",
    "SELECT SUM(x) AS s FROM w JOIN (SELECT DISTINCT cid FROM cust) c ON w.n = c.cid",
)
PICKING = (
    "SELECT MIN(z) AS m FROM w",
    "SELECT n, MAX(z) AS m FROM w GROUP BY n",
    "SELECT id, MIN(z) OVER (PARTITION BY n) AS m FROM w",
    "SELECT sort_array(COLLECT_SET(z)) AS m FROM w",
)
UNORDERED = (
    "SELECT SUM(n) AS s, AVG(n) AS a, MAX(id) AS m, COUNT(DISTINCT x) AS d FROM w",
    "SELECT n, MIN(x) AS m FROM w WHERE x > 0D GROUP BY n",
    "SELECT id, x FROM w WHERE x < 5D",
    "SELECT id, SUM(n) OVER (PARTITION BY g) AS s FROM w",
)


def test_floats_are_not_added_in_the_order_of_a_caches_rows(lab):
    lab.plain.sql(WILD)
    lab.cache("raw AS SELECT * FROM w")
    for query in ADDING:
        # of groups that are joined it is told first that the cache lacks them
        lab.miss(query, "TABLE_NOT_IN_CACHE" if "DISTINCT cid" in query else "FLOAT_NOT_EXACT")
    for query in PICKING:
        lab.miss(query)
    for query in UNORDERED:
        lab.hit(query)
    with lab.conf(spark__cachemgr__approximateFloats="true"):
        for query in ADDING:
            before = lab.hits()
            lab.sql(query)
            assert lab.hits() > before, query


def test_a_constant_that_rules_out_zero_is_not_taken_for_another(lab):
    """The second query of a shape is answered as the first was, with its own constant."""
    lab.plain.sql(WILD)
    lab.cache("raw AS SELECT * FROM w")
    for _ in range(2):
        lab.hit("SELECT MIN(z) AS m, MAX(x) AS x FROM w WHERE z > 0D AND x < -1D")
    lab.miss("SELECT MIN(z) AS m, MAX(x) AS x FROM w WHERE z > -1D AND x < -1D", "FLOAT_NOT_EXACT")
    lab.miss("SELECT MIN(z) AS m, MAX(x) AS x FROM w WHERE z > 0D AND x < 1D", "FLOAT_NOT_EXACT")


def test_zeros_inside_of_structs_and_arrays_are_one_group_too(lab):
    lab.plain.sql(
        "CREATE TABLE y USING delta AS SELECT array(z) AS arr, named_struct('x', z, 'n', 1) AS st "
        "FROM (SELECT CAST(CASE id % 3 WHEN 0 THEN '-0.0' WHEN 1 THEN '0.0' ELSE '7.5' END AS DOUBLE) AS z "
        "FROM range(0, 9, 1, 1))"
    )
    for key in ("arr", "st"):
        lab.cache(f"c_{key} AS SELECT {key}, COUNT(*) AS n FROM y GROUP BY {key}")
        lab.hit(f"SELECT {key}, COUNT(*) AS n FROM y GROUP BY {key}")
        text = f"CAST({key} AS STRING)"
        lab.miss(f"SELECT {text} AS s, COUNT(*) AS n FROM y GROUP BY {text}")
        lab.miss(f"SELECT MIN({text}) AS m FROM y")
    lab.hit("SELECT st.x AS x, COUNT(*) AS n FROM y GROUP BY st.x")
    lab.hit("SELECT COUNT(*) AS n FROM y WHERE st.x = 0D AND st.n + 1 = 2")
    lab.miss("SELECT COUNT(*) AS n FROM y WHERE CAST(st.x AS STRING) = '-0.0'")
    lab.miss("SELECT COUNT(DISTINCT CAST(st.x AS STRING)) AS n FROM y")


def test_floats_are_not_added_in_the_order_of_a_caches_groups(lab):
    lab.plain.sql(WILD)
    lab.cache("c AS SELECT n, g, SUM(x) AS s, AVG(n) AS a, COUNT(*) AS c FROM w GROUP BY n, g")
    inner = "SELECT n, g, SUM(x) AS s, AVG(n) AS a, COUNT(*) AS c FROM w GROUP BY n, g"
    lab.hit(inner)
    lab.miss(
        f"SELECT SUM(s) AS t FROM (SELECT *, row_number() OVER (ORDER BY n) AS r FROM ({inner}) x) y",
        "FLOAT_NOT_EXACT",
    )
    lab.hit(
        f"SELECT SUM(c) AS t FROM (SELECT *, row_number() OVER (ORDER BY n) AS r FROM ({inner}) x) y"
    )


COLLATED = "CREATE TABLE b USING delta AS SELECT id, CAST(CASE WHEN id % 3 = 0 THEN 'a' ELSE 'A' END AS STRING) AS s, CAST(id % 5 AS INT) AS n FROM range(0, 300, 1, 3)"
LCASE = "CAST(s AS STRING COLLATE UTF8_LCASE)"
OF_COLLATED = (
    f"SELECT {LCASE} AS k, COUNT(*) AS c FROM b GROUP BY {LCASE}",
    f"SELECT substring({LCASE}, 1, 1) AS k, COUNT(*) AS c FROM b GROUP BY substring({LCASE}, 1, 1)",
    f"SELECT DISTINCT {LCASE} AS k FROM b",
    f"SELECT n, MIN({LCASE}) AS m FROM b GROUP BY n",
    f"SELECT MAX(substring({LCASE}, 1, 1)) AS m FROM b",
    f"SELECT id, MAX({LCASE}) OVER (PARTITION BY n) AS m FROM b",
)


@pytest.mark.parametrize(
    "cache", ["raw AS SELECT * FROM b", "keys AS SELECT s, n, COUNT(*) AS c FROM b GROUP BY s, n"]
)
def test_which_of_equal_strings_is_shown(lab, cache):
    lab.plain.sql(COLLATED)
    lab.cache(cache)
    for query in OF_COLLATED:
        lab.miss(query)
    lab.miss(f"SELECT COUNT(*) AS c FROM b WHERE {LCASE} = 'A'", "PREDICATE_COLUMN_MISSING")
