"""Whether a query waits for a tail: experience of what making one took, and who came meanwhile.

To make a tail takes longer than to read the appended files for one query. Alone, a query reads the
files itself, and a tail is made beside it for those that follow. Where queries come at the same
time, each of them would do that work, all at once: there the first one waits as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# Reads of a tail that make it worth making again at once.
_OFTEN: Final = 2
_MOST_COUNTED: Final = 8
# Of `others`: one waited for the last tail.
_SHARED: Final = 0.5
# For a tail of more rows nobody waits before one was made.
_FEW_ROWS: Final = 2_000_000


@dataclass(frozen=True, slots=True)
class Tempo:
    """How long queries wait for tails, and how long none is made.

    Args:
        rest: How many times as long as the last one took none is made, unless they are often read.
            It may take a fifth of the time so.
        first: How many seconds a query waits before any was made.
        margin: How many seconds it waits beyond what the last one took.
        most: How many seconds it waits at most.
        pause: How many seconds after it was asked for one is begun, if no query waits for it.
        keep: How many seconds a tail is kept at least, if a newer state of its cache was published
            while queries waited for it.
    """

    rest: float = 4.0
    first: float = 5.0
    margin: float = 2.0
    most: float = 20.0
    pause: float = 1.0
    keep: float = 10.0


USUAL: Final = Tempo()


@dataclass(slots=True)
class Pace:
    """What is known of the tails of one set; not safe for several threads.

    Args:
        seconds: How long the last one took; None before the first.
        not_before: When the next one may be made, unless they are often read.
        uses: How many queries tails answered, halved with each new one.
        others: How many queries waited for tails while another one did, halved likewise.

    >>> pace = Pace()
    >>> pace.patience(USUAL, 2_000), pace.patience(USUAL, 100_000_000), pace.is_shared
    (5.0, 0.0, False)
    >>> pace.others += 1  # one waited for the first tail, and nobody for the next three
    >>> for _ in range(4):
    ...     pace.ended(1.0, True, 100.0, USUAL)
    ...     print(pace.is_shared)
    True
    False
    False
    False
    >>> pace.patience(USUAL, 2_000), pace.rests(103.9), pace.rests(104.0)
    (3.0, True, False)
    """

    seconds: float | None = None
    not_before: float = 0.0
    uses: int = 0
    others: float = 0.0

    @property
    def is_shared(self) -> bool:
        """Whether queries come at the same time, so that each of them waits."""
        return self.others >= _SHARED

    def patience(self, tempo: Tempo, rows: int | None) -> float:
        """How long a query waits, in seconds; not at all for what takes longer than it would wait.

        Args:
            tempo: How long at most.
            rows: How many were appended; None if nobody knows.
        """
        if self.seconds is None:
            few = rows is not None and rows <= _FEW_ROWS
            return min(tempo.first, tempo.most) if few else 0.0
        return min(self.seconds + tempo.margin, tempo.most) if self.seconds < tempo.most else 0.0

    def rests(self, now: float) -> bool:
        """Whether none is to be made.

        Args:
            now: In seconds, of a clock that only runs on.
        """
        return now < self.not_before and self.uses < _OFTEN

    def read(self) -> None:
        """A tail answered a query that read none of the files."""
        self.uses = min(self.uses + 1, _MOST_COUNTED)

    def ended(self, seconds: float, made: bool, now: float, tempo: Tempo) -> None:
        """One was made or given up.

        Args:
            seconds: How long that took.
            made: Whether there is one now.
            now: As in `rests`.
            tempo: How long to rest.
        """
        self.seconds = seconds
        self.not_before = now + tempo.rest * seconds
        self.uses = self.uses // 2 if made else 0
        self.others = self.others / 2 if made else 0.0
