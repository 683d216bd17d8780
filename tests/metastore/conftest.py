"""An open metastore, and the records that the tests put into it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from cachemgr.metastore import Metastore, open_metastore
from cachemgr.metastore.records import CacheRecord, ColumnRecord
from tests.worlds.records import cache_of

T0 = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


@pytest.fixture
def now() -> datetime:
    return T0


@pytest.fixture
def store(metastore_url: str) -> Iterator[Metastore]:
    with open_metastore(metastore_url) as opened:
        yield opened


def make_cache(name: str = "Cube", **changed) -> CacheRecord:
    values = {
        "namespace": "spark_catalog.default",
        "name": name,
        "definition": "SELECT 1 AS one",
        "definition_hash": "h1",
        "location": f"/caches/{name}",
        "columns": (ColumnRecord("one", "int", False),),
    }
    return cache_of(**{**values, **changed})


@pytest.fixture
def cache(store: Metastore, now: datetime) -> CacheRecord:
    return store.caches.create(make_cache(), now=now)


@pytest.fixture
def new_cache():
    return make_cache
