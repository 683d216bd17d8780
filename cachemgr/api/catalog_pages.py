"""The catalog's pages, made once for all sessions of a principal that ask for the same one."""

from __future__ import annotations

import gzip
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from cachemgr.access.grants import hashed_id, keys_of_side, may_use, reads_of, restricted_keys
from cachemgr.api.paging import write_token
from cachemgr.errors import ErrorCode, MetastoreError
from cachemgr.metastore.records import JoinRecord
from cachemgr.metastore.registry import Registry
from cachemgr.metastore.registry_records import CatalogPage, RegistryMark
from cachemgr.metastore.tables import Tables
from cachemgr.serving.wire import CATALOG_VERSION, digest, encode_entry, encode_join

_LEVEL: Final = 4
_REMEMBERED_BYTES: Final = 32 * 1024 * 1024
_TRIES: Final = 5

# a revision, and the hashed_id id of a cache that changed last at it
Begin = tuple[int, str | None]


class Pages:
    """Pages of one application; safe for several threads.

    Args:
        registry: What they are made from.
        tables: Which base tables are restricted.
    """

    def __init__(self, registry: Callable[[], Registry], tables: Callable[[], Tables]) -> None:
        self._registry = registry
        self._tables = tables
        self._lock = threading.Lock()
        self._made: OrderedDict[tuple[object, ...], bytes] = OrderedDict()
        self._bytes = 0
        self._followed = RegistryMark("", 0)
        self._reads: dict[str, frozenset[str]] = {}

    def page(self, principal: str, mark: RegistryMark, begin: Begin, size: int) -> bytes:
        """One page, compressed.

        Args:
            principal: Whose.
            mark: Where the registry stands.
            begin: After which (revision, hashed_id id); (0, None) is the begin of everything.
            size: How many caches to look at.

        Raises:
            MetastoreError: It cannot be read.
        """
        key = (mark, principal, begin, size)
        # Under the lock: of many sessions that hear of one change, one makes the page.
        with self._lock:
            made = self._made.get(key)
            if made is not None:
                self._made.move_to_end(key)
                return made
            found, restricted = self._read(principal, begin, size)
            text = json.dumps(
                self._content(principal, begin, found, restricted),
                separators=(",", ":"),
                default=str,
            )
            made = gzip.compress(text.encode(), _LEVEL, mtime=0)
            if found.mark == mark:
                self._made[key] = made
                self._bytes += len(made)
            while self._bytes > _REMEMBERED_BYTES:
                _, forgotten = self._made.popitem(last=False)
                self._bytes -= len(forgotten)
            return made

    def _read(
        self, principal: str, begin: Begin, size: int
    ) -> tuple[CatalogPage, Mapping[str, str]]:
        for _ in range(_TRIES):
            found = self._registry().page(principal, *self._after(begin), size)
            restricted = self._restricted(found.mark)
            if restricted is not None:
                return found, restricted
        raise MetastoreError(
            ErrorCode.METASTORE_BUSY, "the registry changes faster than it can be read"
        )

    def _after(self, begin: Begin) -> tuple[int, str | None]:
        """Where a page begins, by the id of the cache itself. If that has changed since, all of its
        revision comes once more: what came before it there is not known any more."""
        revision, veil = begin
        if veil is None:
            return revision, None
        ids = self._registry().changed_at(revision)
        found = next((i for i in ids if hashed_id(i) == veil), None)
        return (revision - 1, None) if found is None else (revision, found)

    def _restricted(self, mark: RegistryMark) -> Mapping[str, str] | None:
        """What is restricted at a mark; None if the registry has moved on from it."""
        registry = self._registry()
        if not self._tables().restricted():
            self._followed, self._reads = RegistryMark("", 0), {}
            return {} if registry.mark() == mark else None
        state = registry.state(self._followed.revision if self._followed.epoch == mark.epoch else 0)
        if state.revision < self._followed.revision:
            self._reads = {}
            state = registry.state(0)
        self._reads |= {entry.cache.id: reads_of(entry) for entry in state.entries}
        self._reads = {i: reads for i, reads in self._reads.items() if i in state.live_ids}
        self._followed = RegistryMark(mark.epoch, state.revision)
        if self._followed != mark:
            return None
        return restricted_keys(state.restricted, self._reads.items())

    def _content(
        self, principal: str, begin: Begin, found: CatalogPage, restricted: Mapping[str, str]
    ) -> dict[str, Any]:
        def usable(cache_id: str) -> bool:
            grants = {principal} if cache_id in found.granted else None
            reads = self._reads.get(cache_id)
            return reads is not None and may_use(principal, "", grants, reads, restricted) is None

        live, joins = found.live, found.joins
        if restricted:
            live = {i: revision for i, revision in live.items() if usable(i)}
            read = [self._reads[i] for i in live]
            joins = tuple(j for j in joins if _told(j, read, restricted))
        end = found.end
        name = list_name(found.mark.epoch, principal)
        # the page may end with a cache that is not told: whoever is given a token can read it
        token = None if end is None else write_token(name, [str(end[0]), hashed_id(end[1])])
        return {
            "catalogVersion": CATALOG_VERSION,
            "epoch": found.mark.epoch,
            "revision": found.mark.revision,
            "principal": principal,
            "full": begin == (0, None),
            "caches": [encode_entry(e, principal) for e in found.entries if e.cache.id in live],
            "gone": [hashed_id(i) for i in found.changed if i not in live],
            "joins": [encode_join(join) for join in joins],
            "restricted": {hashed_id(key): name for key, name in restricted.items()},
            "digest": digest(live),
            "nextPageToken": token,
        }


def _told(join: JoinRecord, read: Sequence[frozenset[str]], restricted: Mapping[str, str]) -> bool:
    """Whether a join is told: one with a restricted table by a cache that reads both sides."""
    sides = (join.left, join.right)
    if not any(key in restricted for side in sides for key in keys_of_side(side)):
        return True
    places = {side.location for side in sides}
    return any(places <= reads for reads in read)


def list_name(epoch: str, principal: str) -> str:
    """The list that a page token of the catalog belongs to."""
    return f"catalog {epoch} of {principal}"
