"""The head of a Delta log in a local folder, read without Spark: two looks at the file system while
nothing was committed.

Commits are numbered without gaps, and their files are complete once they are seen. So the table
stands at version v while file v is the one that was looked at before and file v + 1 does not exist.
A table that was dropped and created again has another file v: other inode, time or size. Only
commits that are new are read, for a change of the columns.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from cachemgr.metastore.records import BaseTableRecord
from cachemgr.text.table_head import TableHead, head_of

_Stamp = tuple[int, int, int]
_TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class _Known:
    """A table at the version of a commit file that was seen."""

    table: TableHead
    stamp: _Stamp


class LocalLog:
    """The log of one table.

    Args:
        location: The table's place, a `file:` URI.
    """

    def __init__(self, location: str) -> None:
        self._folder = os.path.join(unquote(urlsplit(location).path), "_delta_log")
        self._known: _Known | None = None
        self._lock = threading.Lock()

    def head(self, seed: BaseTableRecord) -> TableHead | None:
        """The table as it is now.

        Args:
            seed: The table as somebody saw it once.

        Returns:
            The table; None if its log does not say, being gone or cut off before its schema.

        Raises:
            OSError: The folder cannot be read.
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

    def first_commit_after(self, version: int) -> int | None:
        """When the first commit after a version was made.

        Returns:
            Milliseconds since 1970; None if there is none yet, 0 if its file is gone already, so
            that a lag computed from it is never too small.
        """
        if self._stamp(version + 1) is not None:
            return self._time(version + 1)
        later = [v for v in self._versions() if v > version]
        return 0 if later else None

    def _still_there(self) -> _Known | None:
        known = self._known
        if known is None or self._stamp(known.table.version) != known.stamp:
            return None
        return known

    def _from_seed(self, seed: BaseTableRecord) -> _Known | None:
        stamp = self._stamp(seed.version)
        if stamp is None:
            return None
        # a table created again has made its commit of that number at another time
        same = stamp[1] // 1_000_000 == seed.commit_timestamp_ms
        if not same and self._time(seed.version) != seed.commit_timestamp_ms:
            return None
        return _Known(head_of(seed), stamp)

    def _from_log(self, seed: BaseTableRecord) -> _Known | None:
        versions = sorted(self._versions(), reverse=True)
        if not versions:
            return None
        newest = versions[0]
        stamp = self._stamp(newest)
        for expected, version in zip(range(newest, -1, -1), versions, strict=False):
            metadata = self._metadata(version) if version == expected else None
            if version != expected or stamp is None:
                return None
            if metadata is not None:
                table = _changed(head_of(seed), metadata)
                return _Known(replace(table, version=newest), stamp)
        return None

    def _forward(self, known: _Known) -> _Known:
        table, stamp = known.table, known.stamp
        while (following := self._stamp(table.version + 1)) is not None:
            metadata = self._metadata(table.version + 1)
            if metadata is not None:
                table = _changed(table, metadata)
            table = replace(table, version=table.version + 1)
            stamp = following
        return known if table is known.table else _Known(table, stamp)

    def _file(self, version: int) -> str:
        return f"{self._folder}/{version:020d}.json"

    def _stamp(self, version: int) -> _Stamp | None:
        try:
            found = os.stat(self._file(version))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def _versions(self) -> list[int]:
        try:
            names = os.listdir(self._folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        # a checkpoint ahead of all commits means that these are gone
        found = [n.split(".", 1) for n in names if n[:20].isdigit() and n[20:21] == "."]
        commits = [int(v) for v, kind in found if kind == "json"]
        checkpoints = [int(v) for v, kind in found if kind.startswith("checkpoint")]
        return commits if max(checkpoints, default=-1) <= max(commits, default=-1) else []

    def _actions(self, version: int, name: str) -> Iterator[dict[str, Any]]:
        mark = f'"{name}"'
        with open(self._file(version), encoding="utf-8") as lines:
            for line in lines:
                if mark in line:
                    action = json.loads(line)
                    if name in action:
                        yield action[name]

    def _metadata(self, version: int) -> dict[str, Any] | None:
        return next(self._actions(version, "metaData"), None)

    def _time(self, version: int) -> int:
        """As Delta does: the time in the commit where it is kept there, else the file's own."""
        for info in self._actions(version, "commitInfo"):
            written = info.get("inCommitTimestamp")
            if written is not None:
                return int(written)
        stamp = self._stamp(version)
        return 0 if stamp is None else stamp[1] // 1_000_000


def _changed(table: TableHead, metadata: dict[str, Any]) -> TableHead:
    return replace(table, table_id=str(metadata["id"]), columns=str(metadata["schemaString"]))
