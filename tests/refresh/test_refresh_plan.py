"""`plan_refresh` decides from its request alone; each way and each reason once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cachemgr.base_state import TableAt
from cachemgr.delta.base_columns import kept_columns
from cachemgr.delta.changes import ChangeCode, ChangeKind, Changes
from cachemgr.delta.commits import Head
from cachemgr.errors import RefreshError
from cachemgr.metastore.records import SnapshotTableRecord
from cachemgr.refresh.fingerprint import plan_fingerprint, spec_hash
from cachemgr.refresh.plan import Published, RefreshRequest, plan_refresh
from cachemgr.refresh.steps import MoveOn, Publish, SourceOffer, WriteFull
from matcher.model.expr import Agg, Col
from matcher.model.ir import (
    CachePlan,
    GroupingSet,
    Measure,
    RecordPreservingJoin,
    Relation,
    StoredColumn,
)

PLAN = CachePlan(
    name="c",
    relations=(Relation("file:/t", "default.t"),),
    predicates=(),
    keys=(StoredColumn("k", Col(0, "k", "int")),),
    measures=(Measure("s", Agg("sum", (Col(0, "v", "bigint"),), "bigint")),),
)
TABLE = TableAt("default.t", "file:/t", "id-1", 5, 1000, "txn:a")
THEN = SnapshotTableRecord("default.t", "file:/t", "id-1", 5, 1000, "txn:a", "{}")
PUBLISHED = Published("r1", 3, "spec", (THEN,))
BASE = RefreshRequest(
    cache="default.c",
    mode="AUTO",
    plan=PLAN,
    spec="spec",
    tables=(replace(TABLE, version=6),),
    published=PUBLISHED,
    head=Head(3, {}),
)
JOIN = RecordPreservingJoin("j", "file:/t", "file:/u", (("a", "b"),))


def names(request: RefreshRequest) -> list[str]:
    return [s.name for s in plan_refresh(request).stages]


def stamp(**changed: object) -> dict[str, object]:
    versions = [list(t.identity) for t in BASE.tables]
    return {
        "kind": "FULL",
        "refresh_id": "r2",
        "parent_version": 3,
        "spec": "spec",
        "base_versions": versions,
        **changed,
    }


def test_first_refresh_creates_the_table() -> None:
    plan = plan_refresh(replace(BASE, published=None, head=None))
    assert [s.name for s in plan.stages] == [
        "PinVersions",
        "PrepareTable",
        "WriteFull",
        "Measure",
        "Publish",
    ]
    assert plan.mode == "FULL" and "never refreshed" in plan.reason
    rows = plan.describe()
    assert rows[0][1:] == ("FULL", plan.reason) and rows[2][2] == "create the Delta table"


def test_joins_are_validated_before_the_write() -> None:
    assert names(replace(BASE, plan=replace(PLAN, joins=(JOIN,)))) == [
        "PinVersions",
        "ValidateJoins",
        "WriteFull",
        "Measure",
        "Publish",
    ]


@pytest.mark.parametrize("mode", ["AUTO", "INCREMENTAL", "INCREMENTAL_ONLY"])
def test_nothing_moved_is_no_job_unless_full_was_asked_for(mode: str) -> None:
    assert names(replace(BASE, mode=mode, tables=(TABLE,))) == ["Unchanged"]
    assert "WriteFull" in names(replace(BASE, mode="FULL", tables=(TABLE,)))


def test_damage_is_written_anew_and_never_restored_or_adopted() -> None:
    above = Head(9, {"refresh_id": "r9", "kind": "FULL", "parent_version": 8, "spec": "spec"})
    lost = replace(BASE, tables=(TABLE,), damage="its file f is gone", head=above, adoptable="r9")
    plan = plan_refresh(lost)
    assert plan.mode == "FULL" and "its file f is gone" in plan.reason
    assert {"RestorePublished", "Adopt"}.isdisjoint(names(lost)) and "WriteFull" in names(lost)


@pytest.mark.parametrize(
    ("tables", "spec", "why"),
    [
        ((replace(TABLE, version=6),), "spec", "moved from version 5 to 6"),
        ((replace(TABLE, table_id="id-2"),), "spec", "re-created"),
        ((replace(TABLE, commit="txn:b"),), "spec", "put back from a copy"),
        ((TABLE, replace(TABLE, location="file:/u")), "spec", "was not read before"),
        ((), "spec", "no longer read"),
        ((TABLE,), "other", "definition"),
    ],
)
def test_the_reason_says_what_moved(tables: tuple[TableAt, ...], spec: str, why: str) -> None:
    plan = plan_refresh(replace(BASE, tables=tables, spec=spec))
    assert plan.mode == "FULL" and why in plan.reason


OPTIMIZED = Changes(ChangeKind.SAME, detail="3 commits without data change", commits=3)
SCHEMA = '{"type":"struct","fields":[{"name":"v","type":"long","nullable":true,"metadata":{}}]}'
# `v` as it was read, and the table two commits on
KEPT = replace(PUBLISHED, tables=(replace(THEN, columns=kept_columns(SCHEMA, {"v"})),))
MOVED = replace(
    BASE,
    published=KEPT,
    tables=(replace(TABLE, version=8, commit="txn:c", columns=SCHEMA),),
    changes={"file:/t": OPTIMIZED},
)


@pytest.mark.parametrize("mode", ["AUTO", "INCREMENTAL", "INCREMENTAL_ONLY"])
def test_commits_that_change_no_row_move_the_snapshot_on(mode: str) -> None:
    plan = plan_refresh(replace(MOVED, mode=mode))
    assert plan.mode == "UNCHANGED" and plan.stages == (MoveOn(3, MOVED.tables),)
    assert plan.reason == ("no row of a base table changed: 3 commits without data change")
    assert "default.t at version 8" in plan.describe()[1][2]
    full = plan_refresh(replace(MOVED, mode="FULL"))
    assert full.mode == "FULL" and "no row of a base table changed" in full.reason


def test_noop_the_same_rows_under_other_columns_are_computed_anew() -> None:
    wide = SCHEMA.replace("long", "string")
    other = replace(MOVED, tables=(replace(MOVED.tables[0], columns=wide),))
    plan = plan_refresh(other)
    assert plan.mode == "FULL" and "but column v was long and is string" in plan.reason
    unsaid = replace(PUBLISHED, tables=(replace(THEN, columns=None),))
    assert plan_refresh(replace(MOVED, published=unsaid)).mode == "FULL"


def test_the_same_rows_with_joins_declared_since_or_a_stray_commit_on_top() -> None:
    declared = replace(MOVED, joins_known=False, plan=replace(PLAN, joins=(JOIN,)))
    assert names(declared) == ["PinVersions", "ValidateJoins", "Publish"]
    assert plan_refresh(declared).reason.startswith("no row of a base table changed")
    stray = replace(MOVED, head=Head(4, {}))
    assert plan_refresh(stray).mode == "RESTORE"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            Changes(ChangeKind.APPENDS, None, "1 commit appended 60 rows in 1 file"),
            "from version 5 to 8: 1 commit appended 60 rows in 1 file",
        ),
        (
            Changes(ChangeKind.SIGNED, ChangeCode.ROWS_REMOVED, "1 commit removed rows"),
            "from version 5 to 8: 1 commit removed rows [ROWS_REMOVED]",
        ),
        (
            Changes(ChangeKind.UNKNOWN, ChangeCode.LOG_CLEANED, "commit 6 is gone from the log"),
            "from version 5 to 8: commit 6 is gone from the log [LOG_CLEANED]",
        ),
    ],
)
def test_the_reason_says_what_changed(changes: Changes, told: str) -> None:
    plan = plan_refresh(replace(MOVED, changes={"file:/t": changes}))
    assert plan.mode == "FULL" and plan.reason.endswith(told)
    # another table that did not change does not hide it
    other = replace(TABLE, location="file:/u", name="u", columns=SCHEMA)
    then = replace(KEPT.tables[0], location="file:/u", version=4)
    both = replace(
        MOVED,
        tables=(*MOVED.tables, other),
        published=replace(KEPT, tables=(*KEPT.tables, then)),
        changes={"file:/t": changes, "file:/u": OPTIMIZED},
    )
    assert plan_refresh(both).reason == plan.reason


def test_a_commit_that_was_cleaned_from_the_log_is_the_same() -> None:
    assert names(replace(BASE, tables=(replace(TABLE, commit=""),))) == ["Unchanged"]


def test_a_snapshot_stored_before_identities_is_completed_where_it_is_proven() -> None:
    old = replace(PUBLISHED, tables=(replace(THEN, commit_id=None, columns=None),))
    plan = plan_refresh(replace(BASE, published=old, tables=(TABLE,)))
    assert [s.name for s in plan.stages] == ["Publish"] and "which commits" in plan.reason
    plan = plan_refresh(replace(BASE, published=old, tables=(replace(TABLE, timestamp_ms=1001),)))
    assert plan.mode == "FULL" and "put back from a copy" in plan.reason
    gone = (replace(TABLE, commit=""),)
    checkpoint = replace(PUBLISHED, tables=(replace(THEN, commit_id=""),))
    assert names(replace(BASE, published=checkpoint, tables=gone)) == ["Unchanged"]


def test_auto_says_why_full_and_incremental_falls_aloud() -> None:
    assert "refreshes are full" in plan_refresh(BASE).reason
    assert "asked for" in plan_refresh(replace(BASE, mode="FULL")).reason
    assert "running FULL" in plan_refresh(replace(BASE, mode="INCREMENTAL")).reason


def test_incremental_only_fails() -> None:
    with pytest.raises(RefreshError, match=r"default\.c cannot be refreshed incrementally") as e:
        plan_refresh(replace(BASE, mode="INCREMENTAL_ONLY"))
    assert e.value.code == "NOT_INCREMENTAL"


def test_unknown_mode() -> None:
    with pytest.raises(RefreshError, match="SIDEWAYS"):
        plan_refresh(replace(BASE, mode="SIDEWAYS"))


def test_a_stray_commit_on_top_is_undone_first() -> None:
    assert names(replace(BASE, head=Head(4, {}))) == [
        "PinVersions",
        "RestorePublished",
        "WriteFull",
        "Measure",
        "Publish",
    ]
    unchanged = replace(BASE, head=Head(4, {}), tables=(TABLE,))
    assert plan_refresh(unchanged).mode == "RESTORE"
    assert names(unchanged) == ["RestorePublished", "Publish"]


def test_a_restore_that_was_not_published_is_not_done_again() -> None:
    restored = Head(5, {"kind": "RESTORE", "restores": 3})
    assert "RestorePublished" not in names(replace(BASE, head=restored))
    again = plan_refresh(replace(BASE, head=restored, tables=(TABLE,)))
    assert again.stages == (Publish(version=5),)
    other = Head(5, {"kind": "RESTORE", "restores": 2})
    assert "RestorePublished" in names(replace(BASE, head=other))


def test_a_crashed_runs_commit_is_adopted() -> None:
    request = replace(BASE, head=Head(4, stamp()), adoptable="r2")
    assert plan_refresh(request).mode == "ADOPT"
    assert names(request) == ["PinVersions", "Adopt", "Measure", "Publish"]
    only = replace(request, mode="INCREMENTAL_ONLY")
    assert plan_refresh(only).mode == "ADOPT"


@pytest.mark.parametrize(
    "request_",
    [
        replace(BASE, head=Head(4, stamp()), adoptable=None),
        replace(BASE, head=Head(4, stamp()), adoptable="r9"),
        replace(BASE, head=Head(5, stamp()), adoptable="r2"),
        replace(BASE, head=Head(4, stamp(spec="old")), adoptable="r2"),
        replace(BASE, head=Head(4, stamp(base_versions=[])), adoptable="r2"),
        replace(BASE, head=Head(4, stamp(kind="RESTORE")), adoptable="r2"),
        replace(BASE, head=Head(4, stamp()), adoptable="r2", tables=(replace(TABLE, version=7),)),
    ],
    ids=["fenced", "another run", "not above parent", "spec", "versions", "restore", "moved on"],
)
def test_noop_a_commit_that_is_not_current_is_not_adopted(request_: RefreshRequest) -> None:
    assert names(request_)[:2] == ["PinVersions", "RestorePublished"]


def test_joins_declared_since_are_checked_without_computing() -> None:
    request = replace(BASE, tables=(TABLE,), joins_known=False, plan=replace(PLAN, joins=(JOIN,)))
    assert plan_refresh(request).mode == "JOINS"
    assert names(request) == ["PinVersions", "ValidateJoins", "Publish"]
    # whatever may come on top meanwhile: the rows that the joins are about are the published ones
    assert plan_refresh(request).stages[-1] == Publish(version=3)


def test_a_lost_cache_table_is_made_again_and_not_called_unchanged() -> None:
    lost = replace(BASE, tables=(TABLE,), head=None, damage="its Delta table is gone")
    assert names(lost)[:2] == ["PinVersions", "PrepareTable"]
    assert "its Delta table is gone" in plan_refresh(lost).reason


def test_fingerprints_ignore_what_a_refresh_measures() -> None:
    sized = replace(PLAN, rows=7, bytes=9, non_null=frozenset({"s"}), joins=(JOIN,), name="d")
    assert plan_fingerprint(sized) == plan_fingerprint(PLAN)
    cube = replace(PLAN, grouping_sets=(GroupingSet(0, (0,)), GroupingSet(1, ())))
    assert plan_fingerprint(cube) != plan_fingerprint(PLAN)
    assert plan_fingerprint(replace(cube, grouping_sets=cube.grouping_sets[:1])) != (
        plan_fingerprint(cube)
    )
    plain = spec_hash(PLAN, {"a": "1"}, (), ())
    assert plain == spec_hash(sized, {"a": "1"}, (), ())
    assert (
        len({plain, spec_hash(PLAN, {"a": "2"}, (), ()), spec_hash(PLAN, {"a": "1"}, ("k",), ())})
        == 3
    )


NEAR = SourceOffer("id-a", "a", None, "it was never refreshed")
FAR = SourceOffer("id-b", "b", 7, steps=("filter", "roll_up"))


def test_the_nearest_source_that_will_do_is_read() -> None:
    plan = plan_refresh(replace(BASE, sources=(NEAR, FAR)))
    write = plan.stages[1]
    assert isinstance(write, WriteFull) and write.source == FAR
    assert write.detail == (
        "compute all rows from cache b at its version 7 (filter, roll_up), one commit"
    )
    assert plan.reason.endswith("; from cache b, which holds these versions")
    assert [s.get("source") for s in plan.to_json()] == [None, "id-b", None, None]


def test_why_no_source_is_read_is_said() -> None:
    behind = replace(FAR, why_not="it holds version 4 of t, which is at version 6")
    plan = plan_refresh(replace(BASE, sources=(NEAR, behind)))
    assert plan.reason.endswith(
        "; from the base tables, since cache a: it was never refreshed; "
        "cache b: it holds version 4 of t, which is at version 6"
    )
    assert plan.stages[1] == WriteFull()
    asked = plan_refresh(replace(BASE, mode="FULL", sources=(FAR,)))
    assert asked.stages[1] == WriteFull() and asked.reason.endswith("as FULL asks for")
