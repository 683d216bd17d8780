"""What became of decisions: counted and logged once Spark has planned what they put in place.

A decision is not yet what runs. Putting it in place may fail, Spark drops subqueries of which
nothing is wanted, and optimises the query of a write twice, of which it runs one. So a decision is
noted when it is made, and told when Java (`Planned.java`) says that it was planned or failed; of
others nothing is told. No query waits for that: it is fetched when the counters are read, and in
the background.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Protocol

from cachemgr.metastore.logged_reasons import logged_reason
from cachemgr.metastore.records import DecisionRecord
from cachemgr.serving.decision import Decision, Path
from cachemgr.serving.explain import set_text
from cachemgr.serving.feed import Feed
from cachemgr.serving.logged_filters import logged_filters
from cachemgr.telemetry import Telemetry, logger
from cachemgr.vocabulary import Outcome
from matcher.model.message import Cause, Word
from matcher.model.reasons import Reason, ReasonCode

TOO_LATE: Final = Reason(
    ReasonCode.DECIDED_TOO_LATE,
    "the query waited no longer than spark.cachemgr.sidecar.timeout for its answer",
    "run it again: a server's first queries take longest; or raise that setting there",
)
_MOST: Final = 1_000
_LONGEST_SECONDS: Final = 600.0


def failed(what: str, cause: str) -> Reason:
    """Why a query runs as it was written, where an error of ours stands in the way.

    Args:
        what: What failed.
        cause: What went wrong, in a line.
    """
    return Reason(
        ReasonCode.INTERNAL_ERROR,
        "{what} failed, and the original query runs: {cause}",
        "report it with the query",
        what=Word(what),
        cause=Cause(cause),
    )


def not_accepted(cause: str) -> Reason:
    """The same under settings that are not accepted.

    Args:
        cause: Which one, and what it may be.
    """
    return Reason(
        ReasonCode.INTERNAL_ERROR,
        "a setting of the session is not accepted, and the original query runs: {cause}",
        "set it as is said there",
        cause=Cause(cause),
    )


def not_put_in(cause: str) -> Reason:
    """The same of a query for which a cache was chosen."""
    return failed("putting the cache's rows in place", cause)


@dataclass
class NotedDecision:
    """A decision of which nobody knows yet whether it runs.

    Args:
        found: What was decided.
        session_key: The session that asked.
        millis: How long it took.
        telemetry: Counts what became of it.
        feed: Takes the record of it; None where decisions are not logged.
        plan_only: Nothing is put in place, whatever was decided.
        at: When it was made.
        local: Whether its rows were computed while it was planned.
    """

    found: Decision
    session_key: str
    millis: float
    telemetry: Telemetry
    feed: Feed | None
    plan_only: bool = False
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    local: bool = False

    def drop(self, reason: Reason, path: Path | None = None) -> None:
        """A part of it is not put in place.

        Args:
            reason: Why.
            path: Where the part stands; None for all.
        """
        self.found = self.found.without_hits(reason, path)

    def tell(self, *, replaced: bool, local: bool = False, failure: str | None = None) -> None:
        """Count and log it.

        Args:
            replaced: Whether something was put in place.
            local: Whether the rows were computed while the query was planned.
            failure: Why that failed, in a line; None if it did not.
        """
        self.local = local
        outcome = Outcome.MISS
        if self.found.hits and failure is not None:
            self.drop(not_put_in(failure))
            self.telemetry.count("errors")
            outcome = Outcome.ERROR
        elif self.found.hits and not (replaced or self.plan_only):
            self.drop(TOO_LATE)
        elif self.found.hits:
            outcome = Outcome.PLAN_ONLY if self.plan_only else Outcome.HIT
        self._count()
        if self.feed is not None:
            self.feed.log(lambda: self._record(outcome))

    def fail(self) -> None:
        """Count and log that deciding itself failed."""
        self.telemetry.count("errors")
        self._count()
        if self.feed is not None:
            self.feed.log(lambda: self._record(Outcome.ERROR))

    def _count(self) -> None:
        hits, telemetry = self.found.hits, self.telemetry
        telemetry.count("hits" if hits else "misses")
        if hits and self.local:
            telemetry.count("local_hits")
        appended = [hit.appended for hit in hits if hit.appended is not None]
        if appended:
            telemetry.count("fresh_hits")
            telemetry.count("fresh_rows", sum(a.rows or 0 for a in appended))
            if any(a.tail is not None for a in appended):
                telemetry.count("tail_hits")
        if hits and self.plan_only:
            telemetry.count("plan_only")
        if self.found.exhausted is not None:
            telemetry.count(f"out_of_{self.found.exhausted}")

    def _record(self, outcome: Outcome) -> DecisionRecord:
        found = self.found
        hits = found.hits
        by_table = found.reasons_by_table()  # here, where no query waits for it
        blocks = repr([o.block for o in found.outcomes if o.block is not None])
        return DecisionRecord(
            at=self.at,
            session_id=self.session_key,
            query_hash=hashlib.sha256(blocks.encode()).hexdigest()[:16],
            outcome=outcome,
            caches=tuple(dict.fromkeys(h.rewrite.cache for h in hits)),
            grouping_set=set_text(hits[0]) if hits else None,
            reasons=tuple(logged_reason(reason, places) for reason, places in by_table.items()),
            millis=self.millis,
            local=self.local,
            filters=logged_filters(hits) if hits else None,
        )


class DecidedElsewhere(Protocol):
    """Decisions that were made where nobody waited for Python."""

    @property
    def is_used(self) -> bool:
        """Whether there may be any at all."""
        ...

    def taken(self) -> Iterable[tuple[int, NotedDecision]]:
        """Those that were made since the last call, each by the hook's number of it."""
        ...


class Outcomes:
    """The decisions of one application that wait for what became of them; any thread may call.

    Args:
        fetch: Gives what Java has noted since the last call.
        clock: Monotonic seconds.
        elsewhere: Knows of the decisions that were made without Python.
    """

    def __init__(
        self,
        fetch: Callable[[], str],
        clock: Callable[[], float] = time.monotonic,
        elsewhere: DecidedElsewhere | None = None,
    ) -> None:
        self._fetch = fetch
        self._elsewhere = elsewhere
        self._clock = clock
        self._lock = threading.Lock()
        # who reads counters waits for who has fetched what they are to count
        self._settling = threading.RLock()
        self._waiting: dict[int, tuple[float, NotedDecision]] = {}

    def note(self, number: int, decision: NotedDecision) -> None:
        """Note a decision until it is known what became of it.

        Args:
            number: The hook's number of it.
            decision: The decision.
        """
        if len(self._waiting) >= _MOST:
            self.settle()
            self._forget(_MOST // 2)
        with self._lock:
            self._waiting[number] = (self._clock(), decision)

    def found(self, number: int) -> Decision | None:
        """What was decided, of a decision that was noted.

        Args:
            number: The hook's number of it.
        """
        with self._lock:
            waiting = self._waiting.get(number)
        return None if waiting is None else waiting[1].found

    def drop(self, number: int, reason: Reason, path: Path | None = None) -> None:
        """Take note that a part of a decision is not put in place; see `NotedDecision.drop`."""
        with self._lock:
            waiting = self._waiting.get(number)
        if waiting is not None:
            waiting[1].drop(reason, path)

    def settle(self) -> None:
        """Count and log all decisions of which it is known by now, those that another thread is
        about to count among them. Never raises."""
        with self._settling:
            self._settle()

    def _settle(self) -> None:
        elsewhere = self._elsewhere
        if not self._waiting and not (elsewhere is not None and elsewhere.is_used):
            return
        try:
            notes = json.loads(self._fetch())
            # after it: whatever has run by now is among the decisions then
            decided = () if elsewhere is None else tuple(elsewhere.taken())
        except Exception as error:  # the application is gone, and its counters with it
            logger.debug("what became of decisions is not known: %s", error)
            return
        with self._lock:
            self._waiting.update((n, (self._clock(), decision)) for n, decision in decided)
        for number, replaced, local, failure in notes:
            with self._lock:
                waiting = self._waiting.pop(number, None)
            if waiting is not None:
                waiting[1].tell(replaced=replaced, local=local, failure=failure)
        self._forget(_MOST)

    def _forget(self, most: int) -> None:
        """Let go of those that never ran: subqueries that Spark dropped, and the first of the two
        plans of a write."""
        with self._lock:
            oldest = self._clock() - _LONGEST_SECONDS
            for number in list(self._waiting):
                if len(self._waiting) <= most and self._waiting[number][0] >= oldest:
                    return
                del self._waiting[number]
