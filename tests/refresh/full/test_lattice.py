"""Which sets are built from which: every stored set once, and only from an ancestor that holds its
keys.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachemgr.refresh.full.lattice import (
    estimate_groups,
    grouping_id,
    helper_candidates,
    plan_lattice,
    why_not_rolled_up,
)
from cachemgr.refresh.full.layout import plan_layout, split_points
from matcher.model.expr import Agg, Col, Lit
from matcher.model.ir import CachePlan, GroupingSet, Measure, StoredColumn

A, B, C = (Col(0, n, "string") for n in "abc")


def plan_with(*aggs: Agg) -> CachePlan:
    keys = tuple(StoredColumn(n, Col(0, n, "string")) for n in "abc")
    measures = tuple(Measure(f"m{i}", a) for i, a in enumerate(aggs))
    return CachePlan("c", (), (), keys, measures)


def test_small_sets_come_from_the_smallest_use_of_the_base() -> None:
    sets = [(0, 1, 2), (0, 1), (0,), (1,)]
    estimates = {frozenset(s): 10.0 ** len(s) for s in sets}
    lattice = plan_lattice(sets, estimates, 1e6)
    assert lattice.base == () and len(lattice.families) == 1
    assert lattice.families[0].keys == (0, 1, 2) and lattice.families[0].stored
    assert lattice.source_of((0,)) == "ancestor of keys (0, 1, 2)"


def test_noop_a_set_as_large_as_the_base_is_no_ancestor() -> None:
    sets = [(0, 1), (0,)]
    lattice = plan_lattice(sets, {frozenset(s): 9e5 for s in sets}, 1e6)
    assert lattice.families == () and lattice.base == tuple(sets)


def test_noop_one_child_does_not_pay_for_a_pass() -> None:
    sets = [(0, 1), (0,), (2,)]
    estimates = {frozenset((0, 1)): 100.0, frozenset((0,)): 10.0, frozenset((2,)): 9e5}
    assert plan_lattice(sets, estimates, 1e6).families == ()


def test_a_helper_that_is_not_stored_serves_sets_without_a_common_ancestor() -> None:
    sets = [(0,), (1,), (2,), (0, 1)]
    estimates = {frozenset(s): 50.0 for s in sets} | {frozenset((0, 1, 2)): 1000.0}
    lattice = plan_lattice(sets, estimates, 1e6)
    assert [(f.keys, f.stored) for f in lattice.families] == [((0, 1, 2), False)]
    assert set(lattice.families[0].children) == set(sets)
    assert "helper" in lattice.source_of((2,))


def test_a_set_comes_from_the_smallest_ancestor_that_has_its_keys() -> None:
    """Those of (1, 2) come from it and not from (0, 1, 2), which is chosen first."""
    sets = [tuple(s) for n in range(4) for s in combinations(range(3), n)]
    estimates = {frozenset(s): 3e5 if 0 in s else 10.0 for s in sets}
    lattice = plan_lattice(sets, estimates, 1e6)
    found = {f.keys: set(f.children) for f in lattice.families}
    assert found[(1, 2)] == {(1,), (2,), ()}
    assert found[(0, 1, 2)] == {(0, 1), (0, 2), (0,)} and lattice.base == ()


def test_noop_an_ancestor_whose_sets_others_take_is_none() -> None:
    """(0, 1, 2) saves most at first; of what (0, 1) and (0, 2) leave it has nothing to give."""
    sets = [(0, 1, 2), (0, 1), (0, 2), (0,), (1,), (2,), ()]
    estimates = {frozenset(s): 1.0 for s in sets} | {frozenset((0, 1, 2)): 4.9e5}
    lattice = plan_lattice(sets, estimates, 1e6)
    families = {f.keys for f in lattice.families}
    assert families <= {(0, 1), (0, 2)} and (0, 1, 2) in lattice.base


def test_noop_an_ancestor_that_saves_less_than_it_takes_to_run_is_none() -> None:
    sets = [tuple(s) for n in range(5) for s in combinations(range(4), n)] + [(4, 5), (4,)]
    estimates = {frozenset(s): 10.0 for s in sets} | {frozenset((4, 5)): 2e5}
    both, one = (plan_lattice(sets, estimates, 1e6, least_saved=n) for n in (0, 1e7))
    assert {f.keys for f in both.families} == {(0, 1, 2, 3), (4, 5)}
    assert {f.keys for f in one.families} == {(0, 1, 2, 3)} and one.base == ((4, 5), (4,))


@given(st.data())
def test_no_ancestor_could_be_left_out(data: st.DataObject) -> None:
    """What is saved is what is told, and an ancestor less saves no more."""
    sets = [tuple(s) for n in range(5) for s in combinations(range(4), n)]
    rows = {frozenset(s): data.draw(st.floats(1, 6e5)) for s in sets}
    lattice = plan_lattice(sets, rows, 1e6)

    def cost(ancestors: list[frozenset[int]]) -> float:
        above = {s: [rows[a] for a in ancestors if frozenset(s) < a] for s in sets}
        own = [min([1e6, *above[s]]) for s in sets if frozenset(s) not in ancestors]
        return sum(own) + sum(1e6 + 2 * rows[a] for a in ancestors)

    chosen = [frozenset(f.keys) for f in lattice.families]
    for ancestor in chosen:
        assert cost([a for a in chosen if a != ancestor]) > cost(chosen) - 1
    if chosen:
        saved = len(sets) * 1e6 - cost(chosen) - (4e6 if lattice.base else 0)
        assert lattice.reason == f"saves about {saved:.0f} row aggregations"


key_sets = st.lists(
    st.frozensets(st.integers(0, 5), max_size=4), min_size=1, max_size=10, unique=True
)


@given(key_sets, st.data())
def test_every_set_is_built_once_from_keys_that_contain_it(
    sets: list[frozenset[int]], data: st.DataObject
) -> None:
    ordered = [tuple(sorted(s)) for s in sets]
    size = st.floats(1, 2e6)
    estimates = {s: data.draw(size) for s in sets}
    helpers = helper_candidates(ordered, estimates, 1e6)
    assert not set(helpers) & set(sets)
    estimates |= {h: data.draw(size) for h in helpers}
    lattice = plan_lattice(ordered, estimates, 1e6)
    built = [*lattice.base]
    for family in lattice.families:
        built += [*family.children, *([family.keys] if family.stored else [])]
        assert all(set(child) <= set(family.keys) for child in family.children)
    assert sorted(built) == sorted(ordered)


@pytest.mark.parametrize(
    ("agg", "problem"),
    [
        (Agg("sum", (Col(0, "v", "bigint"),), "bigint"), None),
        (Agg("sum", (Col(0, "v", "decimal(28,2)"),), "decimal(38,2)"), None),
        (Agg("count", (), "bigint"), None),
        (Agg("min", (Col(0, "v", "double"),), "double"), None),
        (Agg("sum", (Col(0, "v", "decimal(29,2)"),), "decimal(38,2)"), "another order"),
        (Agg("sum", (Col(0, "v", "double"),), "double"), "another order"),
        (Agg("avg", (Col(0, "v", "bigint"),), "double"), "avg does not roll up"),
        (Agg("count", (A,), "bigint", distinct=True), "DISTINCT"),
        (Agg("count", (A,), "bigint", filter=Lit(True, "boolean")), None),
        (Agg("bit_xor", (Col(0, "v", "bigint"),), "bigint"), None),
    ],
)
def test_which_measures_roll_up(agg: Agg, problem: str | None) -> None:
    found = why_not_rolled_up(plan_with(agg))
    assert found is None if problem is None else found is not None and problem in found


def test_estimates_are_bounded_by_what_was_seen_and_by_the_base() -> None:
    assert round(estimate_groups(40, 0, 0.01, 1e6)) == 40
    assert estimate_groups(0, 0, 0.01, 1e6) == 0
    assert estimate_groups(9000, 9000, 0.0001, 1e5) == 1e5
    assert estimate_groups(77, 70, 1.0, 100) == 77


def test_grouping_id_counts_the_absent_keys() -> None:
    assert grouping_id((), 3) == 7 and grouping_id((0, 1, 2), 3) == 0
    assert grouping_id((1, 2), 3) == 4


def test_large_sets_are_split_small_ones_are_one_file() -> None:
    sets = (GroupingSet(0, (0, 1, 2)), GroupingSet(3, (0,)), GroupingSet(7, ()))
    plan = replace(plan_with(), grouping_sets=sets)
    values = [(f"v{i:02}", 10) for i in range(50)]
    layout = plan_layout(
        plan, {(0, 1, 2): 8e6, (0,): 50.0, (): 1.0}, {0: 5, 1: 50, 2: 9}, lambda key: values
    )
    assert layout.order == (1,)
    large = layout.splits[0]
    assert large.key == 1 and len(large.bounds) == 8
    assert layout.splits[3] == layout.splits[7], "small sets share a partition"
    assert layout.partitions == large.first + 9


def test_split_points() -> None:
    assert split_points([], 4) == () and split_points([("a", 100)], 4) == ()
    assert split_points([("a", 97), ("b", 1), ("c", 1), ("d", 1)], 4) == ("b",)
    assert split_points([(i, 1) for i in range(8)], 4) == (2, 4, 6)
