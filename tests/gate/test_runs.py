"""Whole runs of pytest, in a small project with a git of its own: what runs, what is written."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gate import covered, ledger
from tests.gate.ledger import SHARDS, shard_of
from tests.gate.recording import PRODUCT, ROOT
from tests.gate.test_ledger import git

pytestmark = pytest.mark.slow

CONFTEST = """
import pytest
from tests.gate import plugin as gate


def pytest_addoption(parser):
    gate.add_options(parser)


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: not quick")
    config.addinivalue_line("markers", "long: minutes")
    gate.configure(config)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config, items):
    yield
    gate.choose_items(config, items, lambda nodeid: nodeid.partition("::")[0])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    return gate.is_out_of_time(item, nextitem) or None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return gate.scopes(config, log)


def pytest_sessionfinish(session):
    gate.send(session.config)
"""
# a module each, whose function a test each runs; the fixture is made once for both tests
MODULE = "def double(n):\n    return n * 2\n"
TESTS = """
import subprocess
import sys

import pytest

from matcher.{name} import double

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def four():
    value = double(2)
    yield value


def test_one(four):
    assert four == 4


def test_two(four):
    assert four == 4


def test_alone():
    done = subprocess.run([sys.executable, "-c", "from cachemgr.{name} import double; double(3)"])
    assert done.returncode == 0
"""
NAMES = ("a", "b", "c")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for package in PRODUCT:
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("")
    shutil.copytree(ROOT / "tests" / "gate", tmp_path / "tests" / "gate")
    shutil.copy(ROOT / "cachemgr" / "sparks.py", tmp_path / "cachemgr")  # which the gate imports
    for copied in (tmp_path / "tests" / "gate").glob("test_*.py"):
        copied.unlink()
    (tmp_path / "tests" / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = tests\npythonpath = .\n")
    (tmp_path / ".gitignore").write_text("build/\n__pycache__/\n.pytest_cache/\n.coverage*\n")
    for name in NAMES:
        (tmp_path / "matcher" / f"{name}.py").write_text(MODULE)
        (tmp_path / "cachemgr" / f"{name}.py").write_text(MODULE)
        (tmp_path / "tests" / f"test_{name}.py").write_text(TESTS.format(name=name))
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    return tmp_path


def commit(project: Path) -> None:
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "more")


def run(project: Path, *options: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(project)}
    for name in ("PYTEST_XDIST_WORKER", "COVERAGE_PROCESS_START", "COVERAGE_FILE"):
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", *options],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert "INTERNALERROR" not in done.stdout + done.stderr, done.stdout + done.stderr
    return done.stdout


def ran(printed: str) -> set[str]:
    return set(re.findall(r"(tests/test_\w+\.py::\w+)", printed))


def of(project: Path) -> ledger.Ledger:
    return ledger.read(project / "tests" / "passed.txt")


def all_of(*names: str) -> set[str]:
    return {f"tests/test_{n}.py::test_{t}" for n in names for t in ("one", "two", "alone")}


@pytest.mark.parametrize("processes", [(), ("-n", "2")])
def test_a_run_of_all_records_and_notes_each_shard(
    project: Path, processes: tuple[str, ...]
) -> None:
    printed = run(project, "--shard=all", "--record", *processes)
    assert ran(printed) == all_of(*NAMES), printed
    shards = {shard_of(f"tests/test_{name}.py") for name in NAMES}
    assert of(project).keys() == shards
    assert sum(each.tests for each in of(project).values()) == 9
    assert {each.commit for each in of(project).values()} == {git(project, "rev-parse", "HEAD")}
    record = covered.read(project / "tests" / "covered.txt")
    assert record["tests/test_a.py::test_one"].covers == {"matcher/a.py:double"}
    assert record["tests/test_a.py::test_two"].covers == {"matcher/a.py:double"}, "shared"
    alone = record["tests/test_a.py::test_alone"].covers
    assert "cachemgr/a.py:double" in alone, "a process that a test starts"


def test_a_run_goes_on_where_one_was_ended(project: Path) -> None:
    fault = project / "matcher" / "b.py"
    fault.write_text(MODULE.replace("* 2", "* 3"))
    commit(project)
    printed = run(project, "--shard=all")
    assert "4 failed" not in printed and "2 failed, 7 passed" in printed
    assert shard_of("tests/test_b.py") not in of(project)
    printed = run(project, "--shard=all")
    assert ran(printed) == {"tests/test_b.py::test_one", "tests/test_b.py::test_two"}
    fault.write_text(MODULE)
    printed = run(project, "--shard=all")
    assert "7 deselected" not in printed, "files are changed: nothing is taken for passed"
    commit(project)
    assert ran(run(project, "--shard=all")) == all_of(*NAMES), "another commit"
    assert len(of(project)) == len({shard_of(f"tests/test_{name}.py") for name in NAMES})


def test_the_tests_of_a_change_run_first_and_the_oldest_shard_with_them(project: Path) -> None:
    run(project, "--shard=all", "--record")
    commit(project)
    # each shard that no test is in has never passed
    ledger.write(
        (
            ledger.Passed(n, git(project, "rev-parse", "HEAD~1"), each.day, 1, 1)
            for n in range(1, SHARDS + 1)
            for each in list(of(project).values())[:1]
        ),
        project / "tests" / "passed.txt",
    )
    commit(project)
    (project / "cachemgr" / "b.py").write_text(MODULE.replace("n * 2", "2 * n"))
    printed = run(project, "--choose", "--seconds=60", "-n", "1")
    assert ran(printed) == all_of(*NAMES), "there is time for all"
    first = re.search(r"tests/test_\w+\.py::\w+", printed)
    assert first is not None and first[0] == "tests/test_b.py::test_alone", printed
    assert "every test that covers a change has run" in printed
    printed = run(project, "--choose", "--seconds=0")
    assert ran(printed) == set(), printed
    assert "left out, though they cover a change: 1 tests in 1 files; make test-left" in printed
    assert ran(run(project, "--left")) == {"tests/test_b.py::test_alone"}


def test_time_ends_between_tests_that_share_a_fixture(project: Path) -> None:
    text = TESTS.format(name="a").replace("    assert four == 4\n\n\ndef test_two", (
        "    import time; time.sleep(3)\n    assert four == 4\n\n\ndef test_two"
    ))  # fmt: skip
    text = text.replace("    yield value\n", "    yield value\n    open('ended', 'w').close()\n")
    (project / "tests" / "test_a.py").write_text(text)
    for name in ("b", "c"):
        (project / "tests" / f"test_{name}.py").unlink()
    commit(project)
    printed = run(project, "--choose", "--seconds=1", "-n", "1")
    assert ran(printed) <= {"tests/test_a.py::test_one"}, printed
    assert (project / "ended").exists() == bool(ran(printed))


def test_tests_of_minutes_are_left_to_a_run_of_all(project: Path) -> None:
    text = TESTS.format(name="a").replace("def test_alone", "@pytest.mark.long\ndef test_alone")
    (project / "tests" / "test_a.py").write_text(text)
    commit(project)
    assert ran(run(project, "--choose", "--seconds=60")) == all_of(*NAMES) - {
        "tests/test_a.py::test_alone"
    }
    assert "tests/test_a.py::test_alone" in ran(run(project, "--shard=all"))


def test_a_part_of_a_shard_is_not_noted(project: Path) -> None:
    assert "9 passed" in run(project, "--shard=all", "-k", "test") and not of(project)
    run(project, "--shard=all", "tests/test_a.py")
    assert not of(project)


def test_a_test_with_another_name_is_one_that_nobody_knows(project: Path) -> None:
    run(project, "--shard=all", "--record")
    commit(project)
    (project / "tests" / "test_a.py").rename(project / "tests" / "test_z.py")
    assert all_of("z") <= ran(run(project, "--choose", "--seconds=60"))


@pytest.mark.parametrize("wrong", ["25/24", "0/24", "7", "7/12", "some"])
def test_a_shard_that_there_is_not(project: Path, wrong: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", f"--shard={wrong}"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project)},
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert f"--shard={wrong}: name one of 1/24 to 24/24, or all" in done.stdout + done.stderr
