"""Each `Noop -` case that names its guard: without it the case becomes a rewrite, and that rewrite
returns wrong rows (or other types, or another order, or raises) in Spark."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.harness.mutants.instrument import ROOT, mutants, place
from tests.matcher import spark_cases
from tests.matcher.case_inputs import case_inputs
from tests.matcher.fixture_cases import Case, load_all
from tests.proofs.plugin import Executed

CASES = [case for case in load_all() if case.all("guard")]


@pytest.fixture(scope="module")
def accepted() -> dict[str, list[dict]]:
    """What each case becomes without its guard, by case."""
    command = [sys.executable, "-m", "tests.harness.mutants.accept"]
    done = subprocess.run(command, cwd=ROOT.parent, capture_output=True, text=True, check=True)
    found: dict[str, list[dict]] = {case.id: [] for case in CASES}
    for row in json.loads(done.stdout):
        found[row["case"]].append(row)
    return found


def test_guards_are_places_in_the_matcher() -> None:
    places = {place(mutant) for mutant in mutants()}
    named = {part for case in CASES for guard in case.all("guard") for part in guard.split(" + ")}
    assert named <= places


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_without_its_guard_the_case_is_a_hit(case: Case, accepted: dict[str, list[dict]]) -> None:
    assert {row["guard"] for row in accepted[case.id]} == set(case.all("guard"))


@pytest.mark.spark
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_without_its_guard_rows_are_wrong(
    case: Case, accepted: dict[str, list[dict]], proofs: Executed
) -> None:
    guarded = [
        [(r["sql"], list(r["stored"].items())) for r in accepted[case.id] if r["guard"] == guard]
        for guard in case.all("guard")
    ]
    inputs = case_inputs(case, guarded=guarded)
    proofs.outcome(spark_cases.wrong_rows, inputs, "case_tables")
