"""The head of a Delta log in a local folder, read without Spark: two looks at the file system while
nothing was committed.

Commits are numbered without gaps, and their files are complete once they are seen. So the table
stands at version v while file v is the one that was looked at before and file v + 1 does not exist.
A table that was dropped and created again, or put back from a copy, has another file v: other
inode, time or size. Only commits that are new are read, for a change of the columns and for their
identity, which `Commits.java` says in the same words.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import threading
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from cachemgr.base_state import TableAt
from cachemgr.delta.base_commits import (
    MOST_BYTES,
    BaseCommit,
    CommitRange,
    cleaned,
    reduced,
    too_large,
    unreadable,
)
from cachemgr.delta.past import Past
from matcher.memory.bounded import Bounded

_Stamp = tuple[int, int, int]
_TRIES: Final = 3
# of one table; a commit of many files takes megabytes and is read again for another snapshot
_MOST_COMMITS_KEPT: Final = 200
_MOST_FILES_KEPT: Final = 1_000
# Table features by which commits go to a catalog first, and to the log when it pleases.
_BY_CATALOG: Final = frozenset(
    {"catalogManaged", "catalogOwned-preview", "coordinatedCommits-preview"}
)
_MARKS: Final = (b'"metaData"', b'"commitInfo"', b'"protocol"')
UNREADABLE: Final = (
    OSError,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    ArithmeticError,
    RecursionError,
)
"""What reading a log may raise that somebody else has written, or damaged."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A table at the version of a commit file that was seen."""

    table: TableAt
    stamp: _Stamp


@dataclass(frozen=True, slots=True)
class _Commit:
    """What a commit's file says; `made_ms` is None where the file's own time counts."""

    identity: str
    made_ms: int | None
    metadata: dict[str, Any] | None


class LocalLog:
    """The log of one table.

    Args:
        location: The table's place, a `file:` URI.
    """

    def __init__(self, location: str) -> None:
        self._folder = os.path.join(unquote(urlsplit(location).path), "_delta_log")
        self._known: _Known | None = None
        self._commits: Bounded[tuple[_Stamp, BaseCommit]] = Bounded(_MOST_COMMITS_KEPT)
        self._lock = threading.Lock()

    def head(self, seed: TableAt) -> TableAt | None:
        """The table as it is now.

        Args:
            seed: The table as somebody saw it once.

        Returns:
            The table; None if its log does not say, being gone or cut off before its schema.

        Raises:
            One of UNREADABLE: The folder or a commit cannot be read.
        """
        known = self._known
        # In this order: file v is still there after v + 1 was not, so v was the head in between.
        # Without a lock, since every answer passes here.
        if known is not None and self._stamp(known.table.version + 1) is None:
            if self._stamp(known.table.version) == known.stamp:
                return known.table
        with self._lock:
            for _ in range(_TRIES):
                known = self._still_there() or self._from_seed(seed) or self._from_log(seed)
                if known is None:
                    break
                found = self._forward(known)
                # the table may have been created again between the two looks
                if self._stamp(known.table.version) == known.stamp:
                    self._known = found
                    return found.table
            self._known = None
            return None

    def is_gone(self) -> bool:
        """Whether the log is no more, in a place that can be looked at.

        Raises:
            OSError: The place cannot be asked.
        """
        try:
            return not stat.S_ISDIR(os.stat(self._folder).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return os.path.isdir(os.path.dirname(os.path.dirname(self._folder)))

    def newest(self) -> int | None:
        """The number of the newest version, by the names of the log's files alone; None where there
        are none.

        Raises:
            OSError: The folder cannot be asked.
        """
        return max((int(name[:20]) for name in self._names()), default=None)

    def past(self, table: TableAt, version: int, *, columns_then: bool) -> Past:
        """A version that the table is past; see `cachemgr.serving.freshness.PastOf`.

        Args:
            table: The table as `head` gave it.
            version: A version before that.
            columns_then: Whether the schema at that version is asked for.
        """
        commit, made = "", None
        if (stamp := self._stamp(version)) is not None:
            found = self._read(version)
            commit, made = found.identity, _made(found, stamp)
        following = self._stamp(version + 1)
        # as Delta does: the time in the commit where it is kept there, else the file's own
        first = 0 if following is None else _made(self._read(version + 1), following)
        then = self._columns_at(version) if columns_then else None
        return Past(commit, made, first, table.columns, then)

    def commits(self, table: TableAt, version: int) -> CommitRange:
        """The commits after a version; see `cachemgr.delta.base_commits.CommitsOf`.

        Args:
            table: The table as `head` gave it.
            version: A version before that.
        """
        try:
            return self._range(version, table.version)
        except UNREADABLE as error:
            return unreadable(error)

    def _range(self, since: int, last: int) -> CommitRange:
        stamps: dict[int, _Stamp] = {}
        for version in range(since + 1, last + 1):
            stamp = self._stamp(version)
            if stamp is None:
                return cleaned(version)
            stamps[version] = stamp
        size = sum(stamp[2] for stamp in stamps.values())
        if size > MOST_BYTES:
            return too_large(size)
        before, made = "", None
        if (stamp := self._stamp(since)) is not None:
            commit = self._read(since)
            before, made = commit.identity, _made(commit, stamp)
        # the last one comes last: it is the one that tells this history from another
        return CommitRange(before, made, tuple(self._reduced(v, s) for v, s in stamps.items()))

    def _reduced(self, version: int, stamp: _Stamp) -> BaseCommit:
        known = self._commits.get(version)
        if known is not None and known[0] == stamp:
            return known[1]
        commit = self._read(version)
        with open(self._file(version), "rb") as lines:
            actions = (json.loads(line) for line in lines if not line.isspace())
            found = reduced(version, commit.identity, _made(commit, stamp), actions)
        if len(found.added) + len(found.removed) <= _MOST_FILES_KEPT:
            self._commits.put(version, (stamp, found))
        return found

    def _still_there(self) -> _Known | None:
        known = self._known
        if known is None or self._stamp(known.table.version) != known.stamp:
            return None
        return known

    def _from_seed(self, seed: TableAt) -> _Known | None:
        stamp = self._stamp(seed.version)
        if stamp is None:
            return None
        commit = self._read(seed.version)
        # a table created again has made its commit of that number at another time
        if seed.timestamp_ms not in (_file_ms(stamp), _made(commit, stamp)):
            return None
        return _known(seed, seed.version, commit, stamp)

    def _from_log(self, seed: TableAt) -> _Known | None:
        versions = sorted(self._versions(), reverse=True)
        if not versions:
            return None
        newest = versions[0]
        stamp = self._stamp(newest)
        head: _Commit | None = None
        for expected, version in zip(range(newest, -1, -1), versions, strict=False):
            commit = self._read(version) if version == expected else None
            if commit is None or stamp is None:
                return None
            head = head or commit
            if commit.metadata is not None:
                return _known(_changed(seed, commit.metadata), newest, head, stamp)
        return None

    def _forward(self, known: _Known) -> _Known:
        table, found = known.table, known
        while (following := self._stamp(found.table.version + 1)) is not None:
            commit = self._read(found.table.version + 1)
            if commit.metadata is not None:
                table = _changed(table, commit.metadata)
            found = _known(table, found.table.version + 1, commit, following)
        return found

    def _columns_at(self, version: int) -> str | None:
        """The schema at a version; None if the log does not reach back to where it was set."""
        while self._stamp(version) is not None:
            metadata = self._read(version).metadata
            if metadata is not None:
                return str(metadata["schemaString"])
            version -= 1
        return None

    def _file(self, version: int) -> str:
        return f"{self._folder}/{version:020d}.json"

    def _stamp(self, version: int) -> _Stamp | None:
        try:
            found = os.stat(self._file(version))
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not stat.S_ISREG(found.st_mode):  # a pipe would keep who reads it waiting
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def _names(self) -> list[str]:
        """The files of commits and checkpoints, each begins with the number of its version."""
        try:
            names = os.listdir(self._folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [
            n for n in names if n[:20].isdigit() and n[20:].startswith((".json", ".checkpoint"))
        ]

    def _versions(self) -> list[int]:
        # a checkpoint ahead of all commits means that these are gone
        found = [name.split(".", 1) for name in self._names()]
        commits = [int(v) for v, kind in found if kind == "json"]
        checkpoints = [int(v) for v, kind in found if kind.startswith("checkpoint")]
        return commits if max(checkpoints, default=-1) <= max(commits, default=-1) else []

    def _read(self, version: int) -> _Commit:
        digest = hashlib.sha256()
        found: dict[str, dict[str, Any]] = {}
        with open(self._file(version), "rb") as lines:
            for line in lines:
                digest.update(line)
                if any(mark in line for mark in _MARKS):
                    found = json.loads(line) | found
        features = (found.get("protocol") or {}).get("writerFeatures") or ()
        if not _BY_CATALOG.isdisjoint(features):
            raise ValueError(f"from version {version} its commits are managed by a catalog")
        info = found.get("commitInfo") or {}
        transaction = info.get("txnId")
        written = info.get("inCommitTimestamp")
        return _Commit(
            f"txn:{transaction}" if transaction else f"sha256:{digest.hexdigest()}",
            None if written is None else int(written),
            found.get("metaData"),
        )


def _known(table: TableAt, version: int, commit: _Commit, stamp: _Stamp) -> _Known:
    made = _made(commit, stamp)
    return _Known(replace(table, version=version, commit=commit.identity, timestamp_ms=made), stamp)


def _made(commit: _Commit, stamp: _Stamp) -> int:
    return _file_ms(stamp) if commit.made_ms is None else commit.made_ms


def _file_ms(stamp: _Stamp) -> int:
    return stamp[1] // 1_000_000


def _changed(table: TableAt, metadata: dict[str, Any]) -> TableAt:
    return replace(table, table_id=str(metadata["id"]), columns=str(metadata["schemaString"]))
