"""Definitions over caches that show what they do not store: what is computed there is computed of
base columns here."""

from __future__ import annotations

import pytest

from cachemgr.errors import CacheManagerError
from cachemgr.text import offline
from matcher.model.errors import MatcherError
from tests.matcher.fixture_cases import FOLDER

SCHEMA = (FOLDER / "_schema.sql").read_text()
BELOW = (
    "CREATE RELATIONAL CACHE a AS SELECT store_id + 1 AS next, store_id, SUM(units) AS u, "
    "COUNT(*) + 0 AS n, SUM(cost) / COUNT(*) AS mean FROM sales GROUP BY store_id ORDER BY u;\n"
)


def asked(select: str, query: str, below: str = BELOW) -> str:
    """What `query` becomes with the cache `c` over `a`."""
    caches = f"{below}CREATE RELATIONAL CACHE c AS {select};"
    hinted = query.replace("SELECT", "SELECT /*+ RELATIONAL_CACHE(c) */", 1)
    found = offline.explain(SCHEMA, caches, hinted, {})
    return " ".join((found["rewrittenSql"] or "").split())


def test_a_computed_key_of_the_cache_below() -> None:
    found = asked(
        "SELECT next * 2 AS k, SUM(u) AS u FROM a GROUP BY next * 2",
        "SELECT (store_id + 1) * 2 AS k, SUM(units) AS u FROM sales GROUP BY (store_id + 1) * 2",
    )
    assert found == "SELECT `k`, `u` FROM `c`"


def test_a_ratio_over_the_cache_below() -> None:
    found = asked(
        "SELECT store_id, SUM(u) / MAX(store_id) AS r FROM a GROUP BY store_id",
        "SELECT store_id, SUM(units) AS u FROM sales GROUP BY store_id",
    )
    assert found == "SELECT `store_id`, `__agg_0` AS `u` FROM `c`"


def test_the_ratio_of_the_cache_below_as_it_is() -> None:
    found = asked(
        "SELECT store_id, mean, u FROM a",
        "SELECT store_id, SUM(cost) / COUNT(*) AS mean FROM sales GROUP BY store_id",
    )
    assert found.startswith("SELECT `store_id`, (`__agg_0` / ") and found.endswith("FROM `c`")


@pytest.mark.parametrize(
    "select", ["SELECT SUM({0}) AS s FROM a", "SELECT next, SUM({0}) AS s FROM a GROUP BY next"]
)
@pytest.mark.parametrize("column", ["mean", "n"])
def test_an_aggregate_of_what_is_computed_of_groups(select: str, column: str) -> None:
    """A sum of ratios is none of base rows, and COUNT(*) + 0 is no count: both are over groups."""
    select = select.format(column)
    groups = BELOW.partition(" AS ")[2].partition(" ORDER BY")[0]
    found = asked(select, select.replace("FROM a", f"FROM ({groups}) a"))
    assert found == f"SELECT {'`next`, ' if 'next' in select else ''}`s` FROM `c`"


@pytest.mark.parametrize(
    ("below", "select"),
    [
        (
            "CREATE RELATIONAL CACHE a AS SELECT store_id, SUM(units) AS u FROM sales "
            "GROUP BY store_id HAVING SUM(units) > 5;\n",
            "SELECT store_id, u FROM a",
        ),
        (
            "CREATE RELATIONAL CACHE a AS SELECT s.store_id, t.store_id FROM sales s JOIN stores t "
            "ON s.store_id = t.store_id;\n",
            "SELECT store_id FROM a",
        ),
    ],
)
def test_noop_what_is_no_column_of_base_rows(below: str, select: str) -> None:
    with pytest.raises((CacheManagerError, MatcherError)):
        asked(select, "SELECT store_id FROM sales", below)
