"""Which grouping sets are read often enough to be pinned.

To pin a set costs as much as several queries over its files. A cache that is refreshed each minute
has a new state each minute, and a set of it that is read once in that time had better be read from
its files.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import Final

from cachemgr.spark.held.pins import PinKey
from matcher.memory.bounded import Bounded

# So many queries over its files cost as much as pinning a set, and one over the pin.
_WORTH_IT: Final = 3
_MOST: Final = 10_000


@dataclass(slots=True)
class _Reads:
    """How often one set was read.

    Args:
        version: The stored state.
        now: Reads of it.
        before: Reads of the state before; None where there was none.
    """

    version: int
    now: int = 0
    before: int | None = None


class PinPace:
    """Counts the reads of grouping sets; safe for several threads.

    >>> pace, at = PinPace(), PinKey("cache", 7)
    >>> pace.read(at)
    True
    >>> later = at._replace(version=8)
    >>> [pace.read(later) for _ in range(3)], pace.read(at._replace(version=9))
    ([False, False, True], True)
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._reads: Bounded[_Reads] = Bounded(_MOST)

    def read(self, key: PinKey) -> bool:
        """Count a read.

        Args:
            key: What is read.

        Returns:
            Whether it is worth a pin: it is the first state of its set that is read at all, this
            state was read often already, or the one before was.
        """
        of = key.of_any_version
        with self._lock:
            reads = self._reads.get(of)
            if reads is None:
                reads = _Reads(key.version)
                self._reads.put(of, reads)
            elif reads.version < key.version:
                reads = _Reads(key.version, before=reads.now)
                self._reads.put(of, reads)
            elif reads.version > key.version:  # planned before the newest one was known
                return False
            reads.now += 1
            return reads.before is None or max(reads.now, reads.before) >= _WORTH_IT
