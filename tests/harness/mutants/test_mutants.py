"""The list of mutants that no test notices: it names no code that is gone, and explains each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.mutants.instrument import mutants
from tests.harness.mutants.run import listed, needs_fixtures


def test_the_list_names_guards_that_exist() -> None:
    gone = set(listed()) - {m.name for m in mutants()}
    assert not gone, gone


def test_each_survivor_is_explained() -> None:
    assert all(len(why.split()) > 3 for why in listed().values())


def test_each_guard_has_a_name_of_its_own() -> None:
    names = [m.name for m in mutants()]
    assert len(names) == len(set(names)) > 300


def test_a_test_runs_without_the_fixtures_that_all_tests_have(
    request: pytest.FixtureRequest,
) -> None:
    assert "logs_as_before" in request.node.fixturenames and not needs_fixtures(request.node)


def test_a_test_that_asks_for_a_fixture_does_not_run(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    assert needs_fixtures(request.node) and tmp_path.exists()
