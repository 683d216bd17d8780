"""Decisions on their way to where they are stored: noted by queries, handed over by one thread.

A query only puts an item into a queue. What the store does not take now is kept for later, up to a
bound; beyond it decisions are dropped and counted.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from cachemgr.metastore.records import DecisionRecord, new_id
from cachemgr.serving.sources import BatchRefused, Source
from cachemgr.telemetry import Telemetry

MAX_PENDING: Final = 10_000
_BATCH: Final = 200


class DecisionLog:
    """Decisions that are not stored yet; safe for several threads.

    Args:
        source: Where they go.
        telemetry: Where dropped ones are counted.
    """

    def __init__(self, source: Source, telemetry: Telemetry) -> None:
        self._source = source
        self._telemetry = telemetry
        self._noted: deque[Callable[[], DecisionRecord]] = deque()
        # Records are small and hold no plan, so these may wait for a service that is down.
        self._ready: deque[DecisionRecord] = deque()
        self._sent: tuple[str, list[DecisionRecord]] | None = None
        self._flushing = threading.Lock()

    def note(self, decision: Callable[[], DecisionRecord]) -> None:
        """Note a decision; its record is made later.

        Args:
            decision: Makes the record.
        """
        if len(self._noted) >= MAX_PENDING:
            self._drop(1)
            return
        self._noted.append(decision)

    def flush(self) -> None:
        """Hand over what was noted; what is not taken stays for the next time. Never raises."""
        with self._flushing:
            self._make_records()
            try:
                while self._sent is not None or self._ready:
                    self._hand_over()
            except Exception as error:  # losing log lines is better than losing queries
                self._telemetry.count("decisions_sent_again")
                self._telemetry.warn_once(
                    f"decision log {type(error).__name__}", f"decisions cannot be logged: {error}"
                )

    def _make_records(self) -> None:
        while self._noted:
            decision = self._noted.popleft()
            if len(self._ready) >= MAX_PENDING:
                self._drop(1)
                continue
            try:
                self._ready.append(decision())
            except Exception as error:
                self._drop(1)
                self._telemetry.warn_once("decision", f"a decision cannot be logged: {error}")

    def _hand_over(self) -> None:
        if self._sent is None:
            count = min(_BATCH, len(self._ready))
            self._sent = (new_id(), [self._ready.popleft() for _ in range(count)])
        # Under the same id until it is known to be stored: an answer may get lost.
        batch_id, batch = self._sent
        try:
            self._source.send(batch, batch_id)
        except BatchRefused as error:
            self._drop(len(batch))
            self._telemetry.warn_once("decisions refused", f"decisions are not taken: {error}")
        self._sent = None

    def _drop(self, count: int) -> None:
        self._telemetry.count("decisions_not_logged", count)
