"""Which of several caches answers after an append: one that may lag, or one beside which the
appended rows are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest

from cachemgr.base_state import BaseState
from cachemgr.metastore.records import JoinRecord, JoinSide
from cachemgr.serving import decide as deciding
from cachemgr.serving.decide import decide
from cachemgr.serving.decision import Decision, Hit
from cachemgr.serving.policy import Policy
from cachemgr.serving.seen_tables import SeenTables, TableRef
from cachemgr.serving.served_cache import ServedCache
from cachemgr.vocabulary import FreshnessKind, JoinState
from matcher.catalyst.reader import LocatedBlock
from matcher.examples import block_of
from matcher.model.ir import MatchOptions
from tests.serving.grown_sales import BY_STORE, SALES, STORES, cache, world

BY_ITEM = BY_STORE.replace("store", "store, item")
QUERY = "SELECT store, SUM(qty) AS q FROM sales GROUP BY store"
BY_ITEM_ASKED = "SELECT item, SUM(qty) AS q FROM sales GROUP BY item"
MANY_GROUPS = 1_000_000


@dataclass(frozen=True)
class Blocks:
    """Queries beside each other in one, as a UNION ALL has them."""

    queries: tuple[str, ...]

    def visit(self, visit: Callable[[LocatedBlock], bool], *, tails: bool) -> None:
        for number, query in enumerate(self.queries):
            visit(LocatedBlock((number,), block_of(query)))

    def tables_outside(self, hits: Sequence[Hit]) -> frozenset[str]:
        return frozenset() if len(hits) == len(self.queries) else frozenset({"sales"})


def strict() -> ServedCache:
    return cache(name="strict")


def lagging(groups: int = MANY_GROUPS, name: str = "lagging") -> ServedCache:
    found = cache(BY_ITEM, name=name)
    return replace(found, plan=replace(found.plan, rows=groups), freshness=FreshnessKind.UNLIMITED)


def refreshed(groups: int = MANY_GROUPS) -> ServedCache:
    """One that is up to date."""
    now = {SALES: BaseState(f"id-{SALES}", 6, "txn:6", 60)}
    found = lagging(groups, "refreshed")
    return replace(found, snapshot=found.snapshot | now, freshness=FreshnessKind.STRICT)


def asked(
    *caches: ServedCache, queries: tuple[str, ...] = (QUERY,), explain: bool = False, **how: int
) -> Decision:
    registry, eligibility = world(*caches, **how)
    return decide(Blocks(queries), registry, eligibility, MatchOptions(), explain=explain)


def answering(found: Decision) -> list[tuple[str, bool]]:
    """The caches that answer, and whether appended rows are read beside each."""
    return [(hit.cache.name, hit.appended is not None) for hit in found.hits]


@pytest.mark.parametrize("explain", [False, True])
@pytest.mark.parametrize("other", [lagging(), refreshed()])
def test_appended_rows_are_read_where_that_costs_less(other: ServedCache, explain: bool) -> None:
    found = asked(strict(), other, explain=explain)
    assert answering(found) == [("strict", True)] and found.is_exact


def test_explain_names_the_other_cache_as_valid() -> None:
    found = asked(strict(), lagging(), explain=True)
    assert [(c.cache, c.outcome) for c in found.candidates] == [
        ("strict", "chosen"),
        ("lagging", "valid"),
    ]


@pytest.mark.parametrize(
    ("other", "how"),
    [
        (lagging(groups=50_000), {}),  # it is no dearer than a table that has to be opened
        (refreshed(groups=50_000), {}),
        (lagging(), {"appended": 2_000_000}),
        (lagging(), {"size": 200_000_000}),
    ],
)
def test_noop_appended_rows_that_cost_more_than_another_cache(
    other: ServedCache, how: dict[str, int]
) -> None:
    assert answering(asked(strict(), other, **how)) == [(other.name, False)]


def test_noop_one_part_of_a_query_would_have_the_appended_rows_and_another_not() -> None:
    both = asked(strict(), lagging(), queries=(QUERY, BY_ITEM_ASKED))
    assert answering(both) == [("lagging", False), ("lagging", False)] and not both.is_exact


def test_beside_a_table_that_is_read_as_it_is_now() -> None:
    """The one that lags is out for another reason, and the appended rows are read at any cost."""
    found = asked(strict(), lagging(50_000), queries=(QUERY, "SELECT price FROM sales"))
    assert answering(found) == [("strict", True)]


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[Policy]:
    """The policies that are tried, in order."""
    policies: list[Policy] = []
    within = deciding._within_budget

    def noting(query, asked):
        policies.append(asked.policy)
        return within(query, asked)

    monkeypatch.setattr(deciding, "_within_budget", noting)
    return policies


PLAIN, ALONE, EXACT = Policy(), Policy(alone_first=True), Policy(exact_only=True)
LIVE = "SELECT price FROM sales"


@pytest.mark.parametrize(
    ("other", "queries", "policies"),
    [
        (lagging(), (QUERY,), [PLAIN]),
        (lagging(), (QUERY, BY_ITEM_ASKED), [PLAIN, ALONE]),
        # no appended rows are read in the first: to take none changes nothing
        (lagging(50_000), (QUERY, LIVE), [PLAIN, EXACT]),
        (lagging(), (QUERY, BY_ITEM_ASKED, LIVE), [PLAIN, ALONE, EXACT]),
    ],
)
def test_no_more_is_tried_than_may_help(
    tried: list[Policy], other: ServedCache, queries: tuple[str, ...], policies: list[Policy]
) -> None:
    asked(strict(), other, queries=queries)
    assert tried == policies


def up_to_date() -> ServedCache:
    one = strict()
    return replace(one, snapshot=one.snapshot | {SALES: state(SALES, 6)})


LEFT_OUT = "SELECT store, SUM(qty) AS q FROM sales JOIN stores USING (store) GROUP BY store"


def join(stores: int) -> JoinRecord:
    """One that was validated at a version of the stores and at the sales as they are now."""
    states = {SALES: state(SALES, 6), STORES: state(STORES, stores)}
    sides = [JoinSide(place, place, f"id-{place}") for place in (SALES, STORES)]
    return JoinRecord(
        "j", "", *sides, (("store", "store"),), state=JoinState.VALID, validated_versions=states
    )


def state(place: str, version: int) -> BaseState:
    return BaseState(f"id-{place}", version, f"txn:{version}", version * 10)


def unseen(looks: list[str]) -> SeenTables:
    """The tables before anybody looked at them; each look is noted."""

    def look() -> dict[str, BaseState]:
        looks.append("look")
        return {SALES: state(SALES, 6), STORES: state(STORES, 5)}

    refs = [
        TableRef(place, place, f"id-{place}", None, "delta", False, later=True)
        for place in (SALES, STORES)
    ]
    return SeenTables(refs, look)


@pytest.mark.parametrize(
    ("validated", "query", "policies", "looked"),
    [
        (5, LEFT_OUT, [Policy(promised=True)], True),
        (4, LEFT_OUT, [Policy(promised=True), PLAIN], True),
        (4, QUERY, [Policy(promised=True)], True),
        # no cache has it: nobody asks where its tables stand
        (4, "SELECT price FROM sales", [Policy(promised=True)], False),
    ],
)
def test_keys_are_promised_until_a_rewrite_relies_on_one(
    tried: list[Policy], validated: int, query: str, policies: list[Policy], looked: bool
) -> None:
    looks: list[str] = []
    registry, eligibility = world(up_to_date())
    eligibility.query = replace(eligibility.query, seen=unseen(looks), joins=(join(validated),))
    found = decide(Blocks((query,)), registry, eligibility, MatchOptions())
    assert tried == policies and bool(looks) is looked
    hits = [hit.rewrite for hit in found.hits]
    assert [bool(rewrite.left_out) for rewrite in hits] == [
        query == LEFT_OUT and validated == 5
    ] * len(hits)
    assert bool(hits) is looked


def test_where_the_tables_were_looked_at_nothing_is_promised(tried: list[Policy]) -> None:
    seen = unseen([])
    assert seen[SALES] and seen.are_looked_up
    registry, eligibility = world(up_to_date())
    eligibility.query = replace(eligibility.query, seen=seen, joins=(join(5),))
    found = decide(Blocks((LEFT_OUT,)), registry, eligibility, MatchOptions())
    assert tried == [PLAIN] and found.hits[0].rewrite.left_out
