"""What the metastore knows of each cache, written beside the caches' tables after each change.

A Delta log says what was committed. It does not say what was published: a stale replica's commit
may stand at the head; nor that a cache was renamed, paused, granted or dropped since. So each
change of the metastore leaves one record under the caches' root, named by its revision, from which
`rebuild` and the logs make the metastore again. Records are written after the change is stored: a
crash in between loses the record alone, and the next look of any worker writes it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from cachemgr.journal.files import Files, LocalFiles
from cachemgr.metastore.dump import FORMAT, CacheDump, Dumped
from cachemgr.metastore.store import Metastore
from cachemgr.names import absolute_location, is_local
from cachemgr.telemetry import Telemetry

FOLDER: Final = "_relational_caches"
SHARED: Final = "shared-"


def records_of(location: str) -> str:
    """The folder of a cache's records.

    Args:
        location: Where the cache's table is: its root and its id, and a number if it was moved.
    """
    root, _, folder = location.rpartition("/")
    return f"{root}/{FOLDER}/{folder.partition('-')[0]}"


def keep_journal(
    metastore: Metastore,
    location: str,
    others: Callable[[], Files] | None = None,
    *,
    since: int | None = None,
) -> Journal:
    """Write a record after each change made through `metastore` from now on.

    Args:
        metastore: The metastore.
        location: The root under which the shared record is kept: the process's own.
        others: Files that are not on this machine; None leaves those to processes that reach them.
        since: Also what changed after this revision; None only what changes from now on.

    Returns:
        The journal, to have it look for others' changes as well.
    """
    journal = Journal(metastore, location, others, since=since)
    metastore.writer.after_change = journal.catch_up
    return journal


class Journal:
    """Follows the metastore; see `keep_journal`."""

    def __init__(
        self,
        metastore: Metastore,
        location: str,
        others: Callable[[], Files] | None,
        *,
        since: int | None,
    ) -> None:
        self._metastore = metastore
        self._root = f"{absolute_location(location)}/{FOLDER}"
        self._others = others
        self._local = LocalFiles()
        self._telemetry = Telemetry()
        self._lock = threading.Lock()
        self._done = metastore.reader.revision() if since is None else since
        self._shared: str | None = None

    def catch_up(self) -> None:
        """Write what changed since the last time. Never raises: the change itself is done."""
        with self._lock:
            try:
                if self._metastore.reader.revision() == self._done:
                    return
                dumped = self._metastore.reader.dump(self._done)
                for cache in dumped.caches:
                    self._write(records_of(cache.location), cache.revision, _cache_text(cache))
                self._write_shared(dumped)
                self._done = dumped.revision
            except Exception as error:  # said, and tried again with the next change
                self._telemetry.warn_once(
                    f"journal {type(error).__name__} {error}",
                    f"what `cachemgr db rebuild` needs could not be written: {error}",
                )

    def _write_shared(self, dumped: Dumped) -> None:
        shared = json.dumps(dumped.lasting, sort_keys=True)
        if shared != self._shared:
            at = self._metastore.reader.now().isoformat()
            text = json.dumps({"format": FORMAT, "at": at, "shared": dumped.shared})
            # A metastore that was begun anew counts its revisions from the start.
            self._write(f"{self._root}/{SHARED}{dumped.epoch}", dumped.revision, text)
            self._shared = shared

    def _write(self, folder: str, revision: int, text: str) -> None:
        files = self._files(folder)
        if files is None:
            return
        # Named by the change that the text tells of: of two processes that write, the later
        # state wins, whoever is last.
        name = f"{revision:020d}.json"
        found = [n for n in files.names(folder) if n.endswith(".json")]
        if any(other >= name for other in found):
            return
        files.write(f"{folder}/{name}", text)
        for other in found:
            files.delete(f"{folder}/{other}")

    def _files(self, folder: str) -> Files | None:
        if is_local(folder):
            return self._local
        return None if self._others is None else self._others()


def _cache_text(cache: CacheDump) -> str:
    content: Mapping[str, Any] = {
        "format": FORMAT,
        "revision": cache.revision,
        "location": cache.location,
        "rows": cache.rows,
    }
    return json.dumps(content, sort_keys=True)
