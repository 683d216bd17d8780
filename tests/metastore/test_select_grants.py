"""Which tables the service may read for whom, on both databases."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from cachemgr.errors import ConfigurationError
from cachemgr.metastore import open_metastore
from cachemgr.metastore.statement_records import SelectGrant


def test_nobody_is_granted_anything_by_default(store):
    assert store.select_grants.of("ann") == frozenset()
    assert store.select_grants.all() == ()


def test_granted_and_taken_back(store):
    before = store.clock.now()
    assert store.select_grants.add("file:/b", " ann ", "shop.b")
    assert store.select_grants.add("file:/a", "ann", "shop.a")
    assert store.select_grants.add("file:/a", "bob", "shop.a")
    assert store.select_grants.of("ann") == {"file:/a", "file:/b"}
    assert store.select_grants.of("bob") == {"file:/a"}
    assert store.select_grants.of("Ann") == frozenset(), "principals are spelled one way"
    found = store.select_grants.all()
    assert [(g.table_name, g.place, g.principal) for g in found] == [
        ("shop.a", "file:/a", "ann"),
        ("shop.a", "file:/a", "bob"),
        ("shop.b", "file:/b", "ann"),
    ]
    assert all(before <= g.granted_at <= store.clock.now() for g in found)
    assert store.select_grants.remove("file:/a", " ann ")
    assert store.select_grants.of("ann") == {"file:/b"} and store.select_grants.of("bob")
    assert not store.select_grants.remove("file:/a", "ann")


def test_granted_again_it_stays_as_it_was(store):
    store.select_grants.add("file:/a", "ann", "shop.a")
    (grant,) = store.select_grants.all()
    assert not store.select_grants.add("file:/a", "ann", "other.name")
    assert store.select_grants.all() == (SelectGrant("file:/a", "ann", "shop.a", grant.granted_at),)


@pytest.mark.parametrize("principal", ["", "  ", "a\nb", "x" * 257])
def test_what_is_no_principal(store, principal):
    with pytest.raises(ConfigurationError) as caught:
        store.select_grants.add("file:/a", principal, "shop.a")
    assert caught.value.code == "BAD_PRINCIPAL"
    assert store.select_grants.all() == ()


def test_sessions_hear_nothing_of_it(store):
    before = store.registry.revision()
    store.select_grants.add("file:/a", "ann", "shop.a")
    store.select_grants.remove("file:/a", "ann")
    assert store.registry.revision() == before, "caches answer by grants of their own"


def test_granted_twice_at_once(store, metastore_url):
    for turn in range(5):
        gate = threading.Barrier(2)

        def grant(gate=gate, turn=turn):
            with open_metastore(metastore_url) as mine:
                gate.wait()
                return mine.select_grants.add(f"file:/{turn}", "ann", "t")

        with ThreadPoolExecutor(2) as threads:
            jobs = [threads.submit(grant) for _ in range(2)]
            assert sorted(job.result() for job in jobs) == [False, True]
    assert len(store.select_grants.of("ann")) == 5
