"""The index proposes caches that must be joined with tables of the query, and only then."""

from __future__ import annotations

from cachemgr.text import offline
from matcher.index.registry import Registry
from matcher.model.ir import Block, MatchOptions
from matcher.model.reasons import Reason, ReasonCode
from matcher.rules.match_view import match_plan
from matcher.sql.reader import parse_query
from tests.matcher.fixture_cases import FOLDER

SCHEMA = (FOLDER / "_schema.sql").read_text()
FLAT = "CREATE RELATIONAL CACHE flat AS SELECT store_id, SUM(units) AS u FROM sales GROUP BY 1;"
WHOLE = (
    "CREATE RELATIONAL CACHE whole AS SELECT city, day_id, SUM(units) AS u FROM sales "
    "JOIN stores USING (store_id) GROUP BY 1, 2;"
)
BY_CITY = "SELECT city, SUM(units) AS u FROM sales JOIN stores USING (store_id) {} GROUP BY city"


def registry(caches: str) -> Registry:
    return offline.prepare(SCHEMA, caches).registry


def block(text: str) -> Block:
    workspace = offline.prepare(SCHEMA, FLAT)
    found = next(parse_query(text, workspace.schema).walk()).block
    assert found is not None
    return found


def test_quick_and_thorough_decisions_agree() -> None:
    for caches in (FLAT, WHOLE, FLAT + WHOLE):
        for where in ("", "WHERE store_id > 11", "WHERE region = 'west'"):
            asked = block(BY_CITY.format(where))
            found = registry(caches)
            thorough = found.decide(asked, explain=True).rewrite
            for _ in range(3):
                assert found.decide(asked).rewrite == thorough, (caches, where)


def test_a_condition_on_a_joined_table_is_nothing_added_up() -> None:
    asked = (
        "SELECT store_id, SUM(CASE WHEN city = 'Oslo' THEN units END) AS u, "
        "SUM(CASE WHEN city = 'Oslo' THEN units ELSE 0 END) AS z "
        "FROM sales JOIN stores USING (store_id) GROUP BY 1"
    )
    found = registry(FLAT)
    thorough = found.decide(block(asked), explain=True).rewrite
    assert thorough is not None and [e.relation.name for e in thorough.extra] == ["stores"]
    assert found.decide(block(asked)).rewrite == thorough


def test_the_next_constant_is_filled_in() -> None:
    found = registry(FLAT)
    for region in ("west", "east", "west"):
        rewrite = found.decide(block(BY_CITY.format(f"WHERE region = '{region}'"))).rewrite
        assert rewrite is not None and region in repr(rewrite.filters)


def test_a_table_of_no_cache_may_be_joined() -> None:
    found = registry(FLAT)
    joined = (
        "SELECT s.store_id, SUM({}) AS u FROM sales s JOIN empty e ON s.store_id = e.k GROUP BY 1"
    )
    for added_up in ("units", "v"):  # a joined column counts as often as its group has rows
        rewrite = found.decide(block(joined.format(added_up))).rewrite
        assert rewrite is not None and [e.relation.name for e in rewrite.extra] == ["empty"]
    assert found.decide(block("SELECT SUM(v) AS v FROM empty")).rewrite is None
    assert found.tables() == {"default.sales"}


JOINED_AGAIN = (
    "SELECT store_id, SUM(rank) AS r, sort_array(COLLECT_SET(city)) AS c FROM sales "
    "JOIN stores USING (store_id) GROUP BY 1"
)


def test_what_is_added_up_may_be_of_a_table_that_is_joined_again() -> None:
    keyed = (
        "CREATE RECORD PRESERVING JOIN j AS sales INNER JOIN stores "
        "ON sales.store_id = stores.store_id PRESERVES sales;"
        "CREATE RELATIONAL CACHE keyed AS SELECT store_id, region, COUNT(*) AS n FROM sales "
        "JOIN stores USING (store_id) GROUP BY 1, 2;"
    )
    found = registry(keyed)
    asked = block(JOINED_AGAIN.replace("SUM(rank)", "SUM(LENGTH(city))"))
    thorough = found.decide(asked, explain=True).rewrite
    assert thorough is not None and [e.relation.name for e in thorough.extra] == ["stores"]
    assert found.decide(asked).rewrite == thorough


def test_no_number_of_caches_keeps_one_from_being_joined() -> None:
    narrow = "".join(
        f"CREATE RELATIONAL CACHE a{i} AS SELECT store_id, SUM(units) AS u FROM sales "
        f"WHERE day_id > {i} GROUP BY 1;"
        for i in range(40)
    )
    found = registry(narrow + FLAT)
    asked = block(BY_CITY.format(""))
    thorough = found.decide(asked, explain=True).rewrite
    assert thorough is not None and thorough.cache == "flat"
    assert found.decide(asked).rewrite == thorough


def test_only_what_could_serve_is_tried(monkeypatch) -> None:
    """A cache without a needed column, without the joining key, or of further tables."""
    useless = (
        "CREATE RELATIONAL CACHE no_units AS SELECT store_id, day_id, COUNT(*) AS n FROM sales "
        "GROUP BY 1, 2;"
        "CREATE RELATIONAL CACHE no_key AS SELECT day_id, SUM(units) AS u FROM sales GROUP BY 1;"
        "CREATE RELATIONAL CACHE wide AS SELECT store_id, SUM(units) AS u FROM sales, empty "
        "GROUP BY 1;"
    )
    tried: list[str] = []

    def noted(query, plan, options, **how):
        tried.append(plan.name)
        return match_plan(query, plan, options, **how)

    monkeypatch.setattr("matcher.index.registry.match_plan", noted)
    found = registry(useless + FLAT)
    assert found.decide(block(BY_CITY.format("")), explain=False).rewrite is not None
    assert tried == ["flat"]


def test_a_condition_that_always_holds_needs_no_column() -> None:
    found = registry("CREATE RELATIONAL CACHE few AS SELECT SUM(units) AS u FROM sales;")
    asked = block("SELECT SUM(units) AS u FROM sales WHERE store_id < 9 OR store_id <> 3")
    thorough = found.decide(asked, explain=True).rewrite
    assert thorough is not None and found.decide(asked).rewrite == thorough


def test_what_some_cache_knows_of_null_is_not_asked_of_the_query() -> None:
    """The first cache has the column below a LEFT join, where it may be NULL."""
    outer = (
        "CREATE RELATIONAL CACHE a_outer AS SELECT city, region, s.store_id, COUNT(units) AS n "
        "FROM stores t LEFT JOIN sales s ON s.store_id = t.store_id GROUP BY 1, 2, 3;"
    )
    inner = (
        "CREATE RELATIONAL CACHE inner AS SELECT city, COUNT(*) AS n FROM sales "
        "JOIN stores USING (store_id) GROUP BY 1;"
    )
    asked = block(
        "SELECT city, COUNT(CASE WHEN city > 'B' THEN sales.store_id END) AS n FROM sales "
        "JOIN stores ON sales.store_id = stores.store_id GROUP BY 1"
    )
    expected = registry(inner).decide(asked).rewrite
    assert expected is not None
    assert registry(outer + inner).decide(asked).rewrite is not None


def test_it_is_tried_when_the_others_are_refused() -> None:
    found = registry(FLAT + WHOLE)
    asked = block(BY_CITY.format(""))
    stale: set[str] = set()

    def clear(rewrite):
        return Reason(ReasonCode.STALE, "") if rewrite.cache in stale else rewrite.cache

    def winner() -> str | None:
        served = found.decide(asked, MatchOptions(), clear).served
        return None if served is None else served[1]

    assert winner() == "whole"
    stale.add("whole")
    assert [winner(), winner()] == ["flat", "flat"]
    stale.add("flat")
    assert [winner(), winner()] == [None, None]
    stale.clear()
    assert winner() == "whole"
