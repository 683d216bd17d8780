"""What changed of a base table between two of its versions, judged by the actions of its log.

Plain data; `netting` judges. Never judged by the name of an operation or by `isBlindAppend`: an
insert-only MERGE holds adds alone, and a delete by vector is an add *and* a remove of one path. A
commit's `dataChange=false` is trusted: such files hold rows that were there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from matcher.model.message import NOTHING, Message


class ChangeKind(StrEnum):
    """What a range of commits did to a table's rows."""

    SAME = "same"
    APPENDS = "appends"
    SIGNED = "signed"
    UNKNOWN = "unknown"


class ChangeCode(StrEnum):
    """Why a range is no mere append; each has its cure in docs/refresh.md."""

    ROWS_REMOVED = "ROWS_REMOVED"
    RANGE_REWRITTEN = "RANGE_REWRITTEN"
    TOO_FAR_BEHIND = "TOO_FAR_BEHIND"
    LOG_CLEANED = "LOG_CLEANED"
    HISTORY_REWRITTEN = "HISTORY_REWRITTEN"
    TABLE_RECREATED = "TABLE_RECREATED"
    COLUMNS_CHANGED = "COLUMNS_CHANGED"
    UNKNOWN_ACTION = "UNKNOWN_ACTION"
    LOG_UNREADABLE = "LOG_UNREADABLE"


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file of a table, as its log has it.

    Args:
        path: As the log spells it.
        vector: The id of its deletion vector; empty without one.
        bytes: Its length.
        rows: How many rows it shows, those that its vector hides left out; None where its writer
            did not say.
        partition: Its partition values, by physical name.
        bounds: The least and the greatest value of columns of whole numbers, by physical name, as
            far as its writer said them and they are kept; (0, 0) where all is NULL.
    """

    path: str
    vector: str
    bytes: int
    rows: int | None
    partition: Mapping[str, str | None] = field(default_factory=dict, compare=False)
    bounds: Mapping[str, tuple[int, int]] = field(default_factory=dict, compare=False)

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from all other files of its table: a path alone is not enough."""
        return (self.path, self.vector)


def rows_of(files: Iterable[DataFile]) -> int | None:
    """How many rows files show together; None where some writer did not say.

    Args:
        files: The files.
    """
    counts = [file.rows for file in files]
    return None if None in counts else sum(c for c in counts if c is not None)


@dataclass(frozen=True, slots=True)
class Changes:
    """What happened to a table's rows from one state (not included) to a later one (included).

    Args:
        kind: `SAME`: no row changed. `APPENDS`: the rows of `added` came, and nothing else.
            `SIGNED`: rows went as well. `UNKNOWN`: the log does not tell; `code` says why.
        code: Why it is `SIGNED` or `UNKNOWN`; for `APPENDS`, `RANGE_REWRITTEN` where some file of
            `added` is not in the later state any more (it was compacted since), so that a query
            that sees that state cannot read the appended rows apart; else None. `UNKNOWN` has
            `RANGE_REWRITTEN` where rewrites and their undoing cannot be told apart.
        detail: What happened, for people, one line without a subject ("2 commits appended 7 rows in
            2 files"); `NOTHING` if there is nothing to say.
        added: The files whose rows came, net of those that went again.
        removed: The files whose rows went, net.
        commits: How many commits the range has.
        change_rows: What is read of the table's Change Data Feed for the range, if it is switched
            on: files of change rows, and those that came or went where it follows from them. None
            where the range may have switched it on or off.
        first_change_ms: When the first commit that changed a row was made, in milliseconds since
            1970; None where none did, 0 where that is not known.
        redefined: Some commit set the table's columns or properties, or it is not known whether one
            did: a column may be another one of the same name.
    """

    kind: ChangeKind
    code: ChangeCode | None = None
    detail: Message = NOTHING
    added: tuple[DataFile, ...] = ()
    removed: tuple[DataFile, ...] = ()
    commits: int = 0
    first_change_ms: int | None = None
    change_rows: tuple[DataFile, ...] | None = None
    redefined: bool = False

    @property
    def rows_added(self) -> int | None:
        """Rows of the added files; None where some writer did not say."""
        return rows_of(self.added)

    def bounds_added(self, column: str) -> tuple[int, int] | None:
        """The least and the greatest value of a column in the added files; None where that of some
        file is not known.

        Args:
            column: Its physical name, in lower case.
        """
        found = [
            next((said for name, said in file.bounds.items() if name.lower() == column), None)
            for file in self.added
        ]
        known = [bounds for bounds in found if bounds is not None]
        if not known or len(known) < len(found):
            return None
        return (min(low for low, _ in known), max(high for _, high in known))

    @property
    def bytes_added(self) -> int:
        """Bytes of the added files."""
        return sum(file.bytes for file in self.added)

    @property
    def bytes_by_feed(self) -> int | None:
        """Bytes that are read of the Change Data Feed; None without one."""
        if self.change_rows is None:
            return None
        return sum(file.bytes for file in self.change_rows)

    @property
    def bytes_removed(self) -> int:
        """Bytes of the removed files."""
        return sum(file.bytes for file in self.removed)


NO_CHANGE: Final = Changes(ChangeKind.SAME)
"""From a state to itself."""


def not_known(code: ChangeCode, detail: Message, commits: int = 0) -> Changes:
    """What is said where the log does not tell what changed.

    Args:
        code: Why.
        detail: The same for people.
        commits: How many commits the range has, if that is known.
    """
    return Changes(
        ChangeKind.UNKNOWN, code, detail, commits=commits, first_change_ms=0, redefined=True
    )
