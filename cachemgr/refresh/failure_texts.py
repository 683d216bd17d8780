"""What the errors of a refresh say alike."""

from __future__ import annotations

from cachemgr.errors import ErrorCode, RefreshError
from cachemgr.metastore.records import CacheRecord


def what_serves(cache: CacheRecord) -> str:
    """What queries are answered from after a refresh that failed, for its message.

    Args:
        cache: The cache as it was before.
    """
    if cache.published_refresh_id is None:
        return "it was never refreshed: queries keep running on the tables"
    return "its last snapshot is kept"


def storage_unavailable(cache: CacheRecord, why: str, of: str = "") -> RefreshError:
    """What is raised where a storage cannot be asked, or takes nothing: that is no failure of the
    cache, and passes by itself.

    Args:
        cache: The cache that was to be refreshed.
        why: What the storage said, in plain words.
        of: Whose storage it is, as "base table sales"; empty where that is not known.
    """
    whose = f" of {of}" if of else ""
    return RefreshError(
        ErrorCode.STORAGE_UNAVAILABLE,
        f"the refresh of cache {cache.qualified_name} could not use the storage{whose}: {why}; "
        f"{what_serves(cache)}; a scheduled refresh is tried again by itself, any other once the "
        "storage answers again",
    )
