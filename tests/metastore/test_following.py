"""Marks and declared joins follow tables that took the names or places of others."""

from __future__ import annotations

from cachemgr.base_state import TableAt
from cachemgr.metastore.records import JoinRecord, JoinSide

PAY = TableAt("hr.pay", "file:/pay", "id-1", 1, 0)
SIDES = (JoinSide("s.a", "file:/a", "ia"), JoinSide("s.b", "file:/b", "ib"))


def marks(store):
    return {(m.name, m.location, m.table_id) for m in store.tables.restricted()}


def at(name: str, place: str, table_id: str) -> TableAt:
    return TableAt(name, f"file:/{place}", table_id, 0, 0)


def test_a_mark_is_added_for_each_table_in_turn_and_none_is_taken_away(store):
    store.tables.restrict(PAY.name, PAY.location, PAY.table_id, by="root")
    before = store.registry.revision()
    assert not store.tables.follow([PAY, at("hr.other", "other", "io")], ())
    assert store.registry.revision() == before
    steps = [at("HR.pay", "new", "id-2"), at("hr.wages", "new", "id-3"), at("x", "moved", "id-3")]
    for count, table in enumerate(steps, start=2):
        assert store.tables.follow([table], ())
        assert len(marks(store)) == count
        assert not store.tables.follow([table], ()), "it is known"
    assert ("hr.pay", "file:/pay", "id-1") in marks(store)
    assert {m.restricted_by for m in store.tables.restricted()} == {"root"}


def test_a_join_follows_away_from_a_place_that_lost_its_name_alone(store, now):
    store.joins.create(JoinRecord("j", "…", *SIDES, (("x", "y"),)), now=now)
    elsewhere = at("S.b", "new", "i2")
    assert not store.tables.follow([elsewhere], ())
    assert not store.tables.follow([at("s.c", "new", "i2")], ["file:/b"])
    assert store.tables.follow([elsewhere], ["file:/b"])
    (join,) = store.joins.all()
    assert (join.left, join.right) == (SIDES[0], JoinSide("s.b", "file:/new", "i2"))
    # one that was created again at its place
    assert store.tables.follow([at("s.a", "a", "ia-2")], ())
    assert store.joins.all()[0].left.table_id == "ia-2"
