"""What a worker asks of Spark, as a protocol, so that the worker itself needs none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Protocol

from cachemgr.base_state import BaseState, Unreadable
from cachemgr.errors import CacheManagerError
from cachemgr.metastore.records import RefreshRunRecord


class Refresher(Protocol):
    """Spark, as far as refreshes and the watch over base tables need it."""

    def prepare(self) -> None:
        """Be ready: called before a refresh is taken, so that no lease runs meanwhile."""
        ...

    def refresh(
        self, run: RefreshRunRecord, failing: Callable[[CacheManagerError], None]
    ) -> RefreshRunRecord:
        """Carry out a refresh whose lease is held; raises CacheManagerError, after `failing` was
        called with it."""
        ...

    def heads(self, places: Collection[str]) -> Mapping[str, BaseState | Unreadable | None]:
        """The Delta table at each place as it is now, None where there is none."""
        ...

    def places(self, names: Collection[str]) -> Mapping[str, str]:
        """Where the tables lie that names stand for here now; those that this application does not
        know are left out."""
        ...

    def first_commit_after(self, place: str, version: int) -> datetime | None:
        """When the first commit after a version was made; None if it is the newest."""
        ...
