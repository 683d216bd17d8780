"""What a cache's own past refreshes tell of the next one: how long adding the change will take, and
how long computing everything. Pure.

Bytes tell which way costs less where nothing else is known (`incremental`). They do not tell that a
join over the change shuffles all of a dimension, that the disk is slow to write, or that a full
refresh is mostly one slow scan; the runs of before do.

A run of so many estimated bytes took so many seconds. Part of these is fixed (the log, the plan,
the start of jobs), part grows with the bytes, and one run does not tell how much. So each gives two
bounds of what another one takes: as if all of its time were fixed, and as if all of it grew. They
meet where the next refresh is like those before, and are far apart where it is not.

AUTO leaves the way that the bytes name only where the other one is faster beyond doubt:

- at least two runs of the way that it leaves, so that one slow run shuts no way out, and one of the
  other;
- of several the middle one counts, of two the one that speaks for staying: an outlier moves
    nothing;
- even by the bounds, the other way takes a fifth less and two seconds less;
- a run counts until `REMEMBERED` later ones have computed something. Then nothing is known of a way
  that was not taken since, and the bytes decide, so that it is tried again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cachemgr.metastore.records import RefreshRunRecord
from cachemgr.refresh.by_change.incremental import WRITING
from cachemgr.refresh.by_change.why_full import FullCode
from matcher.model.message import NOTHING, Count, Message

FULL: Final = "FULL"
REMEMBERED: Final = 16
"""A run is forgotten when so many later ones have computed something."""
_LAST: Final = 5
# What has to be won, in share and in seconds, for the way that the bytes name to be left.
_FASTER: Final = 0.8
_NOTICEABLE: Final = 2.0
_LEAST_RUNS: Final = 2
# Up to such a ratio of its bounds one figure stands for both.
_NARROW: Final = 2.0


@dataclass(frozen=True, slots=True)
class PastRun:
    """A refresh that computed something.

    Args:
        way: `FULL`, or a way of adding a change.
        cost: What it was expected to cost, in bytes read, or what that would have been.
        seconds: How long it took.
        is_from_cache: It was built from another cache, and not from the base tables.
    """

    way: str
    cost: float
    seconds: float
    is_from_cache: bool = False


@dataclass(frozen=True, slots=True)
class Expected:
    """How long one way is expected to take.

    Args:
        least: Seconds at least, by what past runs took.
        most: Seconds at most.
        runs: How many runs this is known from.
    """

    least: float
    most: float
    runs: int

    @property
    def seconds(self) -> float | None:
        """The expected seconds: half of what past runs took counts as fixed. None where they tell
        too little for one figure."""
        return (self.least + self.most) / 2 if self.most <= _NARROW * self.least else None

    def told(self) -> Message:
        """For people."""
        if self.seconds is None:
            least, most = Count(self.least, form=".1f"), Count(self.most, form=".1f")
            return Message("{least} to {most} s", least=least, most=most)
        return Message("{seconds} s", seconds=Count(self.seconds, form=".1f"))


@dataclass(frozen=True, slots=True)
class Weighed:
    """Which of the two ways AUTO takes.

    Args:
        takes_change: Whether it adds the change; else it computes everything.
        change: How long the change is expected to take; None where no past run tells.
        full: How long everything is expected to take; None likewise.
        by_time: Whether past runs decided, against the bytes.
    """

    takes_change: bool
    change: Expected | None = None
    full: Expected | None = None
    by_time: bool = False

    def told(self) -> Message:
        """The expected seconds, for people; `NOTHING` unless both are known."""
        if self.change is None or self.full is None:
            return NOTHING
        return Message(
            "by its last runs, the change is expected to take {change} and everything {full}",
            change=self.change.told(),
            full=self.full.told(),
        )


def past_runs(records: Iterable[RefreshRunRecord], ways: Iterable[str]) -> tuple[PastRun, ...]:
    """The runs that tell something, as far as they are not forgotten.

    Args:
        records: The cache's published runs, newest first.
        ways: The ways of adding a change.
    """
    known = {FULL, *ways}
    computed = [record for record in records if record.account.way in known]
    found = (_past_run(record) for record in computed[:REMEMBERED])
    return tuple(run for run in found if run is not None)


def expected(
    way: str, cost: float, past: Iterable[PastRun], *, is_from_cache: bool = False
) -> Expected | None:
    """How long a refresh is expected to take; None where no past run tells.

    Args:
        way: The way that it would take.
        cost: What it is expected to cost, in bytes read.
        past: The cache's runs, newest first.
        is_from_cache: Whether it would be built from another cache.

    >>> past = [PastRun("REPLACE", 100, 6.0), PastRun("REPLACE", 50, 5.0)]
    >>> expected("REPLACE", 100, past)
    Expected(least=5.0, most=10.0, runs=2)
    >>> expected("PARTIALS", 100, past)
    """
    alike = [run for run in past if run.way == way and run.is_from_cache == is_from_cache][:_LAST]
    if not alike:
        return None
    shares = [(run.seconds, cost / run.cost) for run in alike]
    least = sorted(seconds * min(1.0, share) for seconds, share in shares)
    most = sorted(seconds * max(1.0, share) for seconds, share in shares)
    return Expected(least[(len(alike) - 1) // 2], most[len(alike) // 2], len(alike))


def weigh(is_worth_it: bool, change: Expected | None, full: Expected | None) -> Weighed:
    """Which way AUTO takes.

    Args:
        is_worth_it: Whether adding the change costs less by the bytes.
        change: How long that is expected to take.
        full: How long everything is expected to take.

    >>> slow, fast = Expected(30, 30, 2), Expected(10, 12, 1)
    >>> weigh(True, slow, fast).takes_change, weigh(True, fast, slow).takes_change
    (False, True)
    >>> weigh(True, slow, None).takes_change
    True
    """
    if change is None or full is None:
        return Weighed(is_worth_it, change, full)
    named, other = (change, full) if is_worth_it else (full, change)
    leaves = named.runs >= _LEAST_RUNS and _is_faster(other, named)
    return Weighed(is_worth_it is not leaves, change, full, leaves)


def _is_faster(one: Expected, other: Expected) -> bool:
    return one.most <= _FASTER * other.least and one.most <= other.least - _NOTICEABLE


def _past_run(record: RefreshRunRecord) -> PastRun | None:
    account, seconds = record.account, record.seconds
    assert account.way is not None
    # it may have tried to add the change first, in the same run
    if seconds is None or account.code == FullCode.LAST_ATTEMPT_FAILED:
        return None
    is_full = account.way == FULL
    cost: float | None = account.full_estimate if is_full else account.change_estimate
    if cost is None and is_full:
        cost = _cost_of_all(record.facts, account.bytes_written)
    if not cost or cost <= 0 or seconds <= 0:
        return None
    return PastRun(account.way, cost, seconds, is_full and "source" in record.facts)


def _cost_of_all(facts: Mapping[str, Any], written: int | None) -> float | None:
    """What a full refresh would have been expected to cost where nobody had a choice."""
    sizes = facts.get("base_bytes")
    if not isinstance(sizes, Mapping) or written is None:
        return None
    return sum(sizes.values()) + written * WRITING
