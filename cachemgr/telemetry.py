"""Counters, and one log line for each distinct cause: what a person can look at when we fell back.

No query may fail or wait because of what is counted here, so nothing in it does I/O but the log.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Mapping

logger = logging.getLogger("cachemgr")

_MAX_CAUSES = 1_000


class Telemetry:
    """Thread-safe counters of one session or of the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._logged: set[str] = set()

    def count(self, name: str, amount: int = 1) -> None:
        """Add to a counter.

        Args:
            name: The counter, such as `hits`.
            amount: How much.
        """
        with self._lock:
            self._counts[name] += amount

    def counters(self) -> Mapping[str, int]:
        """The counters as they stand."""
        with self._lock:
            return dict(self._counts)

    def warn_once(self, cause: str, message: str, *, error: BaseException | None = None) -> None:
        """Log a warning unless this cause was logged before.

        Args:
            cause: What makes two warnings the same one.
            message: The text.
            error: Its traceback goes to the log as well.
        """
        with self._lock:
            if cause in self._logged:
                return
            # A cause with ever-changing text must not fill the memory of a long-lived session.
            if len(self._logged) >= _MAX_CAUSES:
                self._logged.clear()
            self._logged.add(cause)
        logger.warning(message, exc_info=error)
