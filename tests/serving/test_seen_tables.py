"""The tables of a query at versions that are looked up when somebody asks."""

from __future__ import annotations

from cachemgr.base_state import BaseState, TableAt
from cachemgr.serving.seen_tables import SeenTables, TableRef

NOW = {"file:/a": BaseState("ia", 5, "txn:a"), "file:/b": BaseState("ib", 7)}


class Looks:
    """Counts the looks."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> dict[str, BaseState]:
        self.count += 1
        return NOW


def unseen(name: str, *, elsewhere: bool = False) -> TableRef:
    return TableRef(name, f"file:/{name}", "", None, "delta", False, elsewhere, later=True)


OLD = TableRef("a", "file:/a", "ia", 2, "delta", pinned=True)
FILES = TableRef("f", "file:/f", "", None, "files", pinned=False)


def test_all_are_looked_up_at_once_and_when_one_is_asked_for():
    looks = Looks()
    seen = SeenTables([unseen("a"), OLD, FILES, unseen("b", elsewhere=True)], looks)
    assert seen.places == {"file:/a", "file:/b", "file:/f"} and len(seen) == 3
    assert looks.count == 0 and not seen.are_looked_up
    assert [(t.table_id, t.version) for t in seen["file:/a"]] == [("ia", 5), ("ia", 2)]
    assert [(t.table_id, t.version) for t in seen.get("file:/b", ())] == [("ib", 7)]
    assert seen["file:/a"][0].state == NOW["file:/a"]
    assert seen["file:/f"] == [FILES] and seen.get("file:/c") is None
    assert looks.count == 1 and seen.are_looked_up


def test_nobody_looks_where_there_is_nothing_to_find():
    looks = Looks()
    seen = SeenTables([OLD, FILES], looks)
    then = TableAt("a", "file:/a", "ia", 2, None)
    assert seen.are_looked_up and dict(seen) == {"file:/a": [then], "file:/f": [FILES]}
    assert looks.count == 0
