"""A miss names the declared join that would have helped if it held, and no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from matcher.examples import block_of, plan_of
from matcher.index.registry import Registry
from matcher.model.ir import LapsedJoin, MatchOptions

LEFT = (
    "SELECT item, city, COUNT(*) AS n FROM sales LEFT JOIN stores ON sales.store = stores.store "
    "GROUP BY item, city"
)
INNER = LEFT.replace("LEFT JOIN", "JOIN")
BY_ITEM = "SELECT item, COUNT(*) AS n FROM sales GROUP BY item"


@pytest.mark.parametrize("definition", [LEFT, INNER])
@pytest.mark.parametrize(
    ("broken", "says", "cure"),
    [
        (True, "record-preserving join j does not hold", "then VALIDATE RECORD PRESERVING JOIN j"),
        (False, "record-preserving join j is not proven", "REFRESH RELATIONAL CACHE c"),
    ],
)
def test_a_query_of_the_fact_alone(definition: str, broken: bool, says: str, cure: str) -> None:
    detail, suggestion = why(definition, BY_ITEM, broken)
    assert says in detail and cure in suggestion


def test_a_left_join_of_a_cache_that_has_the_inner_one() -> None:
    assert "and record-preserving join j does not hold" in why(INNER, LEFT, True)[0]


def test_it_says_nothing_of_what_the_query_reads() -> None:
    other = INNER.replace("sales.store = stores.store", "sales.qty = stores.store")
    detail, suggestion = why(LEFT, other, True)
    assert "the query does not ask for" in detail
    assert "record-preserving join j" not in detail + suggestion


def why(definition: str, query: str, broken: bool) -> tuple[str, str]:
    plan = plan_of(definition)
    stores = next(r for r in plan.relations if r.name == "stores")
    registry = Registry()
    registry.put(replace(plan, joins=(), lapsed=(LapsedJoin("j", stores.key, broken),)))
    (reason,) = registry.decide(block_of(query), MatchOptions(), explain=True).reasons
    return reason.detail, reason.suggestion
