"""The errors that cachemgr raises: what happened, to which object, what to do next.

Codes are stable and may be tested for by callers; texts may change.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final


class ErrorCode(StrEnum):
    """What went wrong, for programs; stable, unlike the texts."""

    AMBIGUOUS_COLUMN = "AMBIGUOUS_COLUMN"
    BAD_BATCH = "BAD_BATCH"
    BAD_CASE = "BAD_CASE"
    BAD_DOCUMENT = "BAD_DOCUMENT"
    BAD_EXPIRY = "BAD_EXPIRY"
    BAD_PRINCIPAL = "BAD_PRINCIPAL"
    BAD_SETTING = "BAD_SETTING"
    BASE_COLUMN_CHANGED = "BASE_COLUMN_CHANGED"
    BASE_COLUMN_LOST = "BASE_COLUMN_LOST"
    BASE_TABLES_MOVING = "BASE_TABLES_MOVING"
    BASE_TABLE_LOST = "BASE_TABLE_LOST"
    BUSY = "BUSY"
    CACHE_CHANGED = "CACHE_CHANGED"
    CACHE_CYCLE = "CACHE_CYCLE"
    CACHE_EXISTS = "CACHE_EXISTS"
    CACHE_HAS_DEPENDANTS = "CACHE_HAS_DEPENDANTS"
    CACHE_IN_USE = "CACHE_IN_USE"
    CACHE_HAS_HAVING = "CACHE_HAS_HAVING"
    CACHE_IS_CUBE = "CACHE_IS_CUBE"
    CACHE_IS_TOP_K = "CACHE_IS_TOP_K"
    CACHE_NOT_FOUND = "CACHE_NOT_FOUND"
    CANNOT_LISTEN = "CANNOT_LISTEN"
    CATALOG_MANAGED_TABLE = "CATALOG_MANAGED_TABLE"
    CATALOG_MOVED = "CATALOG_MOVED"
    CATALOG_NOT_SUPPORTED = "CATALOG_NOT_SUPPORTED"
    CATALOG_VERSION = "CATALOG_VERSION"
    CLAUSE_NOT_SUPPORTED = "CLAUSE_NOT_SUPPORTED"
    CLIENT_GONE = "CLIENT_GONE"
    CLUSTER_BY_ON_CUBE = "CLUSTER_BY_ON_CUBE"
    COLUMNS_CHANGED = "COLUMNS_CHANGED"
    COLUMNS_MISSING = "COLUMNS_MISSING"
    COLUMN_COUNT_DIFFERS = "COLUMN_COUNT_DIFFERS"
    COLUMN_NOT_FOUND = "COLUMN_NOT_FOUND"
    COMMIT_MISPLACED = "COMMIT_MISPLACED"
    COMMIT_SKIPPED = "COMMIT_SKIPPED"
    CONSTANT_KEY = "CONSTANT_KEY"
    DEFINITION_BROKEN = "DEFINITION_BROKEN"
    DELTA_MISSING = "DELTA_MISSING"
    DELTA_READS_WRONG = "DELTA_READS_WRONG"
    DEMO = "DEMO"
    DUMP_OF_ANOTHER_RELEASE = "DUMP_OF_ANOTHER_RELEASE"
    DUPLICATE_COLUMN = "DUPLICATE_COLUMN"
    EXPRESSION_NOT_SUPPORTED = "EXPRESSION_NOT_SUPPORTED"
    EXTRA_MISSING = "EXTRA_MISSING"
    FILE_EXISTS = "FILE_EXISTS"
    FORBIDDEN = "FORBIDDEN"
    FOREIGN_SITE = "FOREIGN_SITE"
    FUNCTION_REFUSED = "FUNCTION_REFUSED"
    GRANT_NOT_FOUND = "GRANT_NOT_FOUND"
    HALF_CHARACTER = "HALF_CHARACTER"
    HOOK_VERSION = "HOOK_VERSION"
    HTTP_ERROR = "HTTP_ERROR"
    IDEMPOTENCY_IN_PROGRESS = "IDEMPOTENCY_IN_PROGRESS"
    IDEMPOTENCY_KEY = "IDEMPOTENCY_KEY"
    IDEMPOTENCY_KEY_REUSED = "IDEMPOTENCY_KEY_REUSED"
    INTERNAL_ERROR = "INTERNAL_ERROR"
    INVALID_REQUEST = "INVALID_REQUEST"
    JOIN_COLUMN_LOST = "JOIN_COLUMN_LOST"
    JOIN_DOES_NOT_HOLD = "JOIN_DOES_NOT_HOLD"
    JOIN_EXISTS = "JOIN_EXISTS"
    JOIN_KEY_TYPES = "JOIN_KEY_TYPES"
    JOIN_NOT_CHECKABLE = "JOIN_NOT_CHECKABLE"
    JOIN_NOT_FOUND = "JOIN_NOT_FOUND"
    LEASE_LOST = "LEASE_LOST"
    METASTORE_BUSY = "METASTORE_BUSY"
    METASTORE_DAMAGED = "METASTORE_DAMAGED"
    METASTORE_FAILED = "METASTORE_FAILED"
    METASTORE_FULL = "METASTORE_FULL"
    METASTORE_MISSING = "METASTORE_MISSING"
    METASTORE_NOT_EMPTY = "METASTORE_NOT_EMPTY"
    METASTORE_READ_ONLY = "METASTORE_READ_ONLY"
    METASTORE_TAKEN = "METASTORE_TAKEN"
    METASTORE_UNREADABLE = "METASTORE_UNREADABLE"
    METASTORE_URL = "METASTORE_URL"
    METHOD_NOT_ALLOWED = "METHOD_NOT_ALLOWED"
    MIGRATIONS_MISSING = "MIGRATIONS_MISSING"
    MIGRATION_HEADS = "MIGRATION_HEADS"
    MISSING_AGGREGATION = "MISSING_AGGREGATION"
    NAMED_TWICE = "NAMED_TWICE"
    NAMES_DIFFER = "NAMES_DIFFER"
    NAME_NOT_ALLOWED = "NAME_NOT_ALLOWED"
    NAME_TAKEN = "NAME_TAKEN"
    NESTED_TOO_DEEPLY = "NESTED_TOO_DEEPLY"
    NOTHING_TO_CHANGE = "NOTHING_TO_CHANGE"
    NOTHING_TO_REBUILD = "NOTHING_TO_REBUILD"
    NOT_A_CLAUSE = "NOT_A_CLAUSE"
    NOT_A_CREATE = "NOT_A_CREATE"
    NOT_A_DELTA_TABLE = "NOT_A_DELTA_TABLE"
    NOT_A_METASTORE = "NOT_A_METASTORE"
    NOT_A_QUERY = "NOT_A_QUERY"
    NOT_A_TABLE = "NOT_A_TABLE"
    NOT_CONFIRMED = "NOT_CONFIRMED"
    NOT_ENABLED = "NOT_ENABLED"
    NOT_FOUND = "NOT_FOUND"
    NOT_INCREMENTAL = "NOT_INCREMENTAL"
    NOT_ONE_QUERY = "NOT_ONE_QUERY"
    NOT_THE_SERVICE = "NOT_THE_SERVICE"
    NO_GATEWAY = "NO_GATEWAY"
    NO_JAVA = "NO_JAVA"
    NO_JVM = "NO_JVM"
    NO_TABLE = "NO_TABLE"
    NO_TEXT_DOOR = "NO_TEXT_DOOR"
    NO_TOKENS = "NO_TOKENS"
    NUL_CHARACTER = "NUL_CHARACTER"
    ORDER_KEY_NOT_STORED = "ORDER_KEY_NOT_STORED"
    OTHER_SPARK = "OTHER_SPARK"
    OUTPUT_NOT_STORED = "OUTPUT_NOT_STORED"
    OWNER_LOST = "OWNER_LOST"
    PAGE_TOKEN = "PAGE_TOKEN"
    PARTITIONED_BY_ALL = "PARTITIONED_BY_ALL"
    PARTITION_TYPE = "PARTITION_TYPE"
    PLACE_NOT_ALLOWED = "PLACE_NOT_ALLOWED"
    PLACE_NOT_SUPPORTED = "PLACE_NOT_SUPPORTED"
    PLACE_NOT_WRITABLE = "PLACE_NOT_WRITABLE"
    PLACE_TAKEN = "PLACE_TAKEN"
    PLAN_UNREADABLE = "PLAN_UNREADABLE"
    PORT_IN_USE = "PORT_IN_USE"
    POSITION_OUT_OF_RANGE = "POSITION_OUT_OF_RANGE"
    PROPERTY_NOT_ALLOWED = "PROPERTY_NOT_ALLOWED"
    RECORD_FORMAT = "RECORD_FORMAT"
    REFRESH_CANCELLED = "REFRESH_CANCELLED"
    REFRESH_FAILED = "REFRESH_FAILED"
    REFRESH_MODE = "REFRESH_MODE"
    REFRESH_NOT_FAILED = "REFRESH_NOT_FAILED"
    REFRESH_NOT_FOUND = "REFRESH_NOT_FOUND"
    REFRESH_OVER = "REFRESH_OVER"
    REFRESH_RUNNING = "REFRESH_RUNNING"
    REMOTE_SESSION = "REMOTE_SESSION"
    REPEATED_PARAMETER = "REPEATED_PARAMETER"
    REQUEST_TOO_LARGE = "REQUEST_TOO_LARGE"
    RESERVED_COLUMN = "RESERVED_COLUMN"
    RESULTS_TOO_LARGE = "RESULTS_TOO_LARGE"
    RESULT_DAMAGED = "RESULT_DAMAGED"
    RESULT_OF_ANOTHER_RELEASE = "RESULT_OF_ANOTHER_RELEASE"
    RESULT_TOO_LARGE = "RESULT_TOO_LARGE"
    RESULT_TYPE = "RESULT_TYPE"
    SCHEMA_DRIFT = "SCHEMA_DRIFT"
    SCHEMA_NOT_FOUND = "SCHEMA_NOT_FOUND"
    SCHEMA_STATEMENT_NOT_SUPPORTED = "SCHEMA_STATEMENT_NOT_SUPPORTED"
    SCHEMA_VERSION = "SCHEMA_VERSION"
    SECRET_IN_DEFINITION = "SECRET_IN_DEFINITION"
    SELECT_NOT_GRANTED = "SELECT_NOT_GRANTED"
    SERVICE_UNREACHABLE = "SERVICE_UNREACHABLE"
    SETTINGS_DIFFER = "SETTINGS_DIFFER"
    SETTING_NOT_AVAILABLE = "SETTING_NOT_AVAILABLE"
    SETTING_NOT_MODELLED = "SETTING_NOT_MODELLED"
    SETTING_REFUSED = "SETTING_REFUSED"
    SPARK_CONNECT = "SPARK_CONNECT"
    SPARK_COUNTS_WRONG = "SPARK_COUNTS_WRONG"
    SPARK_LOST = "SPARK_LOST"
    SPARK_NOT_STARTED = "SPARK_NOT_STARTED"
    SPARK_STOPPED = "SPARK_STOPPED"
    STATEMENTS_OFF = "STATEMENTS_OFF"
    STATEMENT_CANCELED = "STATEMENT_CANCELED"
    STATEMENT_EXPIRED = "STATEMENT_EXPIRED"
    STATEMENT_FAILED = "STATEMENT_FAILED"
    STATEMENT_INVALID = "STATEMENT_INVALID"
    STATEMENT_KEY_USED = "STATEMENT_KEY_USED"
    STATEMENT_NOT_FINISHED = "STATEMENT_NOT_FINISHED"
    STATEMENT_NOT_FOUND = "STATEMENT_NOT_FOUND"
    STATEMENT_NOT_SUPPORTED = "STATEMENT_NOT_SUPPORTED"
    STATEMENT_OVER = "STATEMENT_OVER"
    STATEMENT_REFUSED = "STATEMENT_REFUSED"
    STATEMENT_TIMED_OUT = "STATEMENT_TIMED_OUT"
    STORAGE_UNAVAILABLE = "STORAGE_UNAVAILABLE"
    SUBSTITUTION_REFUSED = "SUBSTITUTION_REFUSED"
    SYNTAX_ERROR = "SYNTAX_ERROR"
    TABLES_CHANGING = "TABLES_CHANGING"
    TABLE_ALREADY_EXISTS = "TABLE_ALREADY_EXISTS"
    TABLE_GONE = "TABLE_GONE"
    TABLE_NOT_FOUND = "TABLE_NOT_FOUND"
    TABLE_NOT_RESTRICTED = "TABLE_NOT_RESTRICTED"
    TABLE_OR_VIEW_NOT_FOUND = "TABLE_OR_VIEW_NOT_FOUND"
    TABLE_UNREADABLE = "TABLE_UNREADABLE"
    TEXT_TOO_DEEP = "TEXT_TOO_DEEP"
    TEXT_TOO_LONG = "TEXT_TOO_LONG"
    TOKEN_NOT_FOUND = "TOKEN_NOT_FOUND"
    TOO_MANY_REQUESTS = "TOO_MANY_REQUESTS"
    TOO_MANY_STATEMENTS = "TOO_MANY_STATEMENTS"
    TYPE_MISSING = "TYPE_MISSING"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    UNKNOWN_COLUMN = "UNKNOWN_COLUMN"
    UNKNOWN_PARAMETER = "UNKNOWN_PARAMETER"
    UNKNOWN_REVISION = "UNKNOWN_REVISION"
    UNKNOWN_SETTING = "UNKNOWN_SETTING"
    VIEW_CYCLE = "VIEW_CYCLE"
    VIEW_WITHOUT_QUERY = "VIEW_WITHOUT_QUERY"

    @classmethod
    def _missing_(cls, value: object) -> ErrorCode | None:
        """The code that took the place of an earlier word."""
        return _RENAMED.get(str(value))


_RENAMED: Final = {
    "BASE_TABLE_UNREADABLE": ErrorCode.TABLE_UNREADABLE,
    "CACHE_ALREADY_EXISTS": ErrorCode.CACHE_EXISTS,
    "NOTENABLED": ErrorCode.NOT_ENABLED,
    "TABLE_NOT_READABLE": ErrorCode.TABLE_UNREADABLE,
    # what these refused is accepted today, and still stands in what earlier releases stored
    "DUPLICATE_KEY_COLUMN": ErrorCode.DUPLICATE_COLUMN,
    "EXPRESSION_OVER_AGGREGATES": ErrorCode.EXPRESSION_NOT_SUPPORTED,
    "UNNAMED_COLUMN": ErrorCode.EXPRESSION_NOT_SUPPORTED,
}


def spellings(code: ErrorCode) -> tuple[str, ...]:
    """A code and the words that earlier releases had for it, which stored texts still hold.

    Args:
        code: The code.

    >>> spellings(ErrorCode.CACHE_EXISTS)
    ('CACHE_EXISTS', 'CACHE_ALREADY_EXISTS')
    """
    return (code.value, *(old for old, new in _RENAMED.items() if new is code))


# A process has no Spark any more, or could not start one: that says nothing about a cache.
NO_SPARK: Final = frozenset({ErrorCode.SPARK_LOST, ErrorCode.SPARK_NOT_STARTED})


class CacheManagerError(Exception):
    """Root of every error that cachemgr raises on purpose.

    Args:
        code: An `ErrorCode`; of what a service says, perhaps one of another release. Words that an
            earlier one had for a code become that code.
        message: What happened, to which object, and what to do next.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = str(_RENAMED.get(code, code))
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
        super().__init__(ErrorCode.SCHEMA_VERSION, message)
        self.current = current
        self.expected = expected


class ConflictError(MetastoreError):
    """The record changed since it was read: read it again and repeat."""


class LeaseLostError(MetastoreError):
    """The lease of a refresh or a statement expired or was taken over: its result stays
    unpublished."""


class TooManyError(CacheManagerError):
    """As much as one principal may have is there already: wait for some of it to end."""


class RefreshError(CacheManagerError):
    """A refresh failed; the snapshot published before it keeps serving."""


class JoinValidationError(CacheManagerError):
    """The data contradicts a record-preserving join."""


class ConfigurationError(CacheManagerError):
    """A setting has a value that is not accepted."""


class MissingExtraError(CacheManagerError):
    """What was asked for needs packages of an extra that is not installed."""


# a statement may be megabytes, and what is quoted of it as long
_LONGEST: Final = 1_000


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
        code: str = ErrorCode.SYNTAX_ERROR,
    ) -> None:
        where = f"line {line}, column {col}"
        at = f"at '{token}'" if token else "at the end of the statement"
        hint = f"; expected {' or '.join(expected)}" if expected else ""
        shown = message if len(message) <= _LONGEST else f"{message[:_LONGEST]}…"
        super().__init__(code, f"{shown} ({where}, {at}){hint}")
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
