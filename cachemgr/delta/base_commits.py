"""The commits of a range of a base table's log, reduced to what tells whether its rows changed.

`Ranges.java` reduces the same commits to the same text for logs that Spark reads.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from cachemgr.base_state import TableAt
from cachemgr.delta.changes import ChangeCode, DataFile
from matcher.model.message import NOTHING, Cause, Count, Message, Number

MOST_COMMITS: Final = 1_000
"""A range of more commits is not read."""
MOST_BYTES: Final = 32 << 20
"""Nor one whose commits' files are larger together: each of its files would be held in memory."""

BOUNDED_FILES: Final = 32
"""Of so many files that a commit adds, the bounds of their columns are kept: those of more would
take megabytes, and most of them nobody asks for."""
_LONG: Final = 1 << 63

# What changes no row, beside the files themselves and the metadata, whose id counts.
_HARMLESS: Final = frozenset({"commitInfo", "protocol", "txn", "domainMetadata"})


@dataclass(frozen=True, slots=True)
class FileAction:
    """A file that a commit adds or removes.

    Args:
        file: The file.
        data_change: Whether the commit says that rows come or go by it.
    """

    file: DataFile
    data_change: bool


@dataclass(frozen=True, slots=True)
class BaseCommit:
    """One commit of a base table.

    Args:
        version: Its number.
        identity: As in `BaseState.commit`.
        made_ms: When it was made, in milliseconds since 1970: by the commit itself where the log
            keeps that, else by its file.
        table_id: The table's id where the commit sets the metadata; else None.
        unknown: The kinds of actions that nobody here knows.
        added: The files that it adds.
        removed: The files that it removes.
        change_rows: The files of the Change Data Feed that it writes; none where the feed follows
            from the others, and without one.
    """

    version: int
    identity: str
    made_ms: int
    table_id: str | None = None
    unknown: tuple[str, ...] = ()
    added: tuple[FileAction, ...] = ()
    removed: tuple[FileAction, ...] = ()
    change_rows: tuple[DataFile, ...] = ()


@dataclass(frozen=True, slots=True)
class CommitRange:
    """The commits after a version, up to one that a table is at, and the commit of that version.

    Args:
        before: The identity of that version's commit; empty if its file is gone from the log.
        before_ms: When that commit was made; None likewise.
        commits: The commits in order; none where they are refused.
        refused: Why the commits were not read; None if they were.
        detail: The same for people.
    """

    before: str = ""
    before_ms: int | None = None
    commits: tuple[BaseCommit, ...] = ()
    refused: ChangeCode | None = None
    detail: Message = NOTHING


class CommitsOf(Protocol):
    """Reads a range of commits from a table's log; never raises."""

    def __call__(self, table: TableAt, version: int) -> CommitRange:
        """The commits after a version.

        Args:
            table: The table, at the last version of the range.
            version: A version before that.
        """
        ...


def unreadable(why: object) -> CommitRange:
    """What is said where a log cannot be read now.

    Args:
        why: What went wrong, for people.
    """
    said = str(why).strip()
    cause = Cause(said.splitlines()[0][:200] if said else "no reason given")
    detail = Message("the log cannot be read ({cause})", cause=cause)
    return CommitRange(refused=ChangeCode.LOG_UNREADABLE, detail=detail)


def cleaned(version: int) -> CommitRange:
    """What is said where a commit is gone from the log.

    Args:
        version: The commit's number.
    """
    return CommitRange(
        refused=ChangeCode.LOG_CLEANED,
        detail=Message("commit {version} is gone from the log", version=Number(version)),
    )


def too_large(size: int) -> CommitRange:
    """What is said of a range whose files are too large to be held.

    Args:
        size: Their bytes.
    """
    return CommitRange(
        refused=ChangeCode.TOO_FAR_BEHIND,
        detail=Message(
            "the log of these commits has {size} MB, more than {most}",
            size=Count(size >> 20),
            most=Number(MOST_BYTES >> 20),
        ),
    )


def decode_range(text: str) -> CommitRange:
    """A range as `Ranges.java` tells it.

    Args:
        text: One line of JSON.
    """
    found = json.loads(text)
    if "gone" in found:
        return cleaned(found["gone"])
    if "bytes" in found:
        return too_large(found["bytes"])
    before, made = found["before"]
    return CommitRange(before, made, tuple(map(_decoded, found["commits"])))


def _decoded(row: list[Any]) -> BaseCommit:
    version, identity, made, table_id, unknown, added, removed, change_rows = row
    return BaseCommit(
        version,
        identity,
        made,
        table_id,
        tuple(unknown),
        tuple(map(_decoded_file, added)),
        tuple(map(_decoded_file, removed)),
        tuple(_decoded_file(file).file for file in change_rows),
    )


def _decoded_file(row: list[Any]) -> FileAction:
    path, vector, size, rows, partition, bounds, data_change = row
    pairs = {name: (low, high) for name, (low, high) in bounds.items()}
    return FileAction(DataFile(path, vector, size, rows, partition, pairs), data_change)


def reduced(
    version: int, identity: str, made_ms: int, actions: Iterable[Mapping[str, Any]]
) -> BaseCommit:
    """A commit from the actions of its file.

    Args:
        version: Its number.
        identity: As in `BaseState.commit`.
        made_ms: When it was made.
        actions: Its lines, each an object whose keys are the kinds of its actions.
    """
    table_id: str | None = None
    unknown: dict[str, None] = {}
    added: list[FileAction] = []
    removed: list[FileAction] = []
    change_rows: list[DataFile] = []
    for line in actions:
        for kind, action in line.items():
            if kind == "add":
                added.append(_file(action, bounded=len(added) < BOUNDED_FILES))
            elif kind == "remove":
                removed.append(_file(action, bounded=False))
            elif kind == "cdc":
                change_rows.append(_file(action, bounded=False).file)
            elif kind == "metaData":
                table_id = str(action["id"])
            elif kind not in _HARMLESS:
                unknown[kind] = None
    return BaseCommit(
        version,
        identity,
        made_ms,
        table_id,
        tuple(unknown),
        tuple(added),
        tuple(removed),
        tuple(change_rows),
    )


def _file(action: Mapping[str, Any], *, bounded: bool) -> FileAction:
    vector = action.get("deletionVector")
    stats: Mapping[str, Any] = json.loads(action.get("stats") or "{}")
    file = DataFile(
        str(action["path"]),
        "" if vector is None else _vector_id(vector),
        int(action.get("size") or 0),
        _rows(stats, vector),
        action.get("partitionValues") or {},
        bounds_said(stats) if bounded else {},
    )
    return FileAction(file, bool(action.get("dataChange", True)))


def _vector_id(vector: Mapping[str, Any]) -> str:
    """As Delta makes it (`DeletionVectorDescriptor.uniqueId`)."""
    name = f"{vector['storageType']}{vector['pathOrInlineDv']}"
    offset = vector.get("offset")
    return name if offset is None else f"{name}@{offset}"


def _rows(stats: Mapping[str, Any], vector: Mapping[str, Any] | None) -> int | None:
    """The statistics count also the rows that the vector hides."""
    count = stats.get("numRecords")
    if count is None:
        return None
    return int(count) - (0 if vector is None else int(vector["cardinality"]))


def bounds_said(stats: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """The least and the greatest value of whole numbers in a file, whatever the type of their
    column, by its physical name; those of a vector's rows among them.

    Args:
        stats: What the log says of the file.

    >>> bounds_said({"numRecords": 2, "minValues": {"a": -1, "b": "x"}, "maxValues": {"a": 5}})
    {'a': (-1, 5)}
    """
    low, high = stats.get("minValues") or {}, stats.get("maxValues") or {}
    found = {n: (low[n], high[n]) for n in low if _is_long(low[n]) and _is_long(high.get(n))}
    rows, nulls = stats.get("numRecords"), stats.get("nullCount") or {}
    if _is_long(rows):
        said = low.keys() | high.keys()
        all_null = [n for n, count in nulls.items() if _is_long(count) and count == rows]
        found |= dict.fromkeys((n for n in all_null if n not in said), (0, 0))
    return found


def _is_long(value: object) -> bool:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole and -_LONG <= value < _LONG  # type: ignore[operator]
