"""What is noted here of the files that caches serve from: damage, of which the source is told, and
what could not be read here, which is nobody else's business."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from cachemgr.delta.stored_files import LOOK_SECONDS, WHOLE, FilesFound, StoredFiles
from cachemgr.metastore.records import is_seen_by_looks
from cachemgr.serving.served_cache import ServedCache
from cachemgr.serving.sources import Source
from cachemgr.telemetry import Telemetry

_MOST_NOTES: Final = 1_000
_LONGEST_UNREAD_SECONDS: Final = 3600.0
_Note = TypeVar("_Note")


@dataclass(frozen=True, slots=True)
class _Unread:
    """Files of a cache that could not be read here; so long it is not tried again."""

    why: str
    until: float
    seconds: float


class FileNotes:
    """The notes of one process.

    Args:
        source: Is told of damage.
        telemetry: Where trouble is counted and logged.
        clock: Monotonic seconds.
        wake: Has `tell` called soon, beside the queries.
        changing: Called where a cache must not be read any more as before.
    """

    def __init__(
        self,
        source: Source,
        telemetry: Telemetry,
        clock: Callable[[], float],
        wake: Callable[[], None],
        changing: Callable[[], None] = lambda: None,
    ) -> None:
        self._source = source
        self._telemetry = telemetry
        self._clock = clock
        self._wake = wake
        self._changing = changing
        # By the refresh whose files they are.
        self._damage: dict[str, str] = {}
        self._unread: dict[str, _Unread] = {}
        # What was noted, with the state of the cache that told it, and has been looked at since.
        self._looked: dict[str, tuple[str, int]] = {}
        self._untold: list[Callable[[], None]] = []

    def files(self, cache: ServedCache, grouping_id: int | None, stored: StoredFiles) -> FilesFound:
        """How the files that a cache serves from are. The source is told of damage beside the
        query, and of damage that is no more.

        Args:
            cache: A refreshed cache.
            grouping_id: The grouping set that is to be read; None for all that is stored.
            stored: Looks at the files.
        """
        refresh_id = cache.refresh_id or ""
        if cache.version is None:
            return WHOLE
        unread = self._unread.get(refresh_id)
        if unread is not None and self._clock() < unread.until:
            return FilesFound(unread=unread.why)
        known = self._damage.get(refresh_id) or cache.damaged
        if known is not None and not is_seen_by_looks(known):
            return FilesFound(damage=known)
        if known is not None:
            return self._looked_again(cache, known, stored)
        found = stored.found(cache.location, cache.version, grouping_id)
        if found.damage:
            self.note_damage(cache, found.damage)
        return found

    def _looked_again(self, cache: ServedCache, known: str, stored: StoredFiles) -> FilesFound:
        """What was damaged is whole again if all of it is, by a look after that was noted."""
        assert cache.version is not None
        refresh_id = cache.refresh_id or ""
        noted = (known, cache.stamp)
        if self._looked.get(refresh_id) != noted:
            _keep(self._looked, refresh_id, noted)
            stored.forget(cache.location)
        found = stored.found(cache.location, cache.version)
        if found != WHOLE:
            return FilesFound(damage=found.damage or known)
        self._note_whole(cache, known)
        return found

    def note_damage(self, cache: ServedCache, what: str) -> None:
        """A cache's files are gone: nobody here is answered from them until they are there again,
        and the source is told, in the background.

        Args:
            cache: The cache in the state that was looked at.
            what: What is wrong, for people.
        """
        if cache.refresh_id is None or cache.refresh_id in self._damage:
            return
        _keep(self._damage, cache.refresh_id, what)
        self._changing()
        self._looked.pop(cache.refresh_id, None)
        self._to_tell(partial(self._source.tell_damage, cache.id, cache.refresh_id, what))
        self._telemetry.count("damaged_caches")
        self._telemetry.warn_once(
            f"damage {cache.refresh_id}",
            f"cache {cache.name} answers nothing until it is refreshed: {what}",
        )

    def note_unread(self, cache: ServedCache, why: str) -> None:
        """A query of this process could not read a cache's files: it does without them for a while,
        longer each time, and nobody else hears of it.

        Args:
            cache: The cache in the state that was read.
            why: Why, for people.
        """
        if cache.refresh_id is None:
            return
        before = self._unread.get(cache.refresh_id)
        seconds = LOOK_SECONDS if before is None else 2 * before.seconds
        seconds = min(seconds, _LONGEST_UNREAD_SECONDS)
        noted = _Unread(why, self._clock() + seconds, seconds)
        _keep(self._unread, cache.refresh_id, noted)
        self._changing()
        self._telemetry.count("unreadable_caches")
        self._telemetry.warn_once(
            f"unread {cache.refresh_id}",
            f"cache {cache.name} could not be read here, and is left out for a while: {why}",
        )

    def _note_whole(self, cache: ServedCache, what: str) -> None:
        refresh_id = cache.refresh_id or ""
        if self._damage.pop(refresh_id, None) is not None or cache.damaged is not None:
            self._to_tell(partial(self._source.tell_whole, cache.id, refresh_id, what))

    def _to_tell(self, told: Callable[[], None]) -> None:
        self._untold.append(told)
        self._wake()

    def tell(self) -> None:
        """Tell the source what it has not been told yet.

        Raises:
            CacheManagerError: It could not be told now; it is kept.
        """
        while self._untold:
            self._untold[0]()
            del self._untold[0]


def _keep(notes: dict[str, _Note], refresh_id: str, note: _Note) -> None:
    if len(notes) >= _MOST_NOTES:
        notes.clear()
    notes[refresh_id] = note
