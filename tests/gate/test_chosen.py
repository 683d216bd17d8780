"""Which tests a run has: what failed, the oldest shard, what is quick, what covers the change."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from tests.gate.choose import Item, Known, Tier, chosen
from tests.gate.covered import Covered

ORDER = [3, 2, 1]
NOTHING = Known(frozenset(), ORDER, {1: frozenset(), 2: frozenset(), 3: frozenset()}, {}, dict, 60)
LOCAL = "tests/harness/local/l.py::l"


def item(name: str, shard: int = 1, *, quick: bool = False, spark: bool = True) -> Item:
    return Item(name, name.partition("[")[0], shard, quick, spark)


def covers(*names: str, seconds: float = 1.0, cases: int = 1) -> Covered:
    return Covered(seconds, cases, frozenset(names))


def known(changed: set[str], record: dict[str, Covered] | None = None, **more: Any) -> Known:
    """The same changes since each shard passed."""
    imported = more.pop("imported", {})
    every = {shard: frozenset(changed) for shard in (1, 2, 3)}
    given = {"changes": every, "record": record or {}, **more}
    return replace(
        NOTHING, imported=lambda files: {f: imported.get(f, {f}) for f in files}, **given
    )


def tiers(tests: list[Item], what: Known) -> dict[str, str]:
    return {name: tier.name for name, tier in chosen(tests, what).items()}


def test_without_a_change_the_oldest_shard_runs_then_what_is_quick_then_the_rest() -> None:
    tests = [item("a.py::a"), item("b.py::b", 2), item("c.py::c", 3), item("q.py::q", quick=True)]
    found = tiers(tests, NOTHING)
    assert found == {"c.py::c": "FIRST", "q.py::q": "QUICK", "b.py::b": "MORE", "a.py::a": "MORE"}
    assert list(found) == ["c.py::c", "q.py::q", "b.py::b", "a.py::a"]


def test_what_failed_last_runs_first() -> None:
    tests = [item("a.py::a"), item("b.py::b", 2)]
    found = tiers(tests, replace(NOTHING, failed=frozenset({"a.py::a"})))
    assert list(found.items()) == [("a.py::a", "FIRST"), ("b.py::b", "MORE")]


def test_who_covers_the_changed_function_runs_and_who_does_not_waits() -> None:
    record = {"a.py::a": covers("matcher/x.py:f"), "b.py::b": covers("matcher/x.py:g")}
    tests = [item("b.py::b"), item("a.py::a")]
    found = tiers(tests, known({"matcher/x.py:f"}, record))
    assert found == {"a.py::a": "CHOSEN", "b.py::b": "MORE"}


def test_all_cases_of_a_test_count_as_one() -> None:
    record = {"a.py::a": covers("matcher/x.py:f", cases=2)}
    tests = [item("a.py::a[1]"), item("a.py::a[2]")]
    assert set(tiers(tests, known({"matcher/x.py:f"}, record)).values()) == {"CHOSEN"}


def test_a_change_since_its_own_shard_passed_counts() -> None:
    record = {"a.py::a": covers("matcher/x.py:f"), "b.py::b": covers("matcher/x.py:f")}
    changes = {1: frozenset[str](), 2: frozenset({"matcher/x.py:f"}), 3: frozenset[str]()}
    found = tiers([item("a.py::a", 1), item("b.py::b", 2)], known(set(), record, changes=changes))
    assert found == {"b.py::b": "CHOSEN", "a.py::a": "MORE"}


def test_what_is_not_committed_counts_for_all() -> None:
    record = {"a.py::a": covers("matcher/x.py:f")}
    changes = {0: frozenset({"matcher/x.py:f"})}
    assert tiers([item("a.py::a")], known(set(), record, changes=changes)) == {"a.py::a": "CHOSEN"}


def test_without_time_what_covers_a_change_is_left_out_the_least_worth_first() -> None:
    record = {
        "a.py::dear": covers("matcher/x.py:f", seconds=50),
        "b.py::cheap": covers("matcher/x.py:f", seconds=5),
        "c.py::other": covers("matcher/x.py:g", seconds=5),
        "d.py::second": covers("matcher/x.py:f", seconds=6),
    }
    tests = [item(name) for name in record]
    found = tiers(tests, known({"matcher/x.py:f", "matcher/x.py:g"}, record, seconds=16))
    left = {name for name, tier in found.items() if tier == "LEFT"}
    assert left == {"a.py::dear", "d.py::second"}, (
        "each function is covered once before any is twice"
    )


def test_what_few_cover_comes_before_what_all_cover() -> None:
    record = {f"a.py::{n}": covers("matcher/x.py:hot", seconds=5) for n in range(9)}
    record["b.py::rare"] = covers("matcher/x.py:cold", seconds=5)
    tests = [item(name) for name in record]
    found = tiers(tests, known({"matcher/x.py:hot", "matcher/x.py:cold"}, record, seconds=8))
    assert found["b.py::rare"] == "CHOSEN"


@pytest.mark.parametrize(
    ("changed", "runs"),
    [
        ("matcher/x.py:", {"a.py::a"}),  # a constant: who runs any function there
        ("matcher/x.py:new", {"a.py::a"}),  # a function that no record knows
        ("matcher/y.py:", {"b.py::b"}),  # nothing there was ever run: who imports it
        ("matcher/z.py:f", {"n.py::new"}),  # a test without a record: what it imports
        ("tests/helper.py:give", {"b.py::b"}),
        ("tests/rows.sql", {"b.py::b"}),  # which a module opens that it imports
        ("b.py:test_other", set[str]()),
        ("b.py:b", {"b.py::b"}),
        ("b.py:helper", {"b.py::b"}),
        ("cachemgr/jvm/java/Hook.java", {"tests/spark/s.py::s"}),
        ("cachemgr/jvm/java/local/Rows.java", {LOCAL}),
        ("docs/page.md", set[str]()),
        ("pyproject.toml", {"a.py::a", "b.py::b", "n.py::new", "tests/spark/s.py::s", LOCAL}),
    ],
)
def test_what_sees_a_change(changed: str, runs: set[str]) -> None:
    record = {
        "a.py::a": covers("matcher/x.py:f"),
        "b.py::b": covers("matcher/w.py:f"),
        "tests/spark/s.py::s": covers("matcher/w.py:f"),
        "tests/helper.py": covers("tests/rows.sql"),
    }
    imported = {
        "a.py": {"a.py", "matcher/x.py"},
        "b.py": {"b.py", "tests/helper.py", "matcher/x.py", "matcher/y.py"},
        "n.py": {"n.py", "matcher/z.py"},
    }
    names = ("a.py::a", "b.py::b", "n.py::new", "tests/spark/s.py::s", LOCAL)
    tests = [item(name) for name in names]
    found = tiers(tests, known({changed}, record, imported=imported))
    assert {name for name, tier in found.items() if tier == "CHOSEN"} == runs


def test_a_shard_that_never_passed_is_not_all_changed_and_runs_first_of_the_rest() -> None:
    record = {"a.py::a": covers("matcher/x.py:f"), "b.py::b": covers("matcher/x.py:g")}
    changes = {3: frozenset({"matcher/x.py:g"}), 2: frozenset({"matcher/x.py:g"})}
    what = known(set(), record, changes=changes, oldest_first=[3, 1, 2])
    found = tiers([item("a.py::a", 1), item("b.py::b", 2)], what)
    assert found == {"b.py::b": "CHOSEN", "a.py::a": "MORE"}


def test_quick_tests_that_cost_nothing_are_never_left_out() -> None:
    tests = [item(f"q.py::{n}", quick=True) for n in range(10_000)]
    assert set(chosen(tests, replace(NOTHING, seconds=1)).values()) == {Tier.QUICK}


def test_quick_tests_run_before_slower_ones_which_may_take_longer_than_was_known() -> None:
    record = {"a.py::a": covers("matcher/x.py:f")}
    tests = [item("a.py::a"), item("q.py::q", quick=True)]
    assert list(tiers(tests, known({"matcher/x.py:f"}, record)).items()) == [
        ("q.py::q", "QUICK"), ("a.py::a", "CHOSEN"),
    ]  # fmt: skip


def test_a_change_of_java_takes_a_test_of_each_file_before_the_second_of_any() -> None:
    few = [item(f"tests/jvm/cheap.py::t{number}") for number in range(20)]
    tests = [*few, item("tests/doors/dear.py::t")]
    record = {each.unit: covers("matcher/w.py:f") for each in few}
    record["tests/doors/dear.py::t"] = covers("matcher/w.py:f", seconds=40)
    changed = known({"cachemgr/jvm/java/Hook.java"}, record)
    enough = replace(changed, seconds=50)
    assert tiers(tests, enough)["tests/doors/dear.py::t"] == "CHOSEN"


def test_all_processes_choose_alike() -> None:
    """The names that a test covers are a set, whose order is another in each process."""
    found = {
        subprocess.run(
            [sys.executable, "-c", _CHOOSES],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "123456"
    }
    assert len(found) == 1 and "CHOSEN" in found.pop()


# The same twice under other names: what is worth the same must be so whatever is added first.
_CHOOSES = """
import random
from tests.gate.choose import chosen
from tests.gate.test_chosen import covers, item, known
dice = random.Random(1)
picked = [dice.sample(range(60), 25 + i % 7) for i in range(120)]
record = {
    f"{half}{i}.py::t": covers(*(f"matcher/{half}.py:f{n}" for n in numbers))
    for half in "xy"
    for i, numbers in enumerate(picked)
}
changed = {name for each in record.values() for name in each.covers}
found = chosen([item(name) for name in record], known(changed, record))
print([(name, tier.name) for name, tier in found.items()])
"""
