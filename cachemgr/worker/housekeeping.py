"""Once a minute: what is too old in the metastore is forgotten, files that nobody reads go, and
files that are gone are noticed."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from cachemgr.delta.storage import Files
from cachemgr.delta.stored_files import StoredFiles
from cachemgr.metastore.records import CacheRecord, is_seen_by_looks
from cachemgr.metastore.store import Metastore
from cachemgr.statements.tidy import Tidy
from cachemgr.telemetry import logger

# A look ends soon, since a process that stops waits for it; the next one goes on.
_MOST_PORTIONS: Final = 20
_MOST_LOOKED_AT: Final = 200
_MOST_SECONDS_AWAY: Final = 20.0


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
        self._unread: set[str] = set()
        self._next = ""

    def look(self) -> None:
        """One look at the files of all caches."""
        self.look_for_damage()
        deleted, purged = self._tidy.look(), self._tidy.purge()
        if deleted or purged:
            logger.info("deleted %d files, and the folders of %d caches", deleted, purged)

    def look_for_damage(self, most: int = _MOST_LOOKED_AT) -> int:
        """Look at the files that caches serve from, note down where some are gone, and take that
        back where they are there again. A storage that cannot be asked says nothing of them.

        Args:
            most: At so many caches; the next look goes on with the next ones.

        Returns:
            How many were found damaged.
        """
        found, unread = 0, 0.0
        caches = sorted(self._metastore.caches.all(), key=lambda c: (c.id <= self._next, c.id))
        published = {c.published_refresh_id for c in caches[:most] if c.published_refresh_id}
        snapshots = self._metastore.snapshots.by_ids(published)
        for cache in caches[:most]:
            if unread > _MOST_SECONDS_AWAY:
                break  # a storage that takes long to say no must not keep what else is to be done
            self._next = cache.id
            snapshot = snapshots.get(cache.published_refresh_id or "")
            if snapshot is None or snapshot.run.cache_version is None:
                continue
            began = time.monotonic()
            files = self._stored.look(cache.location, snapshot.run.cache_version)
            if files.unread:
                unread += time.monotonic() - began
                if cache.id not in self._unread:  # said once while it lasts
                    self._unread.add(cache.id)
                    name, why = cache.qualified_name, files.unread
                    logger.warning("the files of cache %s cannot be looked at: %s", name, why)
                continue
            self._unread.discard(cache.id)
            found += self._note(cache, snapshot.run.id, files.damage)
        return found

    def _note(self, cache: CacheRecord, refresh_id: str, damage: str) -> bool:
        """Whether damage was noted that was not known."""
        known = cache.damaged
        if damage and known is None:
            logger.error("cache %s is damaged: %s", cache.qualified_name, damage)
            return self._metastore.snapshots.note_damage(cache.id, refresh_id, damage)
        if not damage and known is not None and is_seen_by_looks(known):
            if self._metastore.snapshots.lift_damage(cache.id, refresh_id, known):
                logger.info("cache %s has all its files again", cache.qualified_name)
        return False


def forget_the_past(metastore: Metastore, days: int) -> int:
    """Delete runs of refreshes and decisions that are older than so many days.

    Args:
        metastore: Where they are.
        days: How many; see `HistoryWrites` for what is kept however old it is.

    Returns:
        How many were deleted.
    """
    before = metastore.clock.now() - timedelta(days=days)
    runs = _portions(metastore.refreshes.prune, before)
    decisions = _portions(metastore.decisions.prune, before)
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
