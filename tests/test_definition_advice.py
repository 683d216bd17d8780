"""What is said to write instead of what no definition may hold."""

from __future__ import annotations

import pytest

from cachemgr.definition_advice import instead
from cachemgr.errors import DefinitionError
from cachemgr.text import offline
from tests.matcher.fixture_cases import FOLDER

SCHEMA = (FOLDER / "_schema.sql").read_text()


@pytest.mark.parametrize(
    ("told", "advice"),
    [
        ("the block holds UNION", "make a cache of each"),
        ("the block holds a window function", "cache the rows or groups below it"),
        ("the block holds a table-generating function", "store the column that it takes apart"),
        ("the block holds LIMIT", "leave it out, or make it the LIMIT of the whole"),
        ("the block holds a filter on a subquery", "write it as the HAVING"),
        ("scalarsubquery() is a subquery expression", "store the columns around it"),
        ("(k IN (listquery())) is a subquery expression", "join the subquery's tables"),
        ("explode(xs) makes several rows of one", "store the column that it takes apart"),
        ("the block holds data cached by Spark", ""),
    ],
)
def test_by_what_spark_s_plan_holds(told: str, advice: str) -> None:
    assert instead(told).startswith(advice) and bool(instead(told)) == bool(advice)


@pytest.mark.parametrize(
    ("select", "advice"),
    [
        ("SELECT store_id FROM sales UNION ALL SELECT store_id FROM stores", "a cache of each"),
        ("SELECT store_id FROM sales EXCEPT SELECT store_id FROM stores", "a cache of each"),
        ("SELECT RANK() OVER (ORDER BY units) AS r FROM sales", "the rows or groups below it"),
        ("SELECT store_id FROM sales QUALIFY ROW_NUMBER() OVER (ORDER BY units) = 1", "below it"),
        (
            "SELECT DISTINCT store_id, SUM(units) AS u FROM sales GROUP BY store_id, item_id",
            "in place of DISTINCT",
        ),
        ("SELECT DISTINCT ON (store_id) store_id FROM sales", "MIN_BY or MAX_BY"),
        ("SELECT e FROM sales LATERAL VIEW explode(array(1)) x AS e", "takes apart"),
        ("SELECT store_id FROM sales WHERE units > (SELECT AVG(units) FROM sales)", "in its place"),
        (
            "SELECT qty FROM sales WHERE store_id IN (SELECT store_id FROM sales ORDER BY units "
            "LIMIT 3)",
            "store the column that it tests",
        ),
        ("SELECT q.units FROM (SELECT units FROM sales ORDER BY 1 LIMIT 3) q", "of the whole"),
    ],
)
def test_noop_by_what_the_text_holds(select: str, advice: str) -> None:
    with pytest.raises(DefinitionError, match=advice):
        offline.prepare(SCHEMA, f"CREATE RELATIONAL CACHE c AS {select};", {})
