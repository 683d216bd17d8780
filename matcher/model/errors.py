"""Errors of the matcher: bad input to the text door, and definitions that a cache cannot have."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from matcher.model.message import Arg, Message, bounded
from matcher.model.reasons import Reason, ReasonCode, not_taken

# a text may be megabytes, and one name in it as long
_LONGEST: Final = 1_000


class InputCode(StrEnum):
    """What is wrong with a text or a definition, for programs; stable."""

    AMBIGUOUS_COLUMN = "AMBIGUOUS_COLUMN"
    CATALOG_NOT_SUPPORTED = "CATALOG_NOT_SUPPORTED"
    CLAUSE_NOT_SUPPORTED = "CLAUSE_NOT_SUPPORTED"
    COLUMNS_MISSING = "COLUMNS_MISSING"
    COLUMN_COUNT_DIFFERS = "COLUMN_COUNT_DIFFERS"
    COLUMN_NOT_FOUND = "COLUMN_NOT_FOUND"
    CONSTANT_KEY = "CONSTANT_KEY"
    DUPLICATE_COLUMN = "DUPLICATE_COLUMN"
    EXPRESSION_NOT_SUPPORTED = "EXPRESSION_NOT_SUPPORTED"
    MISSING_AGGREGATION = "MISSING_AGGREGATION"
    NOT_A_QUERY = "NOT_A_QUERY"
    NOT_ONE_QUERY = "NOT_ONE_QUERY"
    ORDER_KEY_NOT_STORED = "ORDER_KEY_NOT_STORED"
    OUTPUT_NOT_STORED = "OUTPUT_NOT_STORED"
    POSITION_OUT_OF_RANGE = "POSITION_OUT_OF_RANGE"
    RESERVED_COLUMN = "RESERVED_COLUMN"
    SCHEMA_NOT_FOUND = "SCHEMA_NOT_FOUND"
    SCHEMA_STATEMENT_NOT_SUPPORTED = "SCHEMA_STATEMENT_NOT_SUPPORTED"
    SYNTAX_ERROR = "SYNTAX_ERROR"
    TABLES_CHANGING = "TABLES_CHANGING"
    TABLE_ALREADY_EXISTS = "TABLE_ALREADY_EXISTS"
    TABLE_NOT_FOUND = "TABLE_NOT_FOUND"
    TEXT_TOO_DEEP = "TEXT_TOO_DEEP"
    TEXT_TOO_LONG = "TEXT_TOO_LONG"
    TYPE_MISSING = "TYPE_MISSING"
    VIEW_CYCLE = "VIEW_CYCLE"
    VIEW_WITHOUT_QUERY = "VIEW_WITHOUT_QUERY"


class MatcherError(Exception):
    """Root of the matcher's errors; `code` is stable, the message says what to do."""

    def __init__(
        self,
        code: InputCode | ReasonCode,
        message: str,
        line: int | None = None,
        col: int | None = None,
    ) -> None:
        super().__init__(message if len(message) <= _LONGEST else f"{message[:_LONGEST]}…")
        self.code = str(code)
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
        super().__init__(code, str(self.message))

    @property
    def reason(self) -> Reason:
        """Why a door makes no block of it."""
        return not_taken(ReasonCode(self.code), self.message.template, **dict(self.message.args))
