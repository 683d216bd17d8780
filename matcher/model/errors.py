"""Errors of the matcher: bad input to the text door, and definitions that a cache cannot have."""

from __future__ import annotations

from typing import Final

# a text may be megabytes, and one name in it as long
_LONGEST: Final = 1_000


class MatcherError(Exception):
    """Root of the matcher's errors; `code` is stable, the message says what to do."""

    def __init__(
        self, code: str, message: str, line: int | None = None, col: int | None = None
    ) -> None:
        super().__init__(message if len(message) <= _LONGEST else f"{message[:_LONGEST]}…")
        self.code = code
        self.line = line
        self.col = col


class DefinitionNotSupported(MatcherError):
    """A cache definition holds a construct that cannot be materialised or matched soundly."""


class SqlInputError(MatcherError):
    """Text that does not parse, or names a table or column that the schema does not have."""


class NotSupported(MatcherError):
    """A construct of a query that the matcher does not take; becomes a miss reason, never an error
    for the user."""
