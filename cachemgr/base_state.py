"""Which state of a base table is meant: its id, a version, and the commit that made it; and the
table in that state.

A version number alone is fooled by a table that was created again, and id and version together by
a folder put back from a copy, where two histories take the same numbers. The commit's own identity
tells them apart: the transaction id that its writer gave it, or a hash of its file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, TypeVar

_Moment = TypeVar("_Moment", int, datetime)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """There is a log at a place, as far as is known, and it cannot be read now.

    Args:
        why: What it says, for people; one line.
        is_away: The storage could not be asked. Else the log itself is to blame: a newer protocol,
            or files of it are gone.
    """

    why: str
    is_away: bool = False


class BaseState(NamedTuple):
    """A Delta table at one version.

    Args:
        table_id: Tells a re-created table from its predecessor; None where it is not known.
        version: The version; None where it is not known.
        commit: The identity of that version's commit. Empty where its file is gone from the log
            and only a checkpoint is left, and in what was stored before identities were.
        committed_ms: When that commit was made, in milliseconds since 1970, if that is known.
    """

    table_id: str | None
    version: int | None
    commit: str = ""
    committed_ms: int | None = None

    def is_same(self, now: BaseState) -> bool:
        """Whether a table that was seen in this state once is in it now.

        Where the commit's file is gone from the log, id and version decide: that a log was cleaned
        makes no other history. A state that was stored without an identity is proven by the
        commit's time alone, which a commit of another history does not share.

        Args:
            now: The table as its log says that it is.
        """
        if not self._of_one_number(now):
            return False
        return not now.commit or self.agrees(now)

    def agrees(self, other: BaseState) -> bool:
        """Whether two states that were both stored are the same one; without an identity on each
        side, if their commits were made at the same time.

        Args:
            other: The other state.
        """
        if not self._of_one_number(other):
            return False
        if self.commit and other.commit:
            return self.commit == other.commit
        return self.committed_ms is not None and self.committed_ms == other.committed_ms

    def is_put_back(self, now: BaseState) -> bool:
        """Whether a table that was seen in this state once is at the same version of another
        history now: it was put back from a copy since.

        Args:
            now: The table as its log says that it is.
        """
        return self._of_one_number(now) and not self.is_same(now)

    def _of_one_number(self, other: BaseState) -> bool:
        known = self.table_id is not None and self.version is not None
        return known and self[:2] == other[:2]


@dataclass(frozen=True, slots=True)
class TableAt:
    """A base table at one version: the one type for that, whoever looked.

    It lies below the metastore, which notes tables down as they are.

    Args:
        name: Its name in the catalog; its location where nobody knows another.
        location: Where it lies, in the one spelling of `normalise_location`.
        table_id: Tells a re-created table from its predecessor.
        version: The version.
        timestamp_ms: When that version was committed, in milliseconds since 1970; None where the
            query itself asked for the version.
        commit: The identity of that commit, as in `BaseState`; empty also where nobody asked.
        columns: Its schema at that version, in the JSON of the Delta protocol (`schemaString`);
            empty where nobody asked.
    """

    name: str
    location: str
    table_id: str
    version: int
    timestamp_ms: int | None
    commit: str = ""
    columns: str = ""

    @property
    def identity(self) -> tuple[str, str, int, str]:
        """What tells it from all other tables and versions, as a cache's commits are stamped."""
        return (self.location, self.table_id, self.version, self.commit)

    @property
    def state(self) -> BaseState:
        """The state that it is in, to be compared with one of the same place."""
        return BaseState(self.table_id, self.version, self.commit, self.timestamp_ms)


def versions_of(tables: Iterable[TableAt]) -> dict[str, int]:
    """The versions of tables, by location."""
    return {table.location: table.version for table in tables}


def counted(commit: _Moment, read: _Moment, now: _Moment) -> _Moment:
    """The moment that the first commit after a snapshot counts as; never after now.

    That commit was made after the versions were read and is there now. A writer's clock that says
    otherwise is wrong, and then the longest lag that there can be counts.

    Args:
        commit: When the commit says that it was made.
        read: When the snapshot's versions were read.
        now: This moment. All three in milliseconds since 1970, or as datetimes with a zone.
    """
    return commit if read <= commit <= now else min(read, now)


def millis(moment: datetime) -> int:
    """Milliseconds since 1970."""
    return int(moment.timestamp() * 1000)
