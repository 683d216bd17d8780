# ruff: noqa: E501 - tables of SQL read better unbroken
"""What keeps an expression from raising: a filter that the cache guarantees is still said where
Spark concludes from it what holds for joined rows, and nothing that may raise is taken for true.

Each query is answered by Spark alone, or ends there with an error: with us it does the same. Over
real tables, since Spark works out a filter of constants (as the matcher's text cases hold their
rows) before it concludes anything from it.
"""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

pytestmark = pytest.mark.spark

X = "(SELECT k, COUNT(*) AS n FROM e WHERE k <> 0 GROUP BY k) x"
MEETS = "x.k = ed.k AND 10 / x.k > length(ed.s)"
# By title: a query that is answered from a cache of the rows with k <> 0.
GUARDED = {
    "an inner join": "SELECT e.k, COUNT(*) AS n FROM e JOIN ed ON e.k = ed.k WHERE e.k <> 0 AND 10 / e.k > length(ed.s) GROUP BY e.k",
    "a division by the other side": "SELECT e.k, COUNT(*) AS n FROM e JOIN ed ON e.k = ed.k WHERE e.k <> 0 AND 10 / ed.k > length(e.k) GROUP BY e.k",
    "an overflow": "SELECT e.k, COUNT(*) AS n FROM e JOIN ed ON e.k = ed.k WHERE e.k < 9 AND e.k <> 0 AND CAST(e.k AS TINYINT) > length(ed.s) GROUP BY e.k",
    "a subquery alone is replaced": f"SELECT x.k, x.n, ed.s FROM {X} JOIN ed ON x.k = ed.k WHERE 10 / x.k > length(ed.s)",
    "LEFT": f"SELECT x.k, x.n, ed.s FROM {X} LEFT JOIN ed ON {MEETS}",
    "RIGHT": f"SELECT x.k, x.n, ed.s FROM ed RIGHT JOIN {X} ON {MEETS}",
    "SEMI": f"SELECT x.k, x.n FROM {X} LEFT SEMI JOIN ed ON {MEETS}",
    "ANTI": f"SELECT x.k, x.n FROM {X} LEFT ANTI JOIN ed ON {MEETS}",
    "EXISTS": f"SELECT x.k, x.n FROM {X} WHERE EXISTS (SELECT 1 FROM ed WHERE {MEETS})",
    "HAVING": "SELECT x.k, ed.s FROM (SELECT k, COUNT(*) AS n FROM e WHERE k <> 0 GROUP BY k HAVING COUNT(*) > 0) x JOIN ed ON x.k = ed.k AND 10 / x.k > length(ed.s)",
    "CASE": "SELECT e.k, COUNT(*) AS n FROM e JOIN ed ON e.k = ed.k WHERE e.k <> 0 AND CASE WHEN e.k <> 0 THEN 10 / e.k END > length(ed.s) GROUP BY e.k",
}
OF_ROWS = {
    "rows": "SELECT e.k, ed.s FROM e JOIN ed ON e.k = ed.k WHERE e.k <> 0 AND 10 / e.k > length(ed.s)",
    "LEFT": "SELECT e.k, ed.s FROM e LEFT JOIN ed ON e.k = ed.k AND 10 / e.k > length(ed.s) WHERE e.k <> 0",
    "NOT EXISTS": "SELECT e.k FROM e WHERE e.k <> 0 AND NOT EXISTS (SELECT 1 FROM ed WHERE e.k = ed.k AND 10 / e.k > length(ed.s))",
    "a cast behind a list": "SELECT e.s, COUNT(*) AS n FROM e JOIN ed ON e.s = ed.s WHERE e.s IN ('1', '2') AND CAST(e.s AS INT) >= ed.k GROUP BY e.s",
    "the condition's own order": "SELECT e.k, ed.s FROM e LEFT JOIN ed ON e.k = ed.k AND ed.z <> 0 AND 10 / ed.z > 1 WHERE e.k <> 0",
}


@pytest.fixture
def pair(lab):
    """Two tables of which the second has what the cache of the first leaves out."""
    lab.sql("CREATE TABLE e (k INT, s STRING, v BIGINT) USING delta")
    lab.sql("CREATE TABLE ed (k INT, s STRING, z INT) USING delta")
    lab.sql(
        "INSERT INTO e VALUES (1, '1', 1), (2, '2', 2), (0, 'x', 3), (5, '1', 3), (NULL, NULL, 1)"
    )
    lab.sql("INSERT INTO ed VALUES (1, '1', 1), (2, '2', 0), (0, 'x', 0), (3, '', 5), (999, '', 1)")
    return lab


def wrong_of(lab, queries):
    wrong = {}
    for title, query in queries.items():
        try:
            lab.hit(query)
        except (AssertionError, PySparkException) as error:
            wrong[title] = str(error)[:300]
    return wrong


def test_a_guard_is_said_for_joined_rows(pair):
    pair.cache("c AS SELECT k, COUNT(*) AS n FROM e WHERE k <> 0 GROUP BY k")
    assert not wrong_of(pair, GUARDED)


def test_a_guard_of_rows_and_what_may_raise(pair):
    pair.cache("c AS SELECT k FROM e WHERE k <> 0")
    pair.cache("d AS SELECT s, COUNT(*) AS n FROM e WHERE s IN ('1', '2') GROUP BY s")
    assert not wrong_of(pair, OF_ROWS)
    pair.cache("a AS SELECT k, COUNT(*) AS n FROM e GROUP BY k")
    always = "10 / k > 1 OR 10 / k <= 1 OR 10 / k IS NULL"
    query = f"SELECT k, COUNT(*) AS n FROM e WHERE {{}}({always}) GROUP BY k"
    for session in (pair.plain, pair.spark):
        with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"):
            session.sql(query.format("")).collect()
    pair.hit(query.format("k <> 0 AND "))


# By title: what an aggregate raises for a row of a group that HAVING drops after that.
DROPPED = {
    "COUNT": "SELECT s, COUNT(CAST(s AS INT)) AS r FROM e GROUP BY s HAVING COUNT(*) > 1",
    "in HAVING": "SELECT s FROM e GROUP BY s HAVING COUNT(*) > 1 AND MAX(CAST(s AS INT)) > 0",
    "MIN": "SELECT k, MIN(10 / k) AS r FROM e GROUP BY k HAVING COUNT(*) > 1",
    "a filter above": "SELECT r FROM (SELECT k, MIN(10 / k) AS r, COUNT(*) AS n FROM e GROUP BY k) WHERE n > 1",
}


def test_what_an_aggregate_raises_for_a_group_that_having_drops_is_raised(pair):
    pair.cache("c AS SELECT k, SUM(v) AS v, COUNT(*) AS n FROM e GROUP BY k")
    pair.cache("d AS SELECT s, COUNT(*) AS n FROM e GROUP BY s")
    for title, query in DROPPED.items():
        for session in (pair.plain, pair.spark):
            with pytest.raises(PySparkException, match=r"DIVIDE_BY_ZERO|CAST_INVALID_INPUT"):
                rows = session.sql(query).collect()
                pytest.fail(f"{title}: {rows}")
    pair.cache("h AS SELECT s, SUM(v) AS v, COUNT(*) AS n FROM e GROUP BY s HAVING COUNT(*) > 1")
    for query in (
        "SELECT s, COUNT(CAST(s AS INT)) AS r, SUM(v) AS v FROM e GROUP BY s HAVING COUNT(*) > 1",
        "SELECT s, SUM(v) AS v FROM e WHERE CAST(s AS INT) > 0 GROUP BY s HAVING COUNT(*) > 1",
        "SELECT s, SUM(v) FILTER (WHERE CAST(s AS INT) > 0) v FROM e GROUP BY s HAVING COUNT(*) > 1",
    ):
        for session in (pair.plain, pair.spark):
            with pytest.raises(PySparkException, match="CAST_INVALID_INPUT"):
                session.sql(query).collect()
    pair.hit("SELECT s, SUM(v) AS v FROM e WHERE s = '1' GROUP BY s HAVING COUNT(*) > 1")
    pair.hit("SELECT k, MIN(10 / k) AS r FROM e WHERE k <> 0 GROUP BY k HAVING SUM(v) > 0")
