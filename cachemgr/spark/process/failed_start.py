"""What is known of a Spark that did not start, and when it is tried again.

A start takes seconds of all cores and fails again until somebody mends its cause, so each try waits
twice as long as the one before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

FIRST_SECONDS: Final = 5.0
LONGEST_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True)
class FailedStart:
    """The last start, which failed.

    Args:
        failures: How many failed in a row.
        cause: What went wrong, for whoever may see statements.
        public: The same with nothing of a statement in it.
        at: When it failed, in monotonic seconds.
    """

    failures: int
    cause: str
    public: str
    at: float

    @property
    def wait_seconds(self) -> float:
        """How long after it the next try is.

        >>> [FailedStart(n, "", "", 0.0).wait_seconds for n in (1, 2, 3, 9)]
        [5.0, 10.0, 20.0, 300.0]
        """
        return min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** min(self.failures - 1, 30))

    def seconds_left(self, now: float) -> float:
        """How long it is until the next try; 0 or less once that may be made."""
        return self.at + self.wait_seconds - now

    def message(self, now: float) -> str:
        """What a request is told that needs Spark."""
        return (
            f"the Spark of this process does not start ({self.cause}); {self._next(now)}: "
            "`cachemgr doctor` says what is missing"
        )

    def readiness(self, now: float) -> str:
        """What anybody may read."""
        return (
            f"Spark did not start: {self.public}; {self._next(now)}; the log of this process and "
            "`cachemgr doctor` say more"
        )

    def _next(self, now: float) -> str:
        left = self.seconds_left(now)
        return f"tried again in {left:.0f} s" if left > 0.5 else "tried again when next needed"
