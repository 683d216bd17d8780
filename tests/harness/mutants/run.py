"""`make mutants`: switch off each guard of the matcher, one at a time, and see which test notices.

The matcher's tests are run once to learn which guards refuse in which tests; a mutant can only be
noticed by those. One that no test notices survives, and must stand in survivors.md with the reason
why it changes nothing.

`python -m tests.harness.mutants.run WORD …` tries only the guards whose names hold one of the
words.
"""

from __future__ import annotations

import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from tests.harness.mutants.instrument import STATE, Mutant, install

LIST = Path(__file__).parent / "survivors.md"
MOST = 0.02
_SECONDS = 20  # of the processor, so that a busy machine notices no more
_WAITING_SECONDS = 300  # of the clock: one that waits for ever uses no processor
_TESTS = ("tests/matcher", "tests/harness/mutants/test_remembered.py")
_OPTIONS = ("-q", "-x", "--no-header", "-p", "no:cacheprovider", "-m", "not spark")


class Hangs(Exception):
    """A mutant that does not come to an end is noticed."""


class _Loop:
    """A pytest plugin that runs the collected tests in its own way: once to learn which guards
    refuse in which tests, then each mutant through those."""

    def __init__(self, tried: list[Mutant]) -> None:
        self.tried = tried
        self.survivors: list[tuple[Mutant, int]] = []

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        reached: dict[int, list[pytest.Function]] = defaultdict(list)
        for item in session.items:
            if not isinstance(item, pytest.Function) or needs_fixtures(item):
                continue
            STATE.refused.clear()
            error = _error(item)
            if error is not None:
                raise SystemExit(f"{item.nodeid} fails without any mutant: {error!r}")
            for number in STATE.refused:
                reached[number].append(item)
        if not reached:
            raise SystemExit("no test reaches any guard: is none of them called?")
        for mutant in self.tried:
            STATE.off = frozenset({mutant.number})
            tests = sorted(reached[mutant.number], key=_is_slow)
            if not any(_error(item) is not None for item in tests):
                self.survivors.append((mutant, len(tests)))
            STATE.off = frozenset()
        return True


def needs_fixtures(item: pytest.Function) -> bool:
    """Whether it asks for any; those that every test has are not needed here."""
    return bool(set(signature(item.obj).parameters) - set(_arguments(item)) - {"request"})


def _arguments(item: pytest.Function) -> dict[str, Any]:
    return dict(item.callspec.params) if hasattr(item, "callspec") else {}


def _is_slow(item: pytest.Function) -> bool:
    return hasattr(item.obj, "hypothesis")


def _error(item: pytest.Function) -> BaseException | None:
    forget()
    try:
        with limited():
            item.obj(**_arguments(item))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return error
    return None


def forget() -> None:
    """What was worked out with another guard off is not remembered."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("matcher.", "cachemgr.text.offline")):
            for value in list(vars(module).values()):
                clear = getattr(value, "cache_clear", None)
                if clear is not None:
                    clear()


def run(tried: list[Mutant]) -> list[Mutant]:
    """The mutants that no test notices."""
    signal.signal(signal.SIGPROF, stop)
    signal.signal(signal.SIGALRM, stop)
    loop = _Loop(tried)
    code = pytest.main([*_OPTIONS, *_TESTS], plugins=[loop])
    if code != 0:
        raise SystemExit(f"pytest ended with {code}")
    for mutant, tests in loop.survivors:
        print(f"{tests} tests reach {mutant.name}")
    return [mutant for mutant, _ in loop.survivors]


def stop(number: int, frame: Any) -> None:
    raise Hangs


@contextmanager
def limited() -> Iterator[None]:
    """Ends what takes too long."""
    if STATE.off:
        signal.setitimer(signal.ITIMER_PROF, _SECONDS)
        signal.alarm(_WAITING_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)


def listed() -> dict[str, str]:
    """The survivors that survivors.md explains: name to reason."""
    lines = LIST.read_text().splitlines() if LIST.exists() else []
    rows = [line.removeprefix("- `").split("` — ", 1) for line in lines if line.startswith("- `")]
    return {name: why for name, why in rows}


def main(words: list[str]) -> int:
    """Print the survivors; 1 if there are too many, or one that is not explained."""
    started = time.monotonic()
    found = install()
    tried = [m for m in found if not words or any(word in m.name for word in words)]
    survivors = run(tried)
    share = len(survivors) / len(found)
    known = listed()
    new = [m for m in survivors if m.name not in known]
    gone = {m.name for m in tried if m.name in known} - {m.name for m in survivors}
    for mutant in survivors:
        print("survives" if mutant in new else "explained", f"{mutant.name} (line {mutant.line})")
    for name in sorted(gone):
        print("noticed after all, take it off the list:", name)
    took = time.monotonic() - started
    print(f"{len(tried)} mutants, {len(survivors)} survive ({share:.1%}), {took:.0f} s")
    return 1 if new or gone or share > MOST else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
