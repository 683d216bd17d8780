"""Base tables as they were seen: the newest note counts, and news reach those who follow."""

from __future__ import annotations

import threading
from dataclasses import replace

from cachemgr.base_state import TableAt
from cachemgr.metastore import open_metastore

SALES = TableAt("default.sales", "file:/w/sales", "id-1", 3, 1_000, columns='{"fields":[]}')


def test_the_newest_note_counts(store):
    before = store.registry.revision()
    assert store.tables.note([SALES]) == 1
    assert store.tables.noted() == (SALES,) and store.registry.revision() == before + 1
    assert store.tables.note([replace(SALES, version=2, columns="older")]) == 0
    later = replace(SALES, version=4, timestamp_ms=2_000)
    assert store.tables.note([later]) == 0, "no news: the columns are the same"
    assert store.tables.noted() == (later,) and store.registry.revision() == before + 1
    wider = replace(later, version=5, columns='{"fields":[1]}')
    assert store.tables.note([wider]) == 1
    assert store.tables.noted() == (wider,) and store.registry.revision() == before + 2


def test_a_table_that_was_created_again(store):
    store.tables.note([SALES])
    again = replace(SALES, table_id="id-2", version=0)
    assert store.tables.note([again]) == 1
    assert store.tables.noted() == (again,)


def test_one_place_under_two_names(store):
    other = replace(SALES, name="archive.sales")
    assert store.tables.note([SALES, other]) == 2
    assert {t.name for t in store.tables.noted()} == {"default.sales", "archive.sales"}


def test_many_note_the_same_at_once(store, metastore_url):
    tables = [replace(SALES, location=f"file:/w/{n}") for n in range(20)]
    failures: list[BaseException] = []

    def note(order: int) -> None:
        try:
            with open_metastore(metastore_url) as mine:
                mine.tables.note(tables[::order])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=note, args=(n % 2 * 2 - 1,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
    assert store.tables.noted() == tuple(sorted(tables, key=lambda t: t.location))
