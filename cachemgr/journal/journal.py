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
import time
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, Final

from cachemgr.delta.places import absolute_location, is_local
from cachemgr.delta.storage import Files, LocalFiles, is_folder
from cachemgr.metastore.dumps import FORMAT, CacheDump, Dumped
from cachemgr.metastore.masked import masked_rows
from cachemgr.metastore.store import Metastore
from cachemgr.telemetry import Telemetry

FOLDER: Final = "_relational_caches"
SHARED: Final = "shared-"
# So many of the records that could not be written are tried again with each look.
_AGAIN: Final = 100
_AGAIN_SECONDS: Final = 10.0


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
    metastore.transactions.after_change = journal.catch_up
    return journal


def write_missing(metastore: Metastore, location: str) -> None:
    """Write the records that are missing or behind on this machine, as after an upgrade from a
    release that wrote none. Never raises: a service writes them as well, when it starts.

    Args:
        metastore: The metastore.
        location: The root of the service's settings.
    """
    caches = metastore.caches.all()
    roots = [location, *(cache.location.rpartition("/")[0] for cache in caches)]
    found = [root for root in map(absolute_location, roots) if is_local(root) and is_folder(root)]
    if caches and found:  # a machine without the caches' folders gets none
        Journal(metastore, found[0], None, since=0).catch_up()


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
        self._done = metastore.registry.revision() if since is None else since
        self._shared: str | None = None
        self._shared_late = False
        # Ids of caches whose records could not be written, that which waits longest first.
        self._late: dict[str, None] = {}
        self._again_at = 0.0

    def catch_up(self) -> None:
        """Write what changed since the last time, and what could not be written before. Never
        raises: the change itself is done."""
        with self._lock:
            try:
                late = bool(self._late) or self._shared_late
                waits = not late or time.monotonic() < self._again_at
                if waits and self._metastore.registry.revision() == self._done:
                    return
                again = tuple(islice(self._late, _AGAIN))
                dumped = self._metastore.dumps.take(self._done, again)
            except Exception as error:  # said, and tried again with the next change
                self._warn("what", "", error)
                return
            self._write_caches(dumped, again)
            self._write_shared(dumped)
            self._done = dumped.revision
            self._again_at = time.monotonic() + _AGAIN_SECONDS

    def _write_caches(self, dumped: Dumped, again: tuple[str, ...]) -> None:
        """Each for itself: one that cannot be written keeps no other from being written."""
        found = {dump.cache["id"]: dump for dump in dumped.caches}
        # those that failed before come last: a storage that is away takes long to say so
        order = {cache_id: place for place, cache_id in enumerate(again)}
        for cache_id in again:
            if cache_id not in found:  # purged meanwhile
                del self._late[cache_id]
        away: set[str] = set()
        for cache_id, dump in sorted(found.items(), key=lambda pair: order.get(pair[0], -1)):
            root = dump.location.rpartition("/")[0]
            failed = root in away
            if not failed:
                try:
                    place = records_of(dump.location)
                    self._write(place, dump.revision, _cache_text(dump), dump.metastore)
                except Exception as error:
                    failed = True
                    self._warn(f"the record of cache {_name(dump)}", f" below {root}", error)
                    if not is_local(root):
                        away.add(root)
            self._late.pop(cache_id, None)
            if failed:
                self._late[cache_id] = None

    def _write_shared(self, dumped: Dumped) -> None:
        shared = json.dumps(dumped.lasting, sort_keys=True)
        self._shared_late = False
        if shared == self._shared:
            return
        try:
            at = self._metastore.clock.now().isoformat()
            text = json.dumps({"format": FORMAT, "at": at, "shared": dumped.shared})
            # A metastore that was begun anew counts its revisions from the start.
            place = f"{self._root}/{SHARED}{dumped.epoch}"
            self._write(place, dumped.revision, text, dumped.epoch)
            self._shared = shared
        except Exception as error:
            self._warn("the record of joins and tables", f" below {self._root}", error)
            self._shared_late = True

    def _warn(self, what: str, where: str, error: Exception) -> None:
        """Once for each thing that cannot be written, however often it is tried again."""
        told = str(error).strip().splitlines() or [type(error).__name__]
        self._telemetry.warn_once(
            f"journal {what} {type(error).__name__}",
            f"{what} that `cachemgr db rebuild` needs could not be written{where}: {told[0]}; it "
            "is tried again: let this process write there",
        )

    def _write(self, folder: str, revision: int, text: str, epoch: str) -> None:
        files = self._files(folder)
        if files is None:
            return
        # Named by the change that the text tells of: of two processes that write, the later
        # state wins, whoever is last.
        name = f"{revision:020d}.json"
        found = [n for n in files.names(folder) if n.endswith(".json")]
        newest = max(found, default="")
        if newest >= name:
            if newest > name and _epoch_of(files.read(f"{folder}/{newest}")) not in ("", epoch):
                root = folder.rpartition("/")[0]
                self._telemetry.warn_once(
                    f"journal taken over {root}",
                    f"the records under {root} are another metastore's now, and this one's are not "
                    "written: `cachemgr db check` says what to do",
                )
            return
        files.write(f"{folder}/{name}", text)
        for other in found:
            files.delete(f"{folder}/{other}")

    def _files(self, folder: str) -> Files | None:
        if is_local(folder):
            return self._local
        return None if self._others is None else self._others()


def _epoch_of(text: str | None) -> str:
    """The metastore that a cache's record is of; empty where it does not tell."""
    try:
        return str(json.loads(text or "{}").get("metastore") or "")
    except (ValueError, AttributeError):  # it is damaged, and gives way to the next
        return ""


def _name(dump: CacheDump) -> str:
    namespace, name = dump.cache["namespace"], dump.cache["name"]
    return f"{namespace}.{name}" if namespace else str(name)


def _cache_text(cache: CacheDump) -> str:
    content: Mapping[str, Any] = {
        "format": FORMAT,
        "revision": cache.revision,
        "location": cache.location,
        "metastore": cache.metastore,
        "rows": masked_rows(cache.rows),
    }
    return json.dumps(content, sort_keys=True)
