"""The list of mutants that no test notices: it names no code that is gone, and explains each."""

from __future__ import annotations

from tests.harness.mutants.instrument import mutants
from tests.harness.mutants.run import listed


def test_the_list_names_guards_that_exist() -> None:
    gone = set(listed()) - {m.name for m in mutants()}
    assert not gone, gone


def test_each_survivor_is_explained() -> None:
    assert all(len(why.split()) > 3 for why in listed().values())


def test_each_guard_has_a_name_of_its_own() -> None:
    names = [m.name for m in mutants()]
    assert len(names) == len(set(names)) > 300
