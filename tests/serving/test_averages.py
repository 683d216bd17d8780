"""Averages of whole numbers over a cache and appended rows: what is proven, by which cache."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cachemgr.base_state import BaseState
from cachemgr.metastore.records import JoinRecord, JoinSide
from cachemgr.serving.decision import Hit
from cachemgr.serving.fresh_hits import fresh_hit
from cachemgr.serving.served_cache import ServedCache
from cachemgr.vocabulary import JoinState
from matcher.catalyst.reader import LocatedBlock
from matcher.examples import block_of
from matcher.model.ir import MatchOptions, RecordPreservingJoin
from matcher.model.reasons import Reason
from tests.serving.grown_sales import BY_STORE, SALES, SMALL, STORES, cache, world

KEY = RecordPreservingJoin("j", SALES, STORES, (("store", "store"),))
ROWS = "SELECT store, qty FROM sales"
JOINED = (
    "SELECT city, SUM(qty) AS q, COUNT(qty) AS k FROM sales JOIN stores USING (store) GROUP BY city"
)
AVERAGE = "SELECT store, AVG(qty) AS a FROM sales GROUP BY store"
BY_CITY = "SELECT city, AVG(qty) AS a FROM sales JOIN stores USING (store) GROUP BY city"


def asked(query: str, *caches: ServedCache, **how: Any) -> Hit | set[str]:
    """A hit over sales to which rows were appended, or the codes of the miss; see `outcome`."""
    found = outcome(query, *caches, **how)
    return found if isinstance(found, Hit) else {reason.code.value for reason in found}


def outcome(
    query: str, *caches: ServedCache, options: MatchOptions | None = None, **how: Any
) -> Hit | tuple[Reason, ...]:
    """What is decided of a query in such a `world`."""
    registry, eligibility = world(*caches, **how)
    block = block_of(query)
    located = LocatedBlock((), block)
    return fresh_hit(located, block, registry, eligibility, options or MatchOptions())


def test_an_average_is_put_together_where_all_rows_are_proven_small() -> None:
    found = asked(AVERAGE, cache())
    assert isinstance(found, Hit) and found.appended is not None
    assert "UNION ALL" in found.sql and "NULLIF" in found.sql


@pytest.mark.parametrize(
    "one",
    [
        cache(bounds={}),
        cache(bounds={(SALES, "price"): (0, 1)}),
        cache(bounds={(STORES, "qty"): (0, 1)}),
        cache(rows=None),
        # the rows behind the cache leave nothing of 2^53 to others
        cache(bounds={(SALES, "qty"): (0, 1 << 29)}),
        cache(bounds={(SALES, "qty"): (-(1 << 29), 0)}),
    ],
)
def test_averages_that_are_not_proven_exact(one: ServedCache) -> None:
    assert asked(AVERAGE, one) == {"AVG_NOT_EXACT"}


def test_the_appended_rows_have_the_bounds_of_the_type() -> None:
    assert isinstance(asked(AVERAGE, cache(), appended=(1 << 22) - (1 << 10)), Hit)
    assert asked(AVERAGE, cache(), appended=1 << 22) == {"AVG_NOT_EXACT"}
    assert asked(AVERAGE, cache(), appended=None) == {"TOO_MUCH_APPENDED"}


def test_what_the_log_says_of_the_appended_files_is_less_than_the_type() -> None:
    for said, exact in (
        ({"col-1": (0, 1 << 20)}, True),
        ({"COL-1": (-9, 9)}, True),
        ({"col-1": (0, (1 << 31) - 1)}, False),
        ({"qty": (0, 9)}, False),
        ({}, False),
    ):
        found = asked(AVERAGE, cache(), appended=1 << 22, said=said)
        assert isinstance(found, Hit) is exact


def test_few_rows_need_no_noted_bounds() -> None:
    assert isinstance(asked(AVERAGE, cache(rows=1000, bounds={})), Hit)
    assert isinstance(asked(AVERAGE, cache(ROWS, rows=1000, bounds={})), Hit)
    assert asked(AVERAGE, cache(ROWS, bounds={})) == {"AVG_NOT_EXACT"}


def test_other_aggregates_ask_for_no_proof() -> None:
    query = AVERAGE.replace("AVG", "SUM")
    assert isinstance(asked(query, cache(rows=None, bounds={})), Hit)
    loose = MatchOptions(assume_exact_averages=True)
    assert isinstance(asked(AVERAGE, cache(rows=None, bounds={}), options=loose), Hit)


def test_each_average_of_a_query_is_proven() -> None:
    two = "SELECT store, AVG(qty) AS a, AVG(item) AS b FROM sales GROUP BY store"
    over = BY_STORE.replace("SUM(qty) AS q", "SUM(qty) AS q, SUM(item) AS i")
    assert asked(two, cache(over)) == {"AVG_NOT_EXACT"}
    known = SMALL | {(SALES, "item"): (1, 99)}
    assert isinstance(asked(two, cache(over, bounds=known)), Hit)


def test_a_key_is_averaged_as_often_as_it_has_rows() -> None:
    query = "SELECT AVG(store) AS a FROM sales"
    assert asked(query, cache()) == {"AVG_NOT_EXACT"}
    assert isinstance(asked(query, cache(bounds={(SALES, "store"): (0, 9)})), Hit)


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_what_one_cache_proves_says_nothing_of_another(names: tuple[str, str]) -> None:
    """Either is tried first: the cheaper one, and ties by name."""
    known, unknown = names
    for rows in (5, 20):
        proven = cache(name=known)
        open_ = cache(name=unknown, bounds={})
        open_ = replace(open_, plan=replace(open_.plan, rows=rows))
        found = asked(AVERAGE, proven, open_)
        assert isinstance(found, Hit) and found.cache.name == known
        assert asked(AVERAGE, open_) == {"AVG_NOT_EXACT"}


def test_joined_rows_count_once_where_a_key_says_so() -> None:
    assert isinstance(asked(BY_CITY, cache(JOINED, joins=(KEY,))), Hit)
    assert asked(BY_CITY, cache(JOINED)) == {"AVG_NOT_EXACT"}
    nobody = replace(KEY, validated=False)
    assert asked(BY_CITY, cache(JOINED, joins=(nobody,))) == {"AVG_NOT_EXACT"}


def test_columns_of_a_table_that_did_not_grow_keep_their_bounds() -> None:
    over = JOINED.replace("SUM(qty) AS q, COUNT(qty) AS k", "SUM(stores.store) AS q, COUNT(*) AS k")
    query = BY_CITY.replace("AVG(qty)", "AVG(stores.store)")
    known = {(STORES, "store"): (0, 1 << 28)}
    few = cache(over, rows=1 << 24, bounds=known, joins=(KEY,))
    # 2^28 for each of 2^24 rows and 2^22 more, where the type alone would be too much
    assert isinstance(asked(query, few, appended=1 << 22), Hit)
    assert asked(query, replace(few, plan=replace(few.plan, bounds=())), appended=1 << 22) == {
        "AVG_NOT_EXACT"
    }
    # what the log says of the appended files is of the table that grew
    one = cache(over, rows=1, bounds={}, joins=(KEY,))
    assert asked(query, one, appended=1 << 22, said={"store": (0, 1)}) == {"AVG_NOT_EXACT"}


@pytest.mark.parametrize(
    ("added", "exact"),
    [
        ({"store": (0, 1 << 28)}, True),
        ({"STORE": (1 << 28, 1 << 29)}, True),
        ({"store": (0, (1 << 31) - 1)}, False),
        ({"city": (0, 1)}, False),
        ({}, False),
    ],
)
def test_appended_rows_may_find_the_new_keys_of_a_dimension(
    added: dict[str, tuple[int, int]], exact: bool
) -> None:
    over = JOINED.replace("SUM(qty) AS q, COUNT(qty) AS k", "SUM(stores.store) AS q, COUNT(*) AS k")
    query = BY_CITY.replace("AVG(qty)", "AVG(stores.store)")
    known = {(STORES, "store"): (0, 1 << 28)}
    few = cache(over, rows=1 << 20, bounds=known, joins=(KEY,))
    found = asked(query, few, appended=1 << 23, new_stores=added)
    assert isinstance(found, Hit) if exact else found == {"AVG_NOT_EXACT"}


def test_bounds_of_stored_rows_are_not_those_of_their_tables() -> None:
    """Appended rows find others in the table that did not grow."""
    over = "SELECT city, stores.store FROM sales JOIN stores USING (store)"
    query = BY_CITY.replace("AVG(qty)", "AVG(stores.store)")
    known = {(STORES, "store"): (0, 1 << 28)}
    few = cache(over, rows=1 << 20, bounds=known, joins=(KEY,))
    assert isinstance(asked(query, few, appended=1 << 20), Hit)
    assert asked(query, few, appended=1 << 23) == {"AVG_NOT_EXACT"}


FACTS = "SELECT store, item, SUM(qty) AS q, COUNT(qty) AS k FROM sales GROUP BY store, item"


def test_a_table_joined_to_the_cache_by_its_key_repeats_no_row() -> None:
    assert asked(BY_CITY, cache(FACTS)) == {"AVG_NOT_EXACT"}
    known = MatchOptions(keys=(KEY,))
    assert isinstance(asked(BY_CITY, cache(FACTS), options=known), Hit)
    other = MatchOptions(keys=(replace(KEY, right="default.items"),))
    assert asked(BY_CITY, cache(FACTS), options=other) == {"AVG_NOT_EXACT"}
    twice = BY_CITY.replace("GROUP BY", "JOIN stores u ON u.city = note GROUP BY")
    twice = twice.replace("SELECT city, AVG", "SELECT stores.city, AVG").replace(
        "BY city", "BY stores.city"
    )
    over = FACTS.replace("store, item", "store, note")
    assert asked(twice, cache(over), options=known) == {"AVG_NOT_EXACT"}


@pytest.mark.parametrize(("version", "hit"), [(5, True), (4, False)])
def test_a_promised_key_is_looked_at(version: int, hit: bool) -> None:
    """It was found unique at this version; the query sees version 5."""
    promised = JoinRecord(
        name="j",
        definition="",
        left=JoinSide("sales", SALES, f"id-{SALES}"),
        right=JoinSide("stores", STORES, f"id-{STORES}"),
        keys=(("store", "store"),),
        state=JoinState.VALID,
        validated_versions={STORES: BaseState(f"id-{STORES}", version, f"txn:{version}", 50)},
    )
    options = MatchOptions(keys=(KEY,))
    found = asked(BY_CITY, cache(FACTS), options=options, promised=(promised,))
    assert isinstance(found, Hit) is hit


def test_the_reason_says_what_is_missing() -> None:
    def detail(query: str, one: ServedCache) -> str:
        found = outcome(query, one)
        assert not isinstance(found, Hit)
        (reason,) = found
        assert reason.suggestion == "REFRESH RELATIONAL CACHE c"
        return reason.detail

    told = detail(AVERAGE, cache(bounds={}))
    assert "c, and 7 rows in 1 file appended to sales after version 5, may" in told
    assert "2^53" in told
    assert "nobody counted the rows behind c" in detail(AVERAGE, cache(rows=None))
    assert "the tables that sales is joined to may repeat" in detail(BY_CITY, cache(JOINED))
