"""Caches over caches: what a change may not do to those that others are defined over."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from cachemgr.cache_spec import CacheSpec
from cachemgr.errors import CacheManagerError, ConflictError, DefinitionError
from cachemgr.metastore.records import ColumnRecord, new_id


@pytest.fixture
def made(store, new_cache, now):
    """Stores a cache over others."""

    def make(name, *over, **changed):
        record = new_cache(name, id=new_id(), depends_on=tuple(c.id for c in over), **changed)
        return store.caches.create(record, now=now)

    return make


def test_what_a_definition_names_comes_back(store, made):
    a, b = made("a"), made("b")
    c = made("c", b, a)
    assert store.caches.get(c.id).depends_on == (b.id, a.id)
    assert store.schedules.of(c.id).cache.depends_on == (b.id, a.id)
    assert store.caches.get(a.id).depends_on == ()


def test_a_cache_that_others_are_defined_over_is_not_dropped_or_renamed(store, made, now):
    a = made("a")
    b, c = made("b", a), made("c", a)
    for change in (
        lambda: store.caches.drop(a.id, now=now),
        lambda: store.caches.rename(a.id, a.version, "z", now=now),
        lambda: store.caches.rename(a.id, a.version, "a", namespace="z", now=now),
    ):
        with pytest.raises(ConflictError, match=r"default\.b, spark_catalog\.default\.c are") as no:
            change()
        assert no.value.code == "CACHE_HAS_DEPENDANTS"
    assert store.caches.get(a.id) == a
    store.caches.drop(b.id, now=now)
    with pytest.raises(ConflictError, match=r"default\.c is defined over it; drop that first"):
        store.caches.drop(a.id, now=now)
    store.caches.drop(c.id, now=now)
    store.caches.purge(c.id)
    store.caches.drop(a.id, now=now)


def test_other_changes_are_free(store, made, now):
    a = made("a")
    made("b", a)
    assert store.caches.update(a.id, a.version, now=now, paused=True).paused


def test_a_replaced_cache_must_hold_the_same_for_those_over_it(store, made, now, new_cache):
    a = made("a", plan={"keys": ["day"]})
    b = made("b", a)
    other = new_cache("a", id=new_id(), plan={"keys": ["region"]})
    with pytest.raises(ConflictError, match="cannot be replaced with another definition"):
        store.caches.create(other, now=now, replace=True)
    wider = replace(other, plan=a.plan, columns=(ColumnRecord("one", "bigint", False),))
    with pytest.raises(ConflictError, match="another definition"):
        store.caches.create(wider, now=now, replace=True)
    moved = replace(other, plan=a.plan, settings={"spark.sql.ansi.enabled": "false"})
    with pytest.raises(ConflictError, match="another definition"):
        store.caches.create(moved, now=now, replace=True)
    same = replace(other, plan=a.plan, spec=CacheSpec("as before"))
    # whoever knows what settings mean says whether they are the same
    again = replace(moved, id=new_id())
    store.caches.create(again, now=now, replace=True, alike=lambda one, other: True)
    store.caches.create(same, now=now, replace=True, alike=lambda one, other: True)
    followed = store.caches.get(b.id)
    assert followed.depends_on == (same.id,) and followed.revision == store.registry.revision()
    with pytest.raises(ConflictError, match="CACHE_HAS_DEPENDANTS"):
        store.caches.drop(same.id, now=now)
    store.caches.drop(b.id, now=now)
    store.caches.create(replace(other, id=new_id()), now=now, replace=True)


def test_a_circle_is_printed_and_not_stored(store, made, now, new_cache):
    a = made("a")
    b = made("b", a)
    c = made("c", b)
    circle = new_cache("a", id=new_id(), depends_on=(c.id,))
    with pytest.raises(DefinitionError) as caught:
        store.caches.create(circle, now=now, replace=True)
    assert caught.value.code == "CACHE_CYCLE"
    names = caught.value.message.split(": ")[1].split(";")[0].split(" → ")
    assert len(names) == 4 and names[0] == names[-1]
    assert {n.rsplit(".")[-1] for n in names} == {"a", "b", "c"}
    itself = new_cache("a", id=new_id(), depends_on=(a.id,))
    with pytest.raises(DefinitionError, match=r"default\.a → spark_catalog\.default\.a"):
        store.caches.create(itself, now=now, replace=True)
    assert store.caches.named("spark_catalog.default", "a").id == a.id


def test_a_source_that_went_meanwhile(store, made, now, new_cache):
    a = made("a")
    store.caches.drop(a.id, now=now)
    with pytest.raises(ConflictError, match="dropped or replaced meanwhile"):
        store.caches.create(new_cache("b", depends_on=(a.id,)), now=now)


@pytest.mark.postgres
def test_a_drop_and_a_create_over_it_at_once(store, made, now, new_cache):
    """Either the cache is dropped or another is defined over it, never both."""
    outcomes = []
    for number in range(10):
        a = made(f"a{number}")
        over = new_cache(f"b{number}", id=new_id(), depends_on=(a.id,))
        errors: list[CacheManagerError] = []
        start = threading.Barrier(2)

        def run(change, start=start, errors=errors):
            start.wait()
            try:
                change()
            except ConflictError as error:
                errors.append(error)

        changes = (
            lambda a=a: store.caches.drop(a.id, now=now),
            lambda over=over: store.caches.create(over, now=now),
        )
        threads = [threading.Thread(target=run, args=(change,)) for change in changes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(errors) == 1
        outcomes.append(errors[0].code)
        dropped = store.caches.get(a.id).dropped_at is not None
        assert dropped == (store.caches.get(over.id) is None)
    assert set(outcomes) <= {"CACHE_CHANGED", "CACHE_HAS_DEPENDANTS"}
