"""The errors that cachemgr raises: what happened, to which object, what to do next.

Codes are stable and may be tested for by callers; texts may change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

# A refresh ended because its process has no Spark any more: it says nothing about the cache.
SPARK_LOST: Final = "SPARK_LOST"
METASTORE_MISSING: Final = "METASTORE_MISSING"
# A process could not start its Spark: the same of it.
SPARK_NOT_STARTED: Final = "SPARK_NOT_STARTED"
NO_SPARK: Final = frozenset({SPARK_LOST, SPARK_NOT_STARTED})


class CacheManagerError(Exception):
    """Root of every error that cachemgr raises on purpose.

    Args:
        code: Stable identifier in UPPER_SNAKE.
        message: What happened, to which object, and what to do next.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"[{self.code}] {self.message}"

    def __reduce__(self) -> tuple[object, ...]:
        # The default rebuilds from args alone, which does not fit a two-argument constructor:
        # an error raised in another process would surface there as a TypeError.
        return (_rebuild, (type(self), dict(self.__dict__), self.args))


class DefinitionError(CacheManagerError):
    """A cache's SELECT cannot be cached: the construct and its place are named."""


class NotFoundError(CacheManagerError):
    """The named cache, join or run does not exist."""


class AlreadyExistsError(CacheManagerError):
    """The name is taken."""


class MetastoreError(CacheManagerError):
    """The metastore cannot be opened, read or written."""


class SchemaVersionError(MetastoreError):
    """The metastore has another schema version than this program.

    Args:
        message: What was found and which command to run.
        current: The revision found, or None.
        expected: The revision this program needs.
    """

    def __init__(self, message: str, current: str | None, expected: str) -> None:
        super().__init__("SCHEMA_VERSION", message)
        self.current = current
        self.expected = expected


class ConflictError(MetastoreError):
    """The record changed since it was read: read it again and repeat."""


class LeaseLostError(MetastoreError):
    """The lease of a refresh expired or was taken over: its result stays unpublished."""


class RefreshError(CacheManagerError):
    """A refresh failed; the snapshot published before it keeps serving."""


class JoinValidationError(CacheManagerError):
    """The data contradicts a record-preserving join."""


class ConfigurationError(CacheManagerError):
    """A setting has a value that is not accepted."""


class StatementError(CacheManagerError):
    """A statement could not be read at one place.

    Args:
        message: What is wrong there.
        line: Line of the token, from 1.
        col: Column of the token, from 1.
        token: The token's text, empty at the end of the statement.
        expected: What would be accepted at that place.
        code: Stable identifier.
    """

    def __init__(
        self,
        message: str,
        line: int,
        col: int,
        token: str,
        expected: Sequence[str] = (),
        code: str = "SYNTAX_ERROR",
    ) -> None:
        where = f"line {line}, column {col}"
        at = f"at '{token}'" if token else "at the end of the statement"
        hint = f"; expected {' or '.join(expected)}" if expected else ""
        super().__init__(code, f"{message} ({where}, {at}){hint}")
        self.line = line
        self.col = col
        self.token = token
        self.expected = tuple(expected)


def _rebuild(
    cls: type[CacheManagerError], state: dict[str, object], args: tuple[object, ...]
) -> CacheManagerError:
    error = cls.__new__(cls)
    error.args = args
    error.__dict__.update(state)
    return error
