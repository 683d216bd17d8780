"""Whether a query waits for a tail: experience of what making one took, and how many it answered.

To make a tail is the work of reading the appended files for one query, and a little more. So a
query that has one made and waits for it loses next to nothing, and all that come until the next
append find it there. Where none does, as beside a writer that commits between any two queries, each
query reads the files itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# Queries that a tail has to answer to be worth waiting for, the one that asked for it among them.
_OFTEN: Final = 2
_MOST_COUNTED: Final = 8


@dataclass(frozen=True, slots=True)
class Tempo:
    """How long queries wait for tails, and how long none is made.

    Args:
        rest: Of one that no query waits for: how many times as long as the last one took none is
            made. It may take a fifth of the time so.
        first: How many seconds a query waits before any was made.
        margin: How many seconds it waits beyond what the last one took.
        most: How many seconds it waits at most.
        keep: How many seconds a tail is kept at least, if a newer state of its cache was published
            while queries waited for it.
    """

    rest: float = 4.0
    first: float = 5.0
    margin: float = 2.0
    most: float = 20.0
    keep: float = 10.0


USUAL: Final = Tempo()


@dataclass(slots=True)
class Pace:
    """What is known of the tails of one set; not safe for several threads.

    Args:
        seconds: How long the last one took; None before the first.
        not_before: When the next one may be made that no query waits for.
        uses: How many queries tails answered, halved with each new one; the first guess is that
            they answer several.

    >>> pace = Pace()
    >>> pace.patience(USUAL)
    5.0
    >>> for _ in range(2):  # each one is read by the query that asked for it alone
    ...     pace.ended(1.0, True, True, 100.0, USUAL)
    ...     pace.read()
    >>> pace.pays, pace.patience(USUAL), pace.rests(103.9), pace.rests(104.0)
    (False, 3.0, True, False)
    """

    seconds: float | None = None
    not_before: float = 0.0
    uses: int = _OFTEN

    @property
    def pays(self) -> bool:
        """Whether a query has a tail made and waits for it."""
        return self.uses >= _OFTEN

    def patience(self, tempo: Tempo) -> float:
        """How long a query waits, in seconds."""
        if self.seconds is None:
            return min(tempo.first, tempo.most)
        return min(self.seconds + tempo.margin, tempo.most)

    def rests(self, now: float) -> bool:
        """Whether none is to be made that no query waits for.

        Args:
            now: In seconds, of a clock that only runs on.
        """
        return now < self.not_before and not self.pays

    def read(self) -> None:
        """A tail answered a query that read none of the files."""
        self.uses = min(self.uses + 1, _MOST_COUNTED)

    def ended(self, seconds: float, made: bool, awaited: bool, now: float, tempo: Tempo) -> None:
        """One was made or given up.

        Args:
            seconds: How long that took.
            made: Whether there is one now.
            awaited: Whether the query that asked for it waited, and reads it next.
            now: As in `rests`.
            tempo: How long to rest.
        """
        self.seconds = seconds
        self.not_before = now + tempo.rest * seconds
        self.uses = self.uses // 2 - (1 if awaited else 0) if made else 0
