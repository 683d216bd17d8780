"""A disk that takes no more: files of the JVM may not grow beyond some bytes, so that a refresh
breaks off in the middle of what it writes, wherever that is."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cachemgr.errors import CacheManagerError

pytestmark = pytest.mark.spark

ROWS = "SELECT id, region, amt FROM sales"
GROUPS = "SELECT region, SUM(amt) AS s, COUNT(*) AS n FROM sales GROUP BY region"
MORE = "INSERT INTO sales VALUES (20, NULL, 'east', 1, 5, 1, 1.00, 0.5)"


@contextmanager
def no_file_beyond(lab, size: int) -> Iterator[None]:
    """Writes of the JVM beyond so many bytes fail."""
    jvm = lab.spark.sparkContext._gateway.proc.pid
    before = resource.prlimit(jvm, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        resource.prlimit(jvm, resource.RLIMIT_FSIZE, before)


def files(place: str) -> set[str]:
    return {p.name for p in Path(place).glob("**/part-*.parquet")}


@pytest.mark.parametrize("size", [0, 700])
@pytest.mark.parametrize("query", [ROWS, GROUPS])
@pytest.mark.parametrize("mode", ["FULL", "INCREMENTAL"])
def test_a_refresh_onto_a_full_disk(lab, metastore, query: str, mode: str, size: int) -> None:
    lab.cache(f"c AS {query}")
    (cache,) = metastore.caches.all()
    lab.plain.sql(MORE)
    served = metastore.snapshots.published(cache.id)
    with no_file_beyond(lab, size), pytest.raises(CacheManagerError) as caught:
        lab.sql(f"REFRESH RELATIONAL CACHE c {mode}")
    told = str(caught.value)
    assert "no file may grow any larger there: File too large" in told and "\n" not in told
    assert metastore.snapshots.published(cache.id) == served, "the last snapshot goes on serving"
    assert metastore.refreshes.lease(cache.id).holder is None
    lab.hit(query)  # with the appended row
    lab.sql(f"REFRESH RELATIONAL CACHE c {mode}")
    with lab.caches_alone():
        lab.hit(query)
    lab.sql("SET spark.cachemgr.dropGrace=1s")
    time.sleep(1.1)
    lab.sql("REFRESH RELATIONAL CACHE c FULL")
    assert len(files(cache.location)) <= 2, "what the failed one left is gone"


def test_the_first_refresh_onto_a_full_disk(lab) -> None:
    with no_file_beyond(lab, 0), pytest.raises(CacheManagerError, match="File too large"):
        lab.cache(f"c AS {GROUPS}")
    lab.miss(GROUPS, "CACHE_NOT_REFRESHED")
    lab.sql("REFRESH RELATIONAL CACHE c")
    lab.hit(GROUPS)
