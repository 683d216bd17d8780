"""`make mutants`: switch off each guard of the matcher, one at a time, and see which test notices.

The matcher's tests are run once to learn which guards refuse in which tests; a mutant can only be
noticed by those. One that no test notices survives, and must stand in survivors.md with the reason
why it changes nothing.
"""

from __future__ import annotations

import contextlib
import io
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.instrument import STATE, Mutant, install

LIST = Path(__file__).parent / "survivors.md"
MOST = 0.02
_SECONDS = 20
_MOST_TESTS = 12
_TESTS = ("tests/matcher", "tests/mutants/test_remembered.py")
_OPTIONS = ("-q", "-x", "--no-header", "-p", "no:cacheprovider", "-m", "not spark")


class Hangs(Exception):
    """A mutant that does not come to an end is noticed."""


class _Reached:
    """A pytest plugin: which guards refused in which test, and an end to what hangs."""

    def __init__(self) -> None:
        self.by_guard: dict[int, list[str]] = defaultdict(list)
        self.failed = ""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        from cachemgr import offline

        offline._prepare.cache_clear()
        STATE.refused.clear()
        with limited():
            yield
        for number in STATE.refused:
            self.by_guard[number].append(item.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid


def run(found: list[Mutant]) -> list[Mutant]:
    """The mutants that no test notices."""
    signal.signal(signal.SIGALRM, _stop)
    first = _Reached()
    if _pytest(_TESTS, first):
        raise SystemExit(f"{first.failed} fails without any mutant")
    noticed: set[int] = set()
    for mutant in found:
        tests = first.by_guard.get(mutant.number)
        if not tests:
            continue
        STATE.off = mutant.number
        plugin = _Reached()
        failed = _pytest(tuple(tests[:_MOST_TESTS]), plugin)
        if not failed and len(tests) > _MOST_TESTS:
            failed = _pytest(tuple(tests[_MOST_TESTS:]), plugin)
        STATE.off = -1
        if failed:
            noticed.add(mutant.number)
    survivors = [m for m in found if m.number not in noticed]
    for mutant in survivors:
        print(len(first.by_guard.get(mutant.number, ())), "tests reach", mutant.name)
    return survivors


def _pytest(tests: tuple[str, ...], plugin: _Reached) -> bool:
    with contextlib.redirect_stdout(io.StringIO()):
        return bool(pytest.main([*_OPTIONS, *tests], plugins=[plugin]))


def _stop(number: int, frame: Any) -> None:
    raise Hangs


@contextmanager
def limited() -> Iterator[None]:
    """Ends what takes too long."""
    if STATE.off >= 0:
        signal.alarm(_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)


def listed() -> dict[str, str]:
    """The survivors that survivors.md explains: name to reason."""
    lines = LIST.read_text().splitlines() if LIST.exists() else []
    rows = [line.removeprefix("- `").split("` — ", 1) for line in lines if line.startswith("- `")]
    return {name: why for name, why in rows}


def main() -> int:
    """Print the survivors; 1 if there are too many, or one that is not explained."""
    started = time.monotonic()
    found = install()
    survivors = run(found)
    share = len(survivors) / len(found)
    known = listed()
    new = [m for m in survivors if m.name not in known]
    gone = set(known) - {m.name for m in survivors}
    for mutant in survivors:
        print("survives" if mutant in new else "explained", f"{mutant.name} (line {mutant.line})")
    for name in sorted(gone):
        print("noticed after all, take it off the list:", name)
    took = time.monotonic() - started
    print(f"{len(found)} mutants, {len(survivors)} survive ({share:.1%}), {took:.0f} s")
    return 1 if new or gone or share > MOST else 0


if __name__ == "__main__":
    sys.exit(main())
