"""Errors of the matcher: bad input to the text door, and definitions that a cache cannot have."""

from __future__ import annotations

from typing import Final

from matcher.model.message import Arg, Message, bounded
from matcher.model.reasons import Reason, ReasonCode, not_taken

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
    for the user.

    Args:
        code: The code of the reason.
        template: What the construct is, with `{name}` where an argument stands.
        args: The arguments; see `matcher.model.message`.
    """

    def __init__(self, code: ReasonCode, template: str, /, **args: Arg) -> None:
        self.message = bounded(Message(template, **args))
        super().__init__(code.value, str(self.message))

    @property
    def reason(self) -> Reason:
        """Why a door makes no block of it."""
        return not_taken(ReasonCode(self.code), self.message.template, **dict(self.message.args))
