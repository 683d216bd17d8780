"""Records what each test covers: the functions that run in it, in this process and in those that it
starts, by coverage.py's contexts.

Files among the tests that a module of theirs opens are noted for that module.

Only `make test-long` records, since it takes longer. What is common to a file's tests (a fixture of
its module) counts as covered by each of them; what is common to a process's (its Spark session), by
none.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import coverage
import pytest
from coverage import CoverageData

from tests.gate.functions import functions

ROOT = Path(__file__).parents[2]
PRODUCT = ("matcher", "cachemgr", "scheduler", "migrations")
FOLDER = ROOT / "build" / "gate"
RECORDED = FOLDER / "recorded"
_SETTINGS = Path(__file__).with_name("coveragerc")
_OTHERS = FOLDER / "processes"
_TESTS = f"{ROOT}/tests/"
_PYTHON = (".py", ".pyc")
_NOBODY = "-"


def unit(nodeid: str) -> str:
    """What a test is recorded as: its function, without the case."""
    return nodeid.partition("[")[0]


class Recorder:
    """The plugin of a process that runs tests."""

    def __init__(self) -> None:
        sources = [str(ROOT / package) for package in PRODUCT]
        self._coverage = coverage.Coverage(
            data_file=None, source=sources, config_file=False, messages=False
        )
        self._seconds: defaultdict[str, list[float]] = defaultdict(list)
        self._file = ""
        self._context = _NOBODY
        _OTHERS.mkdir(parents=True, exist_ok=True)
        RECORDED.mkdir(parents=True, exist_ok=True)
        os.environ["COVERAGE_PROCESS_START"] = str(_SETTINGS)
        os.environ["COVERAGE_FILE"] = str(_OTHERS / f"of-{os.getpid()}")
        self._opened: defaultdict[str, set[str]] = defaultdict(set)
        sys.addaudithook(self._hear)  # for as long as the process lives
        self._coverage.start()
        self._switch(_NOBODY)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, Any, Any]:
        """The whole of a test, its fixtures included."""
        self._file = item.nodeid.partition("::")[0]
        began = time.monotonic()
        self._switch(unit(item.nodeid))
        try:
            return (yield)
        finally:
            self._switch(_NOBODY)
            self._seconds[unit(item.nodeid)].append(time.monotonic() - began)
            if nextitem is None or not nextitem.nodeid.startswith(f"{self._file}::"):
                self._write()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
        """What several tests share is not what the first of them covers."""
        if fixturedef.scope == "function":
            return (yield)
        before = self._context
        self._switch(self._file if fixturedef.scope in ("module", "class") else _NOBODY)
        try:
            return (yield)
        finally:
            self._switch(before)

    def _hear(self, event: str, told: tuple[Any, ...]) -> None:
        """Note which of the tests' modules opens a file that lies among the tests."""
        if event != "open" or not isinstance(told[0], str | os.PathLike):
            return
        path = os.fspath(told[0])
        if not isinstance(path, str) or not path.startswith(_TESTS) or path.endswith(_PYTHON):
            return
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not frame.f_code.co_filename.startswith(_TESTS):
            frame = frame.f_back
        if frame is not None:
            self._opened[_relative(frame.f_code.co_filename)].add(_relative(path))

    def _switch(self, context: str) -> None:
        self._context = context
        self._coverage.switch_context(context)

    def _write(self) -> None:
        """Note the file's tests, and begin with nothing again."""
        self._coverage.stop()
        ran = _functions_run(self._coverage.get_data())
        for name, covered in _of_others(self._file):
            ran[name] |= covered
        shared = ran.pop(self._file, set())
        noted = {
            name: {
                "seconds": round(sum(seconds), 2),
                "cases": len(seconds),
                "covers": sorted(shared | ran.get(name, set())),
            }
            for name, seconds in self._seconds.items()
        }
        noted |= {
            module: {"seconds": 0, "cases": 1, "covers": sorted(paths)}
            for module, paths in self._opened.items()
        }
        path = RECORDED / (self._file.replace("/", ".") + f".{os.getpid()}.json")
        path.write_text(json.dumps(noted))
        self._seconds.clear()
        self._coverage.erase()
        self._coverage.start()
        self._switch(_NOBODY)


def _relative(path: str) -> str:
    return path.removeprefix(f"{ROOT}/")


def _functions_run(
    data: CoverageData, context: Callable[[str], str] = lambda context: context
) -> defaultdict[str, set[str]]:
    ran: defaultdict[str, set[str]] = defaultdict(set)
    for path in data.measured_files():
        if not Path(path).is_relative_to(ROOT):
            continue
        spans = _spans(path)
        for line, contexts in data.contexts_by_lineno(path).items():
            if line in spans:
                for each in contexts:
                    ran[context(each)].add(spans[line])
    ran.pop(_NOBODY, None)
    return ran


@cache
def _spans(path: str) -> dict[int, str]:
    """The function of each line in a function's body."""
    name = Path(path).relative_to(ROOT).as_posix()
    return {
        line: f"{name}:{each.name}"
        for each in functions(Path(path).read_text())
        if each.first
        for line in range(each.first, each.last + 1)
    }


def _of_others(file: str) -> Iterator[tuple[str, set[str]]]:
    """What processes noted that this one's tests have started."""
    for path in sorted(_OTHERS.glob(f"of-{os.getpid()}.*")):
        data = CoverageData(str(path))
        try:
            data.read()
            yield from _functions_run(data, lambda context: _starter(context, file)).items()
        except coverage.CoverageException:
            pass  # it was killed before it had written all
        data.close()
        path.unlink(missing_ok=True)


def _starter(context: str, file: str) -> str:
    """Who started a process, of pytest's words for a test's phase; what started in a fixture's
    setup serves all of the file."""
    name, _, phase = context.rpartition(" ")
    return unit(name) if phase == "(call)" else file


def merged(folder: Path = RECORDED) -> Iterable[tuple[str, dict[str, Any]]]:
    """All that runs have noted, a file's newest last."""
    for path in sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime):
        yield from json.loads(path.read_text()).items()
