"""A ledger that says what is not so is found out, by its shard or by a run of all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gate.ledger import SHARDS, shard_of
from tests.matcher import spark_cases
from tests.matcher.spark_cases import Tables
from tests.proofs import keys, ledger
from tests.proofs.plugin import Executed, ProofDiffers, Run

NOTHING: dict[str, Any] = {"schemas": [], "tables": [], "real": [], "views": []}
RIGHT = {
    "conf": [],
    "shared": NOTHING,
    "own": {**NOTHING, "tables": [("numbers", "SELECT * FROM VALUES (1L), (5L) AS v(k)")]},
    "query": "SELECT SUM(k) AS n FROM numbers",
    "rewritten": "SELECT n FROM added",
    "stored": [("added", "SELECT SUM(k) AS n FROM numbers")],
    "ordered": False,
}
WRONG = {**RIGHT, "rewritten": "SELECT COUNT(k) AS n FROM numbers"}


def claimed(inputs: Any, every: bool = False, shards: tuple[int, ...] = ()) -> Run:
    """A run whose ledger has a proof of the inputs that nobody has made."""
    return Run(ledger.Proofs({keys.key(spark_cases.same_rows, inputs): "f" * 32}), every, shards)


def judged(run: Run, inputs: Any, tables: Any) -> str:
    return Executed(run, lambda name: tables).outcome(spark_cases.same_rows, inputs, "case_tables")


@pytest.mark.spark
@pytest.mark.parametrize(("inputs", "says"), [(WRONG, AssertionError), (RIGHT, ProofDiffers)])
def test_a_false_proof_is_found_with_its_shard(
    inputs: Any, says: type[Exception], case_tables: Tables
) -> None:
    found = 0
    for shard in range(1, SHARDS + 1):
        run = claimed(inputs, shards=(shard,))
        if run.is_due(keys.key(spark_cases.same_rows, inputs)):
            with pytest.raises(says):
                judged(run, inputs, case_tables)
            assert not run.found.outcomes
            found += 1
        else:
            assert judged(run, inputs, None) == "f" * 32  # no Spark, no tables
    assert found == 1


@pytest.mark.spark
@pytest.mark.parametrize(("inputs", "says"), [(WRONG, AssertionError), (RIGHT, ProofDiffers)])
def test_a_run_of_all_finds_each_false_proof(
    inputs: Any, says: type[Exception], case_tables: Tables
) -> None:
    with pytest.raises(says):
        judged(claimed(inputs, every=True), inputs, case_tables)


@pytest.mark.spark
def test_what_is_not_known_is_executed_and_only_what_is_right_is_noted(
    case_tables: Tables,
) -> None:
    run = Run(ledger.Proofs(), every=False)
    outcome = judged(run, RIGHT, case_tables)
    assert run.found.outcomes == {keys.key(spark_cases.same_rows, RIGHT): outcome}
    with pytest.raises(AssertionError):
        judged(run, WRONG, case_tables)
    assert len(run.found.outcomes) == 1
    again = Run(run.found, every=True)
    assert judged(again, RIGHT, case_tables) == outcome


def test_rows_that_are_others_are_another_outcome(case_tables: Tables) -> None:
    more = [("numbers", "SELECT * FROM VALUES (1L), (6L) AS v(k)")]
    other = {**RIGHT, "own": {**NOTHING, "tables": more}}
    run = Run(ledger.Proofs(), every=False)
    assert judged(run, RIGHT, case_tables) != judged(run, other, case_tables)


def text_of(run: Run, said: str, *, lasts: bool = True) -> str:
    executed = Executed(run, lambda name: said)
    return executed.text(lambda place, inputs: place, [], "said", lasts=lasts)


def test_a_text_is_read_again_or_made_again() -> None:
    run = Run(ledger.Proofs(), every=False)
    assert text_of(run, "plan") == "plan"
    (key,) = run.asked
    known = Run(run.found, shards=(shard_of(key) % SHARDS + 1,))
    assert text_of(known, "another plan") == "plan" and not known.executed
    with pytest.raises(ProofDiffers):
        text_of(Run(run.found, every=True), "another plan")
    lost = Run(ledger.Proofs(run.found.outcomes), every=False)
    assert text_of(lost, "plan") == "plan" and lost.executed


def test_a_text_that_does_not_last_is_made_in_every_run() -> None:
    run = Run(ledger.Proofs(), every=False)
    assert text_of(run, "9 o'clock", lasts=False) == "9 o'clock"
    assert text_of(run, "10 o'clock", lasts=False) == "10 o'clock"
    assert not run.asked and not run.found.outcomes


CONFTEST = """
from pathlib import Path
from tests.proofs import plugin
plugin.FOLDER = Path(__file__).parent
from tests.proofs.plugin import proofs


def pytest_addoption(parser):
    plugin.add_options(parser)


def pytest_configure(config):
    plugin.configure(config, ())
"""
MODULE = """
import pytest
from pathlib import Path
@pytest.fixture
def place():
    return "right"
def judge(place, inputs):
    assert inputs != 7 or not Path("seven is wrong").exists()
    return place
@pytest.mark.parametrize("number", range(12))
def test_number(number, proofs):
    assert proofs.outcome(judge, number, "place") == "right"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_numbers.py").write_text(MODULE)
    return tmp_path


def run_in(project: Path, *options: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "xdist", "-q", *options],
        cwd=project,
        # without plugins, of which some take a second to import
        env={
            **os.environ,
            "PYTHONPATH": str(keys.ROOT),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        capture_output=True,
        text=True,
    )
    return done.stdout


@pytest.mark.slow
def test_a_ledger_from_several_processes_to_a_run_of_all(project: Path) -> None:
    file, fault = project / ledger.LEDGER, project / "seven is wrong"
    run_in(project, "-k", "not 7")
    assert not file.exists(), "only when asked"

    ledger.add(ledger.Proofs({"0" * 32: "right"}), folder=project)
    fault.touch()
    said = run_in(project, "-n", "2", "--write-proofs", "--forget-proofs")
    assert "proofs: 12 asked for, 11 executed, 11 of them new" in said and "1 failed" in said
    outcomes = list(ledger.read(project).outcomes.values())
    assert outcomes == ["right"] * 12, "a run that fails forgets nothing"

    fault.unlink()
    said = run_in(project, "-n", "2", "-k", "not 3", "--write-proofs", "--forget-proofs")
    assert "11 passed" in said and "11 executed" not in said
    assert len(ledger.read(project).outcomes) == 13, "one that leaves tests out neither"

    assert "12 passed" in run_in(project, "--write-proofs", "--forget-proofs")
    assert len(ledger.read(project).outcomes) == 12

    file.write_text(file.read_text().replace(" right", " left", 1))
    before = file.read_text()
    said = run_in(project, "--execute-proofs")
    assert "1 failed, 11 passed" in said and "ProofDiffers" in said
    assert file.read_text() == before
