"""What is wrong with a cache's own table before a refresh, and where the refresh is to write.

Files that are gone are written anew in the same table. A table whose log is gone, torn or put back
from an older copy is left where it is, and the cache gets another folder: version numbers would be
given out twice in the old one, and whoever has its log in memory would read the wrong rows. Where
the storage cannot be asked nothing is known, and the refresh is to be tried again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import SparkSession

from cachemgr.causes import cause_of
from cachemgr.delta.commits import Head
from cachemgr.delta.hadoop_files import files_of, why_log_unasked
from cachemgr.delta.log import head
from cachemgr.delta.places import moved_location
from cachemgr.delta.stored_files import Listings, StoredFiles
from cachemgr.errors import RefreshError
from cachemgr.metastore.records import CacheRecord, SnapshotRecord, is_seen_by_looks
from cachemgr.refresh.failure_texts import storage_unavailable

# Each refresh looks; what earlier ones have read of the log is not read again.
_LISTINGS: Final = Listings()


@dataclass(frozen=True, slots=True)
class Damage:
    """What was found.

    Args:
        what: What is wrong, for people; empty if nothing is.
        is_lost: The table cannot be written any more.
    """

    what: str = ""
    is_lost: bool = False


def damage_of(
    session: SparkSession, cache: CacheRecord, published: SnapshotRecord | None
) -> Damage:
    """Look at a cache's table: its log, and the files that it serves from.

    Args:
        session: A session of ours.
        cache: The cache.
        published: The snapshot that serves now.

    Raises:
        RefreshError: `STORAGE_UNAVAILABLE`: the storage cannot be asked.
    """
    newest = _head(session, cache)
    if isinstance(newest, Damage):
        return newest
    if published is None or published.run.cache_version is None:
        return Damage()
    version = published.run.cache_version
    if newest is None:
        return Damage("its Delta table is gone", is_lost=True)
    if newest.version < version:
        ends = f"its log ends at version {newest.version}, and {version} was published"
        return Damage(ends, is_lost=True)
    stored = StoredFiles(files_of(session), listings=_LISTINGS)
    try:
        has_version = stored.has_version(cache.location, version)
    except Exception as error:
        raise _unasked(cache, cause_of(error)) from error
    if not has_version:
        return Damage(f"its log has no version {version} any more", is_lost=True)
    found = stored.look(cache.location, version)
    if found.unread:
        raise _unasked(cache, found.unread)
    if cache.damaged is not None and not is_seen_by_looks(cache.damaged):
        return Damage(cache.damaged)
    return Damage(found.damage)


def _head(session: SparkSession, cache: CacheRecord) -> Head | Damage | None:
    """The newest commit; the damage where the storage answers and the log cannot be read."""
    try:
        return head(session, cache.location)
    except Exception as error:
        away = why_log_unasked(session, cache.location, error)
        if away:
            raise _unasked(cache, away) from error
        return Damage(f"its log cannot be read ({cause_of(error)[:200]})", is_lost=True)


def _unasked(cache: CacheRecord, why: str) -> RefreshError:
    return storage_unavailable(cache, why, "its own table")


def placed(cache: CacheRecord, damage: Damage, token: int | None) -> CacheRecord:
    """The cache with the place that its next refresh writes to.

    Args:
        cache: The cache.
        damage: What was found.
        token: The fencing token of the refresh; None if none is made.
    """
    if not damage.is_lost:
        return cache
    return replace(cache, location=moved_location(cache.location, cache.id, token or 0))
