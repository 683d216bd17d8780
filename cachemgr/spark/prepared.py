"""Decisions that hold for a query's shape, given to the JVM, which answers the next query of that
shape by them (`prepared.Prepared` in Java).

What depends on anything but the document, who asks, the settings and the versions of the tables is
never given: a cache that may lag behind, rows read beside it, what the commits since did. Each
change of what is served voids all of them, and so does silence: the JVM asks Python again unless it
was heard of within seconds.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from cachemgr.base_state import TableAt
from cachemgr.serving.decision import Decision, Hit
from cachemgr.serving.feed import Feed
from cachemgr.serving.seen_tables import Seen
from cachemgr.spark.held.pins import PinKey
from cachemgr.spark.outcomes import NotedDecision
from cachemgr.telemetry import Telemetry, logger
from cachemgr.vocabulary import FreshnessKind
from matcher.catalyst.templates import MarkedDocument
from matcher.memory.bounded import Bounded
from matcher.model.ir import Block

_PULSE_SECONDS: Final = 1.0
# Of one shape, asked in one way, in one epoch; constants that belong to it make many of some.
_MOST_TRIES: Final = 16
_MOST_SHAPES: Final = 1_000
# More than Java keeps at once.
_MOST_USED: Final = 1_000


@dataclass(frozen=True, slots=True)
class Offer:
    """A decision that may be kept.

    Args:
        sql: What is put in place, with marks for the constants that may be others.
        marks: Place, type and mark of each, as `prepared.PreparedDecider` takes them.
        number: By which Java says that it was used.
    """

    sql: str
    marks: str
    number: int


@dataclass(frozen=True, slots=True)
class PreparedUse:
    """What is told of a query that was answered by a kept decision.

    Args:
        found: What was decided of the first one.
        block_of: Gives a query's block by its constants.
        pin: The set that it reads.
        telemetry: Counts for sessions that have no counters of their own.
        log: Takes the records; None where decisions are not logged.
    """

    found: Decision
    block_of: Callable[[Sequence[str]], Block | None]
    pin: PinKey
    telemetry: Telemetry
    log: Feed | None

    def decision(self, constants: Sequence[str]) -> Decision:
        """What would have been decided of a query.

        Args:
            constants: The query's, as written in its document.
        """
        block = self.block_of(constants)
        if block is None:
            return self.found
        outcomes = tuple(
            o if o.hit is None else replace(o, block=block, hit=replace(o.hit, block=block))
            for o in self.found.outcomes
        )
        return replace(self.found, outcomes=outcomes)


def may_be_kept(found: Decision, seen: Seen) -> Hit | None:
    """The hit of a decision that is the same whenever the tables stand as they do; None if there is
    no such.

    Args:
        found: The decision.
        seen: The query's tables as it sees them.
    """
    if len(found.hits) != 1 or found.unheeded:
        return None
    (hit,) = found.hits
    cache = hit.cache
    if not hit.exact or hit.appended is not None or cache.freshness is not FreshnessKind.STRICT:
        return None
    for place in {table.key for table in hit.block.tables}:
        then = cache.snapshot.get(place)
        for table in seen.get(place, ()):
            if then is None or not isinstance(table, TableAt) or not then.is_same(table.state):
                return None
    return hit


def marks_text(marked: MarkedDocument) -> str:
    """The marks of a document as Java takes them."""
    each = ((place, marked.types[place], mark) for place, mark in sorted(marked.marks.items()))
    return ",".join(f"{place}:{kind}:{mark}" for place, kind, mark in each)


class PreparedDecisions:
    """Those of one application that were made by one feed.

    Args:
        java: The `Prepared` that keeps them.
        feed: What they were decided by.
        settle: Counts and logs what is known; called each second, never raises.
    """

    def __init__(self, java: Any, feed: Feed, settle: Callable[[], None]) -> None:
        self.java: Final = java
        self.feed: Final = feed
        self._settle = settle
        self._lock = threading.Lock()
        self._uses: dict[int, PreparedUse] = {}
        self._next = 0
        self._tries: Bounded[int] = Bounded(_MOST_SHAPES)
        self._closed = threading.Event()
        self._pulse: threading.Thread | None = None

    def may_try(self, shape: object) -> bool:
        """Whether one more decision of a shape is worth its trouble.

        Args:
            shape: What the document, and who asks and how, have in common with others.
        """
        with self._lock:
            tries = (self._tries.get(shape) or 0) + 1
            self._tries.put(shape, tries)
            return tries <= _MOST_TRIES

    def add(self, use: PreparedUse) -> int:
        """Keep what is told of a decision's uses.

        Args:
            use: It.

        Returns:
            The decision's number.
        """
        with self._lock:
            self._next += 1
            number = self._next
            self._uses[number] = use
            while len(self._uses) > _MOST_USED:
                del self._uses[next(iter(self._uses))]
            if self._pulse is None and not self._closed.is_set():
                self._pulse = threading.Thread(
                    target=self._beat, name="cachemgr-prepared", daemon=True
                )
                self._pulse.start()
        self._hear()
        return number

    def changing(self) -> None:
        """What is served is about to change, or has: nothing that was decided before it holds."""
        with self._lock:
            self._tries = Bounded(_MOST_SHAPES)
        self._tell(self.java.changed)

    @property
    def is_used(self) -> bool:
        """Whether any was ever kept."""
        return self._pulse is not None

    def taken(
        self, telemetry: Mapping[str, Telemetry], touched: Callable[[PinKey], None]
    ) -> Iterator[tuple[int, NotedDecision]]:
        """The queries that were answered since the last call, each by the hook's number of it.

        Args:
            telemetry: Counters of sessions, by their keys.
            touched: Told of each set that was read.
        """
        lost, *told = json.loads(self.java.drain())
        for number, session, decision, millis, at, constants in told:
            use = self._uses.get(number)
            if use is None:
                lost += 1
                continue
            touched(use.pin)
            counts = telemetry.get(session, use.telemetry)
            counts.count("pin_hits")
            counts.count("prepared_hits")
            when = datetime.fromtimestamp(at / 1000, UTC)
            found = use.decision(constants)
            yield decision, NotedDecision(found, session, millis, counts, use.log, at=when)
        if lost:
            self.feed.telemetry.count("decisions_not_logged", lost)

    def close(self) -> None:
        """Have none used any more."""
        self._closed.set()
        self.changing()

    def _beat(self) -> None:
        while not self._closed.wait(_PULSE_SECONDS):
            self._hear()
            self._settle()

    def _hear(self) -> None:
        if self.feed.why_not_ready() is None and not self._closed.is_set():
            self._tell(self.java.heard)

    def _tell(self, what: Callable[[], object]) -> None:
        try:
            what()
        except Exception as error:  # the application is gone, and with it what it kept
            logger.debug("what was decided before is not told to Spark: %s", error)
