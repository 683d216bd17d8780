"""The states, modes and kinds that statements, records, REST and the metastore all speak of: each
word once, with one spelling.

The values are what the metastore stores and REST sends; the DDL's own spelling is `words`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal


class RefreshMode(StrEnum):
    """How a cache is refreshed."""

    AUTO = "AUTO"
    FULL = "FULL"
    INCREMENTAL = "INCREMENTAL"
    INCREMENTAL_ONLY = "INCREMENTAL_ONLY"

    @property
    def words(self) -> str:
        """The mode as the DDL spells it.

        >>> RefreshMode.INCREMENTAL_ONLY.words
        'INCREMENTAL ONLY'
        """
        return self.value.replace("_", " ")

    @property
    def summary(self) -> str:
        """What it does, in a few words."""
        return _MODES[self]


_MODES: Final = {
    RefreshMode.AUTO: "the cheapest way that is exact",
    RefreshMode.FULL: "compute everything",
    RefreshMode.INCREMENTAL: "by the change alone wherever that is exact, else compute everything",
    RefreshMode.INCREMENTAL_ONLY: "by the change alone, or fail and say why",
}


def kind_of_join(finds_each: bool) -> Literal["INNER", "LEFT"]:
    """The record-preserving join as SQL spells it: INNER where each row finds one, else LEFT."""
    return "INNER" if finds_each else "LEFT"


class FreshnessKind(StrEnum):
    """What a hit may lag behind the base tables."""

    STRICT = "STRICT"
    MAX_STALENESS = "MAX_STALENESS"
    UNLIMITED = "UNLIMITED"


NOT_PLANNED: Final = "looking at the base tables"
"""The reason of a refresh run of which nobody knows yet what it will do."""


class RunState(StrEnum):
    """Where a refresh run stands."""

    RUNNING = "RUNNING"
    PUBLISHED = "PUBLISHED"
    FAILED = "FAILED"
    UNCHANGED = "UNCHANGED"
    SUPERSEDED = "SUPERSEDED"
    CANCELLED = "CANCELLED"


class Origin(StrEnum):
    """What a refresh was started by."""

    STATEMENT = "STATEMENT"
    REQUEST = "REQUEST"
    SCHEDULE = "SCHEDULE"


class StatementState(StrEnum):
    """Where a statement that the service runs stands."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"
    EXPIRED = "EXPIRED"
    UNKNOWN = "UNKNOWN"

    @property
    def is_over(self) -> bool:
        """Whether nothing runs or will run for it any more."""
        return self not in (StatementState.PENDING, StatementState.RUNNING)


class JoinState(StrEnum):
    """What is known about a record-preserving join."""

    VALID = "VALID"
    BROKEN = "BROKEN"
    NOT_VALIDATED = "NOT_VALIDATED"


class Outcome(StrEnum):
    """What was decided about a query."""

    HIT = "HIT"
    MISS = "MISS"
    PLAN_ONLY = "PLAN_ONLY"
    ERROR = "ERROR"


# Where the Spark of a process is, in the words of `/readyz`; no Spark is needed to say it.
SparkState = Literal["notStarted", "starting", "running", "failed", "ended"]
