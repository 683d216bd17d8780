"""What a Spark session made of one query."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """One query, run without caches, with them, and as offline explain writes it.

    `blocks` of it were served by `caches` in the session, which no longer read the tables `spared`;
    `as_text` serve it offline.
    """

    name: str
    rows: int
    blocks: int
    caches: tuple[str, ...]
    differences: tuple[str, ...]
    reasons: tuple[str, ...]
    spared: tuple[str, ...] = ()
    as_text: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def right(self) -> bool:
        """Whether it shows something: rows and columns equal, and some rows if it was served."""
        return not self.differences and (self.rows > 0 or not (self.caches or self.as_text))
