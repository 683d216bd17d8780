"""What a decision may cost: steps, which are counted and the same on every machine.

Each search of the matcher spends steps where it branches: one for a mapping tried, a case of an OR
looked at, a cache compared. A search that has its own bound gives up with the safe answer ("not
implied", "no rewrite"), a decision that has used up all of its steps is a miss, and both say so.
Steps are spent where the work is asked for and not inside of what is remembered of it, so that they
do not depend on what was asked before.

Processor time is the last resort, for what the steps weigh wrongly: it depends on the machine, so
nothing that ended by it is ever remembered.

The budget is the thread's. Without one (a definition that is read at CREATE) only the searches' own
bounds apply, so that a query and a definition are normalised alike.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

T = TypeVar("T")

DECISION_STEPS: Final = 20_000
"""Steps of one query's decision, unless a setting or a hint says otherwise."""
DECISION_SECONDS: Final = 0.3
"""Processor time of the deciding thread, for one query."""
NODES_A_STEP: Final = 1
"""So many nodes of a query's expressions are compared with one cache, or read, in the time of a
step."""
MOST_NODES: Final = 20_000
"""A block with more nodes is not compared with caches."""
ANY_STEPS: Final = 1 << 62
"""No bound: what is decided may take as many steps as it likes."""
# Between two looks at the clock, which costs as much as a step.
_TICKS: Final = 64


class Search(StrEnum):
    """The searches that have a bound of their own; docs/matching.md has the table."""

    MAPPINGS = "which occurrence of a table is which"
    IMPLICATION = "what predicates imply"
    DEAD_BRANCHES = "branches of ORs that no row takes"


BOUNDS: Final[dict[Search, int]] = {
    Search.MAPPINGS: 2_000,
    Search.IMPLICATION: 500,
    Search.DEAD_BRANCHES: 4_000,
}
"""The most steps of one such search."""


class OutOfSteps(Exception):
    """A search, or the whole decision, has used up its steps."""


class OutOfTime(Exception):
    """The thread has used up its processor time. Never to be remembered."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What a decision has cost.

    Args:
        steps: The steps that it took.
        most: The most that it may take.
        cut_short: The searches that gave up at their own bound.
    """

    steps: int
    most: int
    cut_short: tuple[Search, ...] = ()


class _Budget:
    """`ceiling` is the most that may be spent until the innermost search or the decision ends."""

    __slots__ = ("ceiling", "cut", "deadline", "most", "spent", "ticks")

    def __init__(self, most: int = ANY_STEPS, seconds: float | None = None) -> None:
        self.most = most
        self.ceiling = most
        self.spent = 0
        self.cut: dict[Search, None] = {}
        self.ticks = _TICKS
        self.deadline = None if seconds is None else time.thread_time() + seconds

    def tick(self) -> None:
        self.ticks = _TICKS
        if self.deadline is not None and time.thread_time() > self.deadline:
            raise OutOfTime


class _Local(threading.local):
    def __init__(self) -> None:
        self.budget = _Budget()
        self.collecting = 0.0
        self.hurried = True


_local: Final = _Local()


def _leave_out_collection(phase: str, _info: dict[str, int]) -> None:
    """The garbage collector runs in whatever thread comes by: what it takes in a process of a
    million objects is nothing that a decision has caused."""
    if not hasattr(_local, "budget"):  # it runs in the midst of a thread's first look at them
        return
    if phase == "start":
        _local.collecting = time.thread_time()
    elif _local.budget.deadline is not None:
        _local.budget.deadline += time.thread_time() - _local.collecting


gc.callbacks.append(_leave_out_collection)


def spend(steps: int = 1) -> None:
    """Count steps.

    Args:
        steps: How many; more for what takes longer.

    Raises:
        OutOfSteps: The search or the decision has no more.
        OutOfTime: The decision has used up its processor time.
    """
    budget = _local.budget
    budget.spent += steps
    if budget.spent > budget.ceiling:
        raise OutOfSteps
    budget.ticks -= 1
    if budget.ticks <= 0:
        budget.tick()


def tick(times: int = 1) -> None:
    """Look at the clock now and then, where long work is done that is remembered and so no step.

    Args:
        times: More for longer work.

    Raises:
        OutOfTime: The decision has used up its processor time.
    """
    budget = _local.budget
    budget.ticks -= times
    if budget.ticks <= 0:
        budget.tick()


def within(search: Search, work: Callable[[], T], otherwise: T) -> T:
    """What a search finds, or the safe answer where it takes more steps than it may.

    Args:
        search: Which it is.
        work: Does it.
        otherwise: The answer that is right whatever it would have found.

    Raises:
        OutOfSteps: The decision as a whole has used up its steps.
    """
    budget = _local.budget
    outer = budget.ceiling
    budget.ceiling = min(outer, budget.spent + BOUNDS[search])
    try:
        return work()
    except OutOfSteps:
        budget.cut[search] = None
        if budget.spent > outer:
            raise
        return otherwise
    finally:
        budget.ceiling = outer


@contextmanager
def decision(steps: int = DECISION_STEPS, seconds: float | None = None) -> Iterator[None]:
    """Bound what is decided in the block. Inside of another one, that one's time goes on.

    Args:
        steps: The most steps.
        seconds: Processor time of this thread; None for what that many steps may take.
    """
    if seconds is None:
        seconds = DECISION_SECONDS * steps / DECISION_STEPS
    before = _local.budget
    budget = _Budget(steps, seconds if _local.hurried else None)
    if before.deadline is not None and budget.deadline is not None:
        budget.deadline = min(before.deadline, budget.deadline)
    _local.budget = budget
    try:
        yield
    finally:
        _local.budget = before


def is_late() -> bool:
    """True if this thread's decision has used up its processor time."""
    deadline = _local.budget.deadline
    return deadline is not None and time.thread_time() > deadline


@contextmanager
def unhurried() -> Iterator[None]:
    """Let decisions in the block take any time, and only so many steps."""
    before, _local.hurried = _local.hurried, False
    try:
        yield
    finally:
        _local.hurried = before


def spent() -> Spent:
    """What the decision of this thread has cost so far."""
    budget = _local.budget
    return Spent(budget.spent, budget.most, tuple(budget.cut))
