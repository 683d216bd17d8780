"""Why a refresh computes everything, as codes with what to do about each. Pure.

A refresh never falls from incremental to full in silence: its row, SHOW, EXPLAIN REFRESH and
`cachemgr cache why-full` name one of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from cachemgr.delta.changes import ChangeCode
from cachemgr.errors import ErrorCode, RefreshError
from matcher.model.message import Message, Word


class FullCode(StrEnum):
    """Why a refresh is FULL; those that a change of a base table has are of `ChangeCode` too."""

    ASKED_FOR = "ASKED_FOR"
    NEVER_REFRESHED = "NEVER_REFRESHED"
    DEFINITION_CHANGED = "DEFINITION_CHANGED"
    CACHE_DAMAGED = "CACHE_DAMAGED"
    OTHER_SPARK = "OTHER_SPARK"
    OTHER_TABLES = "OTHER_TABLES"
    SEVERAL_TABLES = "SEVERAL_TABLES"
    TOP_K = "TOP_K"
    HAVING = "HAVING"
    DELTA_NOT_LINEAR = "DELTA_NOT_LINEAR"
    NOT_MERGEABLE = "NOT_MERGEABLE"
    FILES_GONE = "FILES_GONE"
    PARTITIONING_CHANGED = "PARTITIONING_CHANGED"
    FULL_IS_CHEAPER = "FULL_IS_CHEAPER"
    LAST_ATTEMPT_FAILED = "LAST_ATTEMPT_FAILED"
    ROWS_REMOVED = ChangeCode.ROWS_REMOVED.value
    RANGE_REWRITTEN = ChangeCode.RANGE_REWRITTEN.value
    LOG_UNREADABLE = ChangeCode.LOG_UNREADABLE.value
    TOO_FAR_BEHIND = ChangeCode.TOO_FAR_BEHIND.value
    LOG_CLEANED = ChangeCode.LOG_CLEANED.value
    HISTORY_REWRITTEN = ChangeCode.HISTORY_REWRITTEN.value
    TABLE_RECREATED = ChangeCode.TABLE_RECREATED.value
    COLUMNS_CHANGED = ChangeCode.COLUMNS_CHANGED.value
    UNKNOWN_ACTION = ChangeCode.UNKNOWN_ACTION.value


CURES: Final = {
    FullCode.ASKED_FOR: "",
    FullCode.NEVER_REFRESHED: "",
    FullCode.DEFINITION_CHANGED: "",
    FullCode.CACHE_DAMAGED: "keep others out of the cache's folder",
    FullCode.OTHER_SPARK: "have workers of one minor of Spark alone",
    FullCode.OTHER_TABLES: "",
    FullCode.SEVERAL_TABLES: "refresh after each load, so that one table has changed at a time",
    FullCode.HAVING: "leave HAVING out of the definition: queries may have it all the same",
    FullCode.TOP_K: "leave ORDER BY … LIMIT out of the definition",
    FullCode.DELTA_NOT_LINEAR: "write the changed table once in the definition, inner joined or "
    "on the preserved side",
    FullCode.NOT_MERGEABLE: "store aggregates that can be added up, such as SUM and COUNT",
    FullCode.FILES_GONE: "refresh more often than the base table is vacuumed",
    FullCode.PARTITIONING_CHANGED: "",
    FullCode.FULL_IS_CHEAPER: "REFRESH … INCREMENTAL takes the other way",
    FullCode.LAST_ATTEMPT_FAILED: "see that run's error",
    FullCode.ROWS_REMOVED: "append only, or store by groups what can be taken back, such as "
    "SUM, COUNT and AVG, and nothing else",
    FullCode.RANGE_REWRITTEN: "refresh before the table is compacted or put back",
    FullCode.LOG_UNREADABLE: "see that this process may read the table's log",
    FullCode.TOO_FAR_BEHIND: "refresh more often",
    FullCode.LOG_CLEANED: "refresh more often, or raise delta.logRetentionDuration of the table",
    FullCode.HISTORY_REWRITTEN: "",
    FullCode.TABLE_RECREATED: "overwrite or truncate the table rather than creating it again",
    FullCode.COLUMNS_CHANGED: "",
    FullCode.UNKNOWN_ACTION: "report it, with the table's last commits",
}


@dataclass(frozen=True, slots=True)
class WhyFull:
    """Why the change alone is not enough.

    Args:
        code: Which of the reasons it is.
        detail: Of what table or part of the definition, for people; one line.
    """

    code: FullCode
    detail: Message

    @property
    def cure(self) -> str:
        """What to do about it; empty if the next refresh can be incremental anyhow."""
        return CURES[self.code]

    @property
    def message(self) -> Message:
        """All of it, for people."""
        return Message(
            "{code}: {detail} ({cure})" if self.cure else "{code}: {detail}",
            code=Word(self.code.value),
            detail=self.detail,
            cure=Word(self.cure),
        )

    def __str__(self) -> str:
        return str(self.message)


class NotIncremental(RefreshError):
    """`INCREMENTAL ONLY` was asked for, and the change alone is not enough.

    Args:
        cache: Shown name of the cache.
        why: Why it is not.
    """

    def __init__(self, cache: str, why: WhyFull) -> None:
        super().__init__(
            ErrorCode.NOT_INCREMENTAL,
            f"cache {cache} cannot be refreshed incrementally: {why}; nothing was changed; "
            f"REFRESH RELATIONAL CACHE {cache} FULL computes everything",
        )
        self.why = why
