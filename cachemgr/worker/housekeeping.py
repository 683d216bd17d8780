"""Once a minute: what is too old in the metastore is forgotten, files that nobody reads go, and
files that are gone are noticed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from cachemgr.delta.storage import Files
from cachemgr.delta.stored_files import StoredFiles
from cachemgr.metastore.store import Metastore
from cachemgr.statements.tidy import Tidy
from cachemgr.telemetry import logger

# A look ends soon, since a process that stops waits for it; the next one goes on.
_MOST_PORTIONS: Final = 20
_MOST_LOOKED_AT: Final = 200


class Housekeeping:
    """What a worker does about files, a portion at a time.

    Args:
        metastore: Where the caches are.
        files_of: The storage of a place.
        grace_seconds: How long queries that were planned before may run (`dropGrace`).
    """

    def __init__(
        self, metastore: Metastore, files_of: Callable[[str], Files], grace_seconds: int
    ) -> None:
        self._metastore = metastore
        self._stored = StoredFiles(files_of)
        self._tidy = Tidy(metastore, files_of, lambda: grace_seconds)
        self._next = ""

    def look(self) -> None:
        """One look at the files of all caches."""
        self.look_for_damage()
        deleted, purged = self._tidy.look(), self._tidy.purge()
        if deleted or purged:
            logger.info("deleted %d files, and the folders of %d caches", deleted, purged)

    def look_for_damage(self, most: int = _MOST_LOOKED_AT) -> int:
        """Look for the files that caches serve from, and note down where some are gone.

        Args:
            most: At so many caches; the next look goes on with the next ones.

        Returns:
            How many were found damaged.
        """
        found = 0
        caches = [c for c in self._metastore.reader.caches() if c.damaged is None]
        caches.sort(key=lambda c: (c.id <= self._next, c.id))
        published = {c.published_refresh_id for c in caches[:most] if c.published_refresh_id}
        snapshots = self._metastore.reader.snapshots(published)
        for cache in caches[:most]:
            self._next = cache.id
            snapshot = snapshots.get(cache.published_refresh_id or "")
            version = None if snapshot is None else snapshot.run.cache_version
            what = "" if version is None else self._stored.look(cache.location, version)
            if what and snapshot is not None:
                found += self._metastore.writer.note_damage(cache.id, snapshot.run.id, what)
                logger.error("cache %s is damaged: %s", cache.qualified_name, what)
        return found


def forget_the_past(metastore: Metastore, days: int) -> int:
    """Delete runs of refreshes and decisions that are older than so many days.

    Args:
        metastore: Where they are.
        days: How many; see `HistoryWrites` for what is kept however old it is.

    Returns:
        How many were deleted.
    """
    before = metastore.reader.now() - timedelta(days=days)
    writer = metastore.writer
    runs = _portions(writer.prune_runs, before)
    decisions = _portions(writer.prune_decisions, before)
    if runs or decisions:
        logger.info("deleted %d runs and %d decisions of before %s", runs, decisions, before)
    return runs + decisions


def _portions(prune: Callable[[datetime], int], before: datetime) -> int:
    total = 0
    for _ in range(_MOST_PORTIONS):
        deleted = prune(before)
        total += deleted
        if not deleted:
            break
    return total
