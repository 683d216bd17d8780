"""Where a feed's caches come from, and where its decisions go: a metastore, or the service.

A feed asks its source from one thread of its own; no query ever does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from cachemgr.delta.storage import Files
from cachemgr.errors import CacheManagerError, ErrorCode, MetastoreError
from cachemgr.journal.journal import Journal, keep_journal
from cachemgr.metastore import Metastore
from cachemgr.metastore.records import DecisionRecord
from cachemgr.metastore.registry_records import RegistryMark, RegistryState

POLL_SECONDS: Final = 1.0
STALE_SECONDS: Final = 5.0
_PASSING: Final = frozenset(
    {ErrorCode.METASTORE_BUSY, ErrorCode.METASTORE_UNREADABLE, ErrorCode.METASTORE_FULL}
)


class SourceRefused(CacheManagerError):
    """The source answers, and says that this session is to have nothing (any more)."""


class BatchRefused(CacheManagerError):
    """Decisions that will not be taken, however often they are sent."""


class Source(Protocol):
    """What a feed follows."""

    @property
    def key(self) -> str:
        """Tells one source from another: sessions with the same one share a feed."""
        ...

    @property
    def name(self) -> str:
        """For messages; without secrets."""
        ...

    @property
    def patience(self) -> float:
        """Seconds that it may be silent; after them nothing is answered from caches."""
        ...

    @property
    def close_seconds(self) -> float:
        """How long a feed that closes waits for the answer to a question under way."""
        ...

    def news(self, since: int | None) -> RegistryState | None:
        """What changed; may wait a little for something to change.

        Args:
            since: The revision that the last answer stood at; None asks for everything.

        Returns:
            The state; None if nothing changed.

        Raises:
            SourceRefused: This session is to have nothing.
            CacheManagerError: It cannot be asked now.
        """
        ...

    def send(self, batch: Sequence[DecisionRecord], batch_id: str) -> None:
        """Store decisions, once however often a batch of that id is sent.

        Raises:
            BatchRefused: They never will be.
            CacheManagerError: They could not be stored now; to be sent again.
        """
        ...

    def tell_damage(self, cache_id: str, refresh_id: str, what: str) -> None:
        """Files of a cache, as that refresh published them, are gone.

        Raises:
            CacheManagerError: It could not be told now.
        """
        ...

    def tell_whole(self, cache_id: str, refresh_id: str, what: str) -> None:
        """Files of a cache of which that was noted are there, all of them.

        Raises:
            CacheManagerError: It could not be told now.
        """
        ...

    def pause(self, failures: int) -> float:
        """Seconds until the source is to be asked again, after so many failures in a row."""
        ...

    def close(self) -> None:
        """Let go of all connections."""
        ...


class MetastoreSource:
    """A metastore that this process has open itself.

    Args:
        metastore: It is closed with the source.
    """

    patience = STALE_SECONDS
    close_seconds = 10.0

    def __init__(self, metastore: Metastore) -> None:
        self.metastore = metastore
        self.key = metastore.url
        self.name = "the metastore"
        self._journal: Journal | None = None
        self._mark: RegistryMark | None = None

    def keep_journal(self, location: str, others: Callable[[], Files]) -> None:
        """Write what a rebuild of the metastore needs after each change that is made here.

        Args:
            location: Root folder of the caches.
            others: Files that are not on this machine.
        """
        if self._journal is None:
            self._journal = keep_journal(self.metastore, location, others)

    def news(self, since: int | None) -> RegistryState | None:
        """What changed; see `Source`."""
        mark, before = self.metastore.registry.mark(), self._mark
        if since is not None and before is not None and mark == before:
            return None
        # Put back from a copy: what was loaded is of a time that it does not know any more.
        known = before is not None and mark.epoch == before.epoch and mark.revision >= (since or 0)
        state = self.metastore.registry.state(since or 0 if known else 0)
        self._mark = RegistryMark(mark.epoch, state.revision)
        return state

    def send(self, batch: Sequence[DecisionRecord], batch_id: str) -> None:
        """Store decisions; see `Source`."""
        try:
            self.metastore.decisions.log(batch, batch_id=batch_id)
        except MetastoreError as error:
            if error.code in _PASSING:
                raise
            raise BatchRefused(error.code, error.message) from error

    def tell_damage(self, cache_id: str, refresh_id: str, what: str) -> None:
        """Have it noted; see `Source`."""
        self.metastore.snapshots.note_damage(cache_id, refresh_id, what)

    def tell_whole(self, cache_id: str, refresh_id: str, what: str) -> None:
        """Have the note taken back; see `Source`."""
        self.metastore.snapshots.lift_damage(cache_id, refresh_id, what)

    def pause(self, failures: int) -> float:
        """Seconds until the next look; see `Source`."""
        return POLL_SECONDS

    def close(self) -> None:
        """Close the metastore."""
        self.metastore.close()


def metastore_of(source: Source) -> Metastore:
    """The metastore that a source reads.

    Args:
        source: The source.

    Raises:
        TypeError: It follows a service, and there is none in this process.
    """
    if not isinstance(source, MetastoreSource):
        raise TypeError(f"{source.name} is no metastore of this process")
    return source.metastore
