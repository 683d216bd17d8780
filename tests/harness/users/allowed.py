"""Who may be answered from caches, and since when."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Final

# so long a right that was taken may still be had (docs/security.md)
GRACE_SECONDS: Final = 5.0


class Allowed:
    """The rights of users, which one thread changes and others look at.

    Args:
        users: Each of them is allowed at first.
    """

    def __init__(self, users: Sequence[str]) -> None:
        self._revoked: dict[str, float | None] = dict.fromkeys(users)
        self._granted_again: dict[str, float] = {}
        self._lock = threading.Lock()

    def is_allowed(self, user: str) -> bool:
        """Whether he is at this moment."""
        with self._lock:
            return self._revoked[user] is None

    def revoked(self, user: str) -> None:
        """The last of his rights is gone."""
        with self._lock:
            self._revoked[user] = time.monotonic()

    def granted(self, user: str) -> None:
        """He is about to get the first of them."""
        with self._lock:
            self._revoked[user] = None

    def may_hit(self, user: str, since: float) -> bool:
        """Whether a query of his that began then, and has ended, may have been a hit."""
        with self._lock:
            revoked = self._revoked[user]
            return revoked is None or since < revoked + GRACE_SECONDS
