"""The index proposes caches that must be joined with tables of the query, and only then."""

from __future__ import annotations

from cachemgr import offline
from matcher.from_sql import parse_query
from matcher.ir import Block
from matcher.reasons import Reason, ReasonCode
from matcher.registry import Registry
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


def test_a_table_of_no_cache_may_be_joined_and_not_added_up() -> None:
    found = registry(FLAT)
    joined = (
        "SELECT s.store_id, SUM(units) AS u FROM sales s "
        "JOIN empty e ON s.store_id = e.k GROUP BY 1"
    )
    rewrite = found.decide(block(joined)).rewrite
    assert rewrite is not None and [e.relation.name for e in rewrite.extra] == ["empty"]
    for text in (joined.replace("units", "v"), "SELECT SUM(v) AS v FROM empty"):
        assert found.decide(block(text)).rewrite is None
    assert found.tables() == {"default.sales"}


def test_it_is_tried_when_the_others_are_refused() -> None:
    found = registry(FLAT + WHOLE)
    asked = block(BY_CITY.format(""))
    stale: set[str] = set()

    def veto(rewrite):
        return Reason(ReasonCode.STALE, "") if rewrite.cache in stale else None

    def winner() -> str | None:
        rewrite = found.decide(asked, veto=veto).rewrite
        return None if rewrite is None else rewrite.cache

    assert winner() == "whole"
    stale.add("whole")
    assert [winner(), winner()] == ["flat", "flat"]
    stale.add("flat")
    assert [winner(), winner()] == [None, None]
    stale.clear()
    assert winner() == "whole"
