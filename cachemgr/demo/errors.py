"""The error of the demo."""

from __future__ import annotations

from cachemgr.errors import CacheManagerError, ErrorCode


class DemoError(CacheManagerError):
    """The demo cannot go on: the message says what to do.

    Args:
        message: What happened, to which object, and what to do next.
    """

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.DEMO, message)

    def __reduce__(self) -> tuple[object, ...]:
        return (DemoError, (self.message,))
