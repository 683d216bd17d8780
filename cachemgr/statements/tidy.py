"""Files that nobody reads any more: those that refreshes replaced, those of writes that failed, and
the folders of caches that were dropped.

Which files a refresh replaced its own commit says, in `remove` actions, so no folder has to be
listed for them (Delta's VACUUM lists, and costs half a minute of jobs). A file stays while a
version that holds it is served, was served within the grace (a query that was planned then may
still run), or may be read by a refresh that runs. What stands in no commit, as a write that failed
leaves it, is found by listing: once in a process, and again after each refresh that failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from cachemgr.delta.commits import Commit, parse_commit
from cachemgr.delta.storage import FileInfo, Files, root_of, under
from cachemgr.journal.journal import records_of
from cachemgr.metastore.records import CacheRecord, ScheduleRecord
from cachemgr.metastore.store import Metastore
from cachemgr.telemetry import logger
from cachemgr.vocabulary import RefreshMode, RunState

MOST_FILES: Final = 2_000


@dataclass
class _Seen:
    """How far one cache was tidied: the version up to whose commit, the last failed refresh whose
    files were looked for, and the state at which nothing was left to do.
    """

    version: int = -1
    failed: str | None = None
    is_swept: bool = False
    settled: tuple[str | None, ...] | None = None


@dataclass
class _Budget:
    """What one look may still delete."""

    left: int
    deleted: int = field(default=0, init=False)

    def take(self) -> bool:
        """One more; False if it is used up."""
        self.left -= 1
        self.deleted += 1
        return self.left >= 0


class Tidy:
    """Deletes what is over; see the module.

    Args:
        metastore: What is published, and what runs.
        files_of: The storage of a place.
        grace_seconds: How long queries that were planned before may run (`dropGrace`).
        now: The clock; the metastore's own unless given.
    """

    def __init__(
        self,
        metastore: Metastore,
        files_of: Callable[[str], Files],
        grace_seconds: Callable[[], int],
        now: Callable[[], datetime] | None = None,
    ) -> None:
        self._metastore = metastore
        self._files_of = files_of
        self._grace_seconds = grace_seconds
        self._now = now or metastore.clock.now
        self._seen: dict[str, _Seen] = {}
        self._next = ""

    def look(self, most: int = MOST_FILES) -> int:
        """Tidy all caches, one after the other, and go on with the next ones another time.

        Args:
            most: How many files to delete at most.

        Returns:
            How many files were deleted.
        """
        records = self._metastore.schedules.all()
        places = {r.cache.location for r in records}
        self._seen = {place: seen for place, seen in self._seen.items() if place in places}
        budget = _Budget(most)
        for record in sorted(records, key=lambda r: (r.cache.id <= self._next, r.cache.id)):
            if budget.left <= 0:
                break
            self._guarded(record, records, budget)
            self._next = record.cache.id
        return budget.deleted

    def cache(self, cache_id: str, most: int = MOST_FILES) -> int:
        """Tidy one cache; see `look`."""
        records = self._metastore.schedules.all()
        budget = _Budget(most)
        for record in records:
            if record.cache.id == cache_id:
                self._guarded(record, records, budget)
        return budget.deleted

    def purge(self) -> int:
        """Forget the caches that were dropped longer ago than the grace, with their files.

        One whose files cannot be deleted here keeps no other, and is tried again.

        Returns:
            How many.
        """
        before = self._now() - timedelta(seconds=self._grace_seconds())
        gone = [
            cache
            for cache in self._metastore.caches.all(include_dropped=True)
            if cache.dropped_at is not None and cache.dropped_at <= before
        ]
        return sum(map(self._is_purged, gone))

    def _is_purged(self, cache: CacheRecord) -> bool:
        try:
            files = self._files_of(cache.location)
            for folder in self._places(files, cache):
                files.delete_folder(folder)
            files.delete_folder(records_of(cache.location))
            self._metastore.caches.purge(cache.id)
        except Exception as error:
            name = cache.qualified_name
            logger.warning("files of the dropped cache %s cannot be deleted: %s", name, error)
            return False
        return True

    def _guarded(
        self, record: ScheduleRecord, records: Sequence[ScheduleRecord], budget: _Budget
    ) -> None:
        try:
            self._tidy(record, records, budget)
        except Exception as error:  # one folder that cannot be read keeps no other full
            name = record.cache.qualified_name
            logger.warning("files of cache %s cannot be tidied: %s", name, error)

    def _tidy(
        self, record: ScheduleRecord, records: Sequence[ScheduleRecord], budget: _Budget
    ) -> None:
        cache, last = record.cache, record.last
        if not root_of(cache.location).rpartition("/")[2].startswith(cache.id):
            return  # a folder that is not the cache's own by its name is nobody's to empty
        seen = self._seen.setdefault(cache.location, _Seen())
        state = (cache.published_refresh_id, None if last is None else last.id)
        if seen.settled == state:
            return
        before = self._before(cache, records)
        usage = self._metastore.snapshots.usage(cache.id, before)
        if usage.oldest is None:
            return
        files = self._files_of(cache.location)
        if not seen.is_swept or usage.failed != seen.failed:
            if record.busy:
                return  # what it writes stands in no commit yet
            if self._sweep(files, cache, usage.oldest, before, budget):
                seen.version, seen.failed, seen.is_swept = usage.oldest, usage.failed, True
        elif usage.oldest > seen.version:
            seen.version = _follow(files, cache, seen.version, usage.oldest, budget)
        over = last is None or last.id in (cache.published_refresh_id, usage.failed)
        if over and seen.version == usage.newest and seen.failed == usage.failed:
            seen.settled = state

    def _before(self, cache: CacheRecord, records: Sequence[ScheduleRecord]) -> datetime:
        """What was published before that moment, and followed by another one, is not read."""
        moment = self._now() - timedelta(seconds=self._grace_seconds())
        for other in records:
            reads = cache.id == other.cache.id or cache.id in other.cache.depends_on
            if reads and other.last is not None and other.last.state is RunState.RUNNING:
                moment = min(moment, other.last.started_at)
        return moment

    def _sweep(
        self, files: Files, cache: CacheRecord, kept: int, before: datetime, budget: _Budget
    ) -> bool:
        """Delete what neither version `kept` holds nor a later commit added; True if all of it."""
        needed: set[str] = set()
        gone: set[str] = set()
        root = root_of(cache.location)
        for commit in _commits(files, root, downwards=True):
            needed |= {under(root, added.path) for added in commit.added} - gone
            if commit.version > kept:
                continue
            gone |= {under(root, path) for path in commit.removed} - needed
            if commit.stamp.get("kind") == RefreshMode.FULL:
                break
        else:
            return True  # its log does not go back to a whole state: nothing is known for sure
        millis = int(before.timestamp() * 1000)
        for path, info in _walk(files, root):
            if _sum_of(path) not in needed and info.modified_ms < millis:
                if not budget.take():
                    return False
                files.delete(path)
        for place in self._places(files, cache):
            if place != root:
                _drop_place(files, root, place, millis)
        return True

    def _places(self, files: Files, cache: CacheRecord) -> list[str]:
        """The folders that a cache has had: its own, and those that were lost."""
        place = root_of(cache.location)
        root, _, folder = place.rpartition("/")
        stem = folder.partition("-")[0]
        if stem == folder or stem != cache.id:
            return [place]
        known = [n for n in files.listing(root) if n == stem or n.startswith(f"{stem}-")]
        return list(dict.fromkeys([place, *(f"{root}/{name}" for name in known)]))


def _drop_place(files: Files, root: str, lost: str, before_ms: int) -> None:
    """Delete a folder that was lost, once the one that took its place is older than the grace."""
    first = files.listing(f"{root}/_delta_log").get(f"{0:020d}.json")
    if first is None or first.modified_ms < before_ms:
        files.delete_folder(lost)


def _follow(files: Files, cache: CacheRecord, done: int, kept: int, budget: _Budget) -> int:
    """Delete what the commits above `done` and up to `kept` removed; gives how far it came."""
    root = root_of(cache.location)
    removed: dict[str, int] = {}
    for commit in _commits(files, root, since=done + 1):
        for added in commit.added:
            removed.pop(added.path, None)  # put back, as RESTORE does
        if commit.version <= kept:
            removed.update(dict.fromkeys(commit.removed, commit.version))
    for path, version in removed.items():  # in the order of the versions
        if version > done + 1 and budget.left <= 0:
            return version - 1
        budget.take()
        place = under(root, path)
        files.delete(place)
        folder, _, name = place.rpartition("/")
        files.delete(f"{folder}/.{name}.crc")  # where the storage keeps sums beside files
    return kept


def _sum_of(path: str) -> str:
    """The file that a checksum beside it belongs to; any other file itself."""
    folder, _, name = path.rpartition("/")
    is_sum = name.startswith(".") and name.endswith(".crc")
    return f"{folder}/{name[1:-4]}" if is_sum else path


def _commits(
    files: Files, root: str, *, since: int = 0, downwards: bool = False
) -> Iterator[Commit]:
    log = f"{root}/_delta_log"
    names = (n for n in files.names(log) if n.endswith(".json") and n[:20].isdigit())
    versions = sorted((int(n[:20]) for n in names if len(n) == 25), reverse=downwards)
    for version in versions:
        text = files.read(f"{log}/{version:020d}.json") if version >= since else None
        if text is not None:
            yield parse_commit(version, text)


def _walk(files: Files, folder: str) -> Iterator[tuple[str, FileInfo]]:
    """The data files below a folder; what begins with an underscore is Delta's own."""
    entries: Mapping[str, FileInfo] = files.listing(folder)
    for name, info in entries.items():
        if info.is_folder and not _is_deltas(name):
            yield from _walk(files, f"{folder}/{name}")
        elif not info.is_folder:
            yield f"{folder}/{name}", info


def _is_deltas(name: str) -> bool:
    return name.startswith("_") and "=" not in name
