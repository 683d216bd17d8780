"""Which tests a run has, in which order, and which it may leave out.

What failed last and the whole of the oldest shard come first; then the quick tests, which are most
of them in little of the time, and those that cover what has changed since their shards passed, as
many as there is time for; then whatever the longest has not run, until the time is up.

Of those that cover a change, the one comes first that covers, in a second, the most of what few
others cover and none before it has. What was changed last counts most.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from tests.gate.changes import ALL
from tests.gate.covered import Covered, Record
from tests.gate.recording import PRODUCT

# a test that nobody has recorded, and what each file costs that is begun
_UNKNOWN_SECONDS: Final = 2.0
_FILE_SECONDS: Final = 2.0
_JAVA: Final = "cachemgr/jvm/"
_PRODUCT: Final = tuple(f"{package}/" for package in PRODUCT)
_BY_JAVA: Final = ("tests/doors/", "tests/spark/", "tests/jvm/", "tests/refresh/")
_LOCAL: Final = f"{_JAVA}java/local/"
_OF_FILE: Final = " in "
_BY_LOCAL: Final = ("tests/harness/local/", "tests/e2e/test_local_answers.py", "tests/jvm/")


class Tier(IntEnum):
    """Why a test is in a run; the smaller, the earlier."""

    FIRST = 0  # it failed last, or is of the oldest shard
    QUICK = 1  # it takes milliseconds
    CHOSEN = 2  # it covers a change
    MORE = 3  # there is time left
    LEFT = 4  # it covers a change, and there is no time


@dataclass(frozen=True)
class Item:
    """A test of the collection.

    Attributes:
        nodeid: Its name.
        unit: The name that its run is recorded under, without its case.
        shard: The one that it is in.
        quick: Whether it starts nothing, and takes milliseconds.
        spark: Whether it starts Spark.
    """

    nodeid: str
    unit: str
    shard: int
    quick: bool
    spark: bool

    @property
    def file(self) -> str:
        return self.nodeid.partition("::")[0]


@dataclass(frozen=True)
class Known:
    """What a choice is made of.

    Attributes:
        failed: The tests that failed last.
        oldest_first: The shards, the one first that has not passed for the longest time.
        changes: What changed since a shard passed, for each that passed at a commit known here; and
            for 0, what changed since the checked-out commit.
        record: What the tests cover.
        imported: The files that a test file imports.
        seconds: For all that is not of the first tier, of one process.
    """

    failed: frozenset[str]
    oldest_first: Sequence[int]
    changes: Mapping[int, frozenset[str]]
    record: Record
    imported: Callable[[frozenset[str]], Mapping[str, frozenset[str]]]
    seconds: float


def chosen(tests: Sequence[Item], known: Known) -> dict[str, Tier]:
    """The tier of each test, in the order in which they run; those of `LEFT` do not."""
    oldest = known.oldest_first[0]
    tiers = {
        test.nodeid: Tier.FIRST
        for test in tests
        if test.shard == oldest or test.nodeid in known.failed
    }
    tiers |= {t.nodeid: Tier.QUICK for t in tests if t.quick and t.nodeid not in tiers}
    rest = [test for test in tests if test.nodeid not in tiers]
    by_unit = defaultdict(list)
    for test in rest:
        by_unit[test.unit].append(test)
    left = known.seconds - sum(_seconds(t, known.record) for t in tests if t.quick)
    begun = {test.file for test in tests if tiers.get(test.nodeid) is Tier.FIRST}
    for unit in _by_worth(by_unit, known):
        cost = sum(_seconds(test, known.record) for test in by_unit[unit])
        file = by_unit[unit][0].file
        cost += 0 if file in begun else _FILE_SECONDS
        tier = Tier.CHOSEN if cost <= left else Tier.LEFT
        if tier is Tier.CHOSEN:
            left -= cost
            begun.add(file)
        tiers |= {test.nodeid: tier for test in by_unit[unit]}
    turn = {shard: number for number, shard in enumerate(known.oldest_first)}
    more = sorted((t for t in rest if t.nodeid not in tiers), key=lambda t: turn[t.shard])
    tiers |= {test.nodeid: Tier.MORE for test in more}
    places = {nodeid: number for number, nodeid in enumerate(tiers)}
    order = {test.nodeid: number for number, test in enumerate(tests)}
    return dict(
        sorted(
            tiers.items(),
            # those of the last tiers by worth or age, all others as they were collected
            key=lambda each: (each[1], places[each[0]] if each[1] >= Tier.MORE else order[each[0]]),
        )
    )


def _seconds(test: Item, record: Record) -> float:
    known = record.get(test.unit)
    if known is None:
        return 0.02 if test.quick else _UNKNOWN_SECONDS
    return known.seconds / known.cases


def _by_worth(by_unit: Mapping[str, Sequence[Item]], known: Known) -> Iterator[str]:
    """The units that cover a change, the one that is worth the most first."""
    touched = _touched(by_unit, known)
    covering = Counter(name for names in touched.values() for name in names)
    weights = {name: _weight(name, known) / covering[name] for name in covering}
    costs = {
        unit: 1.0 + sum(_seconds(test, known.record) for test in by_unit[unit]) for unit in touched
    }

    def worth(unit: str) -> float:
        # whatever the order of a set, which is another in each process
        return math.fsum(weights[name] for name in touched[unit]) / costs[unit]

    # Weights only fall, so that a unit which is still the best by its new worth is the best.
    heap = [(-worth(unit), unit) for unit in sorted(touched)]
    heapq.heapify(heap)
    while heap:
        _, unit = heapq.heappop(heap)
        now = -worth(unit)
        if heap and now > heap[0][0]:
            heapq.heappush(heap, (now, unit))
            continue
        yield unit
        for name in touched[unit]:
            weights[name] /= 2


def _weight(name: str, known: Known) -> float:
    """What is changed and not committed is what somebody works at."""
    name = name.partition(_OF_FILE)[0]
    if name in known.changes.get(0, ()):
        return 100.0
    newest = known.oldest_first[-1]
    return 10.0 if name in known.changes.get(newest, ()) else 1.0


def _touched(by_unit: Mapping[str, Sequence[Item]], known: Known) -> dict[str, set[str]]:
    """The changed names that each unit covers, of those that cover any."""
    files = frozenset(tests[0].file for tests in by_unit.values())
    imported = known.imported(files) if any(known.changes.values()) else {}
    seen = _Seen(known.record, imported)
    touched = {}
    now = known.changes.get(0, frozenset())
    for unit, tests in by_unit.items():
        # of a shard that never passed, as far as is known, all tests want to run
        names = seen.touched(tests[0], known.changes.get(tests[0].shard, frozenset()) | now)
        if names:
            touched[unit] = names
    return touched


def _is_java(name: str) -> bool:
    path = name.partition(":")[0]
    return path.startswith(_JAVA) and not path.endswith(".py")


class _Seen:
    """What changes a test would see."""

    def __init__(self, record: Record, imported: Mapping[str, frozenset[str]]) -> None:
        self._record = record
        self._imported = imported
        self._known = {name for each in record.values() for name in each.covers if ":" in name}
        self._ran: dict[str, frozenset[str]] = {}

    def touched(self, test: Item, changes: frozenset[str]) -> set[str]:
        """The changes that a test covers. One of Java counts for each file of tests apart: nobody
        knows which of them run it, so that one test of each is worth more than all of a few."""
        covered = self._record.get(test.unit)
        if covered is None:
            found = {name for name in changes if self._sees(test, name, None)}
        else:
            found = set(changes & covered.covers)
            found |= {name for name in changes - self._known if self._sees(test, name, covered)}
        return {f"{name}{_OF_FILE}{test.file}" if _is_java(name) else name for name in found}

    def _sees(self, test: Item, name: str, covered: Covered | None) -> bool:
        path, _, function = name.partition(":")
        if path in ALL:
            return True
        if _is_java(name):
            by = _BY_LOCAL if path.startswith(_LOCAL) else _BY_JAVA
            return test.spark and test.file.startswith(by)
        if path == test.file:
            return not function.startswith("test_") or test.unit.endswith(f"::{function}")
        if path.startswith("tests/") and not path.endswith(".py"):
            return any(path in self._opened(file) for file in self._imported[test.file])
        if covered is None or not path.startswith(_PRODUCT):
            return path in self._imported[test.file]
        # what no record names, as a constant or a new function: who runs anything there
        ran = self._in_module(path)
        return path in self._imported[test.file] if not ran else not ran.isdisjoint(covered.covers)

    def _opened(self, file: str) -> frozenset[str]:
        """The files among the tests that a module of theirs opens."""
        noted = self._record.get(file)
        return noted.covers if noted is not None else frozenset()

    def _in_module(self, path: str) -> frozenset[str]:
        """The functions of a module that some test runs."""
        made = self._ran.get(path)
        if made is None:
            made = frozenset(name for name in self._known if name.startswith(f"{path}:"))
            self._ran[path] = made
        return made
