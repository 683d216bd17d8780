"""A miss names the declared join that would have helped if it held, and no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from matcher.examples import block_of, plan_of
from matcher.index.registry import Registry
from matcher.model.ir import LapsedJoin, RecordPreservingJoin
from matcher.model.reasons import Reason

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


@pytest.mark.parametrize("definition", [LEFT, INNER])
def test_it_says_what_lacks_besides(definition: str) -> None:
    """To mend the join alone would not help."""
    query = "SELECT item, SUM(qty) AS n FROM sales GROUP BY item"
    first, second = reasons(definition, query, True)
    assert "record-preserving join j does not hold" in first.detail
    assert second.code.value == "AGG_NOT_DERIVABLE"
    assert len(reasons(definition, BY_ITEM, True)) == 1


def test_no_query_is_answered_as_if_the_join_held() -> None:
    for explain in (False, True):
        assert registry(INNER, True).decide(block_of(BY_ITEM), explain=explain).rewrite is None


def test_where_none_is_declared_a_cache_without_the_table_is_named_as_well() -> None:
    registry = Registry()
    registry.put(
        plan_of(
            "SELECT name, city, COUNT(*) AS n FROM sales JOIN stores ON sales.store = stores.store "
            "JOIN items ON sales.item = items.item GROUP BY name, city"
        )
    )
    query = block_of("SELECT city, COUNT(*) AS n FROM stores GROUP BY city")
    told = [reason.suggestion for reason in registry.decide(query, explain=True).reasons]
    assert told == ["declare a cache without sales"], "it joins sales by columns of two tables"


def why(definition: str, query: str, broken: bool) -> tuple[str, str]:
    (reason,) = reasons(definition, query, broken)
    return reason.detail, reason.suggestion


def reasons(definition: str, query: str, broken: bool) -> tuple[Reason, ...]:
    return registry(definition, broken).decide(block_of(query), explain=True).reasons


def registry(definition: str, broken: bool) -> Registry:
    plan = plan_of(definition)
    sales, stores = (
        next(r.key for r in plan.relations if r.name == name) for name in ("sales", "stores")
    )
    join = RecordPreservingJoin("j", sales, stores, (("store", "store"),))
    found = Registry()
    found.put(replace(plan, joins=(), lapsed=(LapsedJoin(join, broken),)))
    return found
