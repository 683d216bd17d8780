"""What the parts of a hit are called in plans and in Spark's UI."""

from __future__ import annotations

from cachemgr.serving.served_cache import ServedCache


def scan_name(cache: ServedCache) -> str:
    """What a scan of a cache's rows is called: its name and the version of its table.

    Args:
        cache: The cache.
    """
    return f"relational_cache.{cache.name}@v{cache.version}"


def tail_name(cache: ServedCache) -> str:
    """What a scan of the rows that were appended since is called.

    Args:
        cache: The cache.
    """
    return f"{scan_name(cache)}, appended since"
