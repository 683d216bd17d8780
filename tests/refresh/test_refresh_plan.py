"""`plan_refresh` decides from its request alone; each way and each reason once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cachemgr.base_state import TableAt
from cachemgr.delta.base_columns import kept_columns
from cachemgr.delta.changes import ChangeCode, ChangeKind, Changes, DataFile
from cachemgr.delta.commits import Head
from cachemgr.metastore.records import SnapshotTableRecord
from cachemgr.refresh.by_change.adopt import Written
from cachemgr.refresh.by_change.incremental import Stored
from cachemgr.refresh.by_change.past_runs import PastRun
from cachemgr.refresh.by_change.why_full import CURES, FullCode, NotIncremental
from cachemgr.refresh.planning.plan import Published, RefreshRequest
from cachemgr.refresh.planning.planner import plan_refresh
from cachemgr.refresh.planning.steps import Adopt, MoveOn, SourceOffer
from matcher.model.expr import Agg, Col, Lit
from matcher.model.ir import (
    CachePlan,
    Measure,
    RecordPreservingJoin,
    Relation,
    StoredColumn,
)
from matcher.model.message import Message

PLAN = CachePlan(
    name="c",
    relations=(Relation("file:/t", "default.t"),),
    predicates=(),
    keys=(StoredColumn("k", Col(0, "k", "int")),),
    measures=(
        Measure("s", Agg("sum", (Col(0, "v", "bigint"),), "bigint")),
        Measure("__rows", Agg("count", (), "bigint", False), hidden=True),
        Measure("__count_0", Agg("count", (Col(0, "v", "bigint"),), "bigint", False), hidden=True),
    ),
)
TABLE = TableAt("default.t", "file:/t", "id-1", 5, 1000, "txn:a")
THEN = SnapshotTableRecord("default.t", "file:/t", "id-1", 5, 1000, "txn:a", "{}")
STORED = Stored(replace(PLAN, rows=10, bytes=1000))
PUBLISHED = Published("r1", 3, "spec", (THEN,), STORED)
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
    assert plan.mode == "FULL" and "never refreshed" in str(plan.reason)
    rows = plan.describe()
    assert rows[0][1:] == ("FULL", str(plan.reason)) and rows[2][2] == "create the Delta table"


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
    assert plan.mode == "FULL" and "its file f is gone" in str(plan.reason)
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
    assert plan.mode == "FULL" and why in str(plan.reason)


OPTIMIZED = Changes(ChangeKind.SAME, detail=Message("3 commits without data change"), commits=3)
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
    assert str(plan.reason) == ("no row of a base table changed: 3 commits without data change")
    assert "default.t at version 8" in plan.describe()[1][2]
    full = plan_refresh(replace(MOVED, mode="FULL"))
    assert full.mode == "FULL" and "no row of a base table changed" in str(full.reason)


def test_noop_the_same_rows_under_other_columns_are_computed_anew() -> None:
    wide = SCHEMA.replace("long", "string")
    other = replace(MOVED, tables=(replace(MOVED.tables[0], columns=wide),))
    plan = plan_refresh(other)
    assert plan.mode == "FULL" and "but column v was long and is string" in str(plan.reason)
    unsaid = replace(PUBLISHED, tables=(replace(THEN, columns=None),))
    assert plan_refresh(replace(MOVED, published=unsaid)).mode == "FULL"


def test_the_same_rows_with_joins_declared_since_or_a_stray_commit_on_top() -> None:
    declared = replace(MOVED, joins_known=False, plan=replace(PLAN, joins=(JOIN,)))
    assert names(declared) == ["PinVersions", "ValidateJoins", "Publish"]
    assert str(plan_refresh(declared).reason).startswith("no row of a base table changed")
    stray = replace(MOVED, head=Head(4, {}))
    assert plan_refresh(stray).mode == "RESTORE"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            Changes(ChangeKind.APPENDS, None, Message("1 commit appended 60 rows in 1 file")),
            "from version 5 to 8: 1 commit appended 60 rows in 1 file",
        ),
        (
            Changes(ChangeKind.SIGNED, ChangeCode.ROWS_REMOVED, Message("1 commit removed rows")),
            "from version 5 to 8: 1 commit removed rows [ROWS_REMOVED]",
        ),
        (
            Changes(
                ChangeKind.UNKNOWN, ChangeCode.LOG_CLEANED, Message("commit 6 is gone from the log")
            ),
            "from version 5 to 8: commit 6 is gone from the log [LOG_CLEANED]",
        ),
    ],
)
def test_the_reason_says_what_changed(changes: Changes, told: str) -> None:
    plan = plan_refresh(replace(MOVED, changes={"file:/t": changes}))
    assert told in str(plan.reason)
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
    assert [s.name for s in plan.stages] == ["Publish"] and "which commits" in str(plan.reason)
    plan = plan_refresh(replace(BASE, published=old, tables=(replace(TABLE, timestamp_ms=1001),)))
    assert plan.mode == "FULL" and "put back from a copy" in str(plan.reason)
    gone = (replace(TABLE, commit=""),)
    checkpoint = replace(PUBLISHED, tables=(replace(THEN, commit_id=""),))
    assert names(replace(BASE, published=checkpoint, tables=gone)) == ["Unchanged"]


APPENDED = Changes(
    ChangeKind.APPENDS,
    None,
    Message("1 commit appended 60 rows in 1 file"),
    (DataFile("part-1", "", 500, 60),),
    commits=1,
)
UPDATED = Changes(
    ChangeKind.SIGNED,
    ChangeCode.ROWS_REMOVED,
    Message("1 commit removed rows"),
    (DataFile("part-1", "u1", 500, 60),),
    (DataFile("part-1", "", 500, None),),
    commits=1,
)
EXTREME = replace(
    PLAN, measures=(*PLAN.measures, Measure("m", Agg("min", (Col(0, "v", "bigint"),), "bigint")))
)
GREW = replace(MOVED, changes={"file:/t": APPENDED}, sizes={"file:/t": 1_000_000})


def test_a_refresh_that_computes_everything_says_why() -> None:
    assert plan_refresh(replace(BASE, published=None)).code is FullCode.NEVER_REFRESHED
    assert plan_refresh(replace(GREW, mode="FULL")).code is FullCode.ASKED_FOR
    fell = replace(GREW, mode="INCREMENTAL", changes={"file:/t": UPDATED}, plan=EXTREME)
    plan = plan_refresh(fell)
    assert plan.mode == "FULL" and plan.code is FullCode.ROWS_REMOVED
    assert str(plan.reason).startswith(
        "INCREMENTAL requested; running FULL, because ROWS_REMOVED: "
    )
    assert "append only" in str(plan.reason)  # what to do


def test_each_code_has_a_cure_or_needs_none() -> None:
    assert set(CURES) == set(FullCode)
    assert {code.value for code in ChangeCode} <= {code.value for code in FullCode}


def test_few_groups_are_written_anew_from_the_change() -> None:
    plan = plan_refresh(GREW)
    assert plan.mode == "REPLACE" and plan.code is None
    assert [s.name for s in plan.stages] == ["PinVersions", "WriteDelta", "Measure", "Publish"]
    assert "60 rows in 1 file that came to default.t" in str(plan.stages[1].detail)
    assert plan.estimate is not None and plan.estimate[0] < plan.estimate[1]
    with_joins = replace(GREW, plan=replace(PLAN, joins=(JOIN,)))
    assert names(with_joins)[-2:] == ["CheckJoins", "Publish"]


def test_rows_that_went_are_taken_away_where_sums_are_stored() -> None:
    updated = replace(GREW, changes={"file:/t": UPDATED})
    plan = plan_refresh(updated)
    assert plan.mode == "REPLACE"
    assert "less those of the 1 file that went" in str(plan.stages[1].detail)
    assert plan_refresh(replace(updated, plan=EXTREME)).code is FullCode.ROWS_REMOVED
    flat = replace(PLAN, keys=None, measures=(), columns=PLAN.keys or ())
    assert plan_refresh(replace(updated, plan=flat)).code is FullCode.ROWS_REMOVED
    assert plan_refresh(replace(GREW, plan=flat)).mode == "APPEND"
    unsaid = replace(UPDATED, removed=(DataFile("part-1", "", 0, None),))
    assert plan_refresh(replace(updated, changes={"file:/t": unsaid})).mode == "FULL"
    # a share of the rows behind the cache is expected to change: 0.1 % of 60 million
    stored = Stored(replace(PLAN, rows=1_000_000, bytes=100_000), base_rows=60_000_000)
    deep = replace(updated, published=replace(KEPT, stored=stored))
    assert plan_refresh(deep).mode == "PARTIALS"


def many(**changed: object) -> RefreshRequest:
    """The same with a cache of a million groups."""
    stored = Stored(replace(PLAN, rows=1_000_000, bytes=100_000), **changed)
    return replace(GREW, published=replace(KEPT, stored=stored))


def test_many_groups_are_appended_to_until_there_are_too_many_partial_rows() -> None:
    plan = plan_refresh(many())
    assert plan.mode == "PARTIALS" and "append them as partial rows" in str(plan.stages[1].detail)
    # 700,000 groups when it was written whole, 300,000 partial rows since
    assert plan_refresh(many(groups={0: 700_000})).mode == "REPLACE"


def test_a_change_that_is_as_dear_as_everything_is_left_to_full() -> None:
    large = replace(APPENDED, added=(replace(APPENDED.added[0], bytes=900_000),))
    request = replace(GREW, changes={"file:/t": large})
    plan = plan_refresh(request)
    assert plan.mode == "FULL" and plan.code is FullCode.FULL_IS_CHEAPER
    assert plan.estimate is not None and plan.estimate[1] > 0.8 * plan.estimate[0]
    asked_for = plan_refresh(replace(request, mode="INCREMENTAL"))
    assert asked_for.mode == "REPLACE"
    assert str(asked_for.reason).endswith("% of a full refresh; AUTO would compute everything")
    assert "AUTO" not in str(plan_refresh(GREW).reason)


def test_past_runs_decide_where_they_tell_more_than_bytes() -> None:
    found = plan_refresh(GREW)
    assert found.estimate is not None and found.weighed is not None
    assert found.weighed.change is None and "last runs" not in str(found.reason)
    cost, full_cost = found.estimate
    past = (
        PastRun("REPLACE", cost, 30.0),
        PastRun("REPLACE", cost, 30.0),
        PastRun("FULL", full_cost, 9.0),
    )
    request = replace(GREW, past=past)
    plan = plan_refresh(request)
    assert plan.mode == "FULL" and plan.code is FullCode.FULL_IS_CHEAPER
    assert plan.estimate == (full_cost, cost)
    told = "the change is expected to take 30.0 s and everything 9.0 s"
    assert (
        told in str(plan.reason) and told in str(plan.detail) and "% of all" not in str(plan.reason)
    )
    assert told in str(plan_refresh(replace(request, mode="INCREMENTAL")).reason)
    quick = replace(request, past=tuple(replace(p, seconds=9.0) for p in past))
    assert plan_refresh(quick).mode == "REPLACE"
    # another way of adding the change than the one that was slow
    partials = replace(request, past=tuple(replace(p, way="PARTIALS") for p in past[:2]))
    assert plan_refresh(partials).mode == "REPLACE"


def test_a_refresh_from_a_cache_says_nothing_of_one_from_the_base_tables() -> None:
    found = plan_refresh(GREW)
    assert found.estimate is not None
    cost, full_cost = found.estimate
    offer = SourceOffer("d", "s.d", 1)
    slow = (PastRun("REPLACE", cost, 30.0),) * 2
    nested = replace(GREW, past=(*slow, PastRun("FULL", full_cost, 3.0, is_from_cache=True)))
    assert plan_refresh(nested).mode == "REPLACE"
    assert plan_refresh(replace(nested, sources=(offer,))).mode == "FULL"
    own = replace(nested, past=(*slow, PastRun("FULL", full_cost, 3.0)))
    assert plan_refresh(replace(own, sources=(offer,))).mode == "REPLACE"


def test_after_a_failure_by_the_change_alone_everything_is_computed() -> None:
    failed = replace(GREW, has_failed=True)
    assert plan_refresh(failed).code is FullCode.LAST_ATTEMPT_FAILED
    assert plan_refresh(replace(failed, mode="INCREMENTAL_ONLY")).mode == "REPLACE"


def test_a_stray_commit_is_undone_before_the_change_is_added() -> None:
    stray = replace(GREW, head=Head(4, {}))
    assert names(stray)[:3] == ["PinVersions", "RestorePublished", "WriteDelta"]


NOT_BY_THE_CHANGE = {
    FullCode.CACHE_DAMAGED: replace(GREW, damage="its file x is gone"),
    FullCode.DEFINITION_CHANGED: replace(GREW, spec="other"),
    FullCode.OTHER_TABLES: replace(
        GREW, tables=(*GREW.tables, replace(GREW.tables[0], location="file:/u"))
    ),
    FullCode.TABLE_RECREATED: replace(
        GREW, tables=(replace(GREW.tables[0], table_id="id-2"),), changes={}
    ),
    FullCode.HISTORY_REWRITTEN: replace(
        GREW, tables=(replace(TABLE, commit="txn:z", columns=SCHEMA),), changes={}
    ),
    FullCode.TOP_K: replace(GREW, plan=replace(PLAN, limit=3)),
    FullCode.HAVING: replace(GREW, plan=replace(PLAN, having=(Lit(True, "boolean"),))),
    FullCode.DELTA_NOT_LINEAR: replace(
        GREW, plan=replace(PLAN, relations=(*PLAN.relations, *PLAN.relations))
    ),
    FullCode.NOT_MERGEABLE: replace(GREW, plan=replace(PLAN, measures=PLAN.measures[:1])),
    FullCode.FILES_GONE: replace(GREW, gone=("part-1",)),
    FullCode.PARTITIONING_CHANGED: replace(
        GREW, repartitioned=frozenset({GREW.tables[0].location})
    ),
    FullCode.COLUMNS_CHANGED: replace(
        GREW, tables=(replace(GREW.tables[0], columns=SCHEMA.replace("long", "string")),)
    ),
    FullCode.LOG_CLEANED: replace(
        GREW,
        changes={"file:/t": Changes(ChangeKind.UNKNOWN, ChangeCode.LOG_CLEANED, Message("gone"))},
    ),
}


@pytest.mark.parametrize("code", NOT_BY_THE_CHANGE, ids=str)
def test_noop_not_by_the_change_alone(code: FullCode) -> None:
    request = NOT_BY_THE_CHANGE[code]
    plan = plan_refresh(request)
    assert plan.mode == "FULL" and plan.code is code and code.value in str(plan.reason)
    assert plan.detail and f"{code.value}: {plan.detail}" in str(plan.reason)
    with pytest.raises(NotIncremental, match=code.value) as caught:
        plan_refresh(replace(request, mode="INCREMENTAL_ONLY"))
    assert caught.value.code == "NOT_INCREMENTAL"
    assert (caught.value.why.code, caught.value.why.detail) == (code, plan.detail)


def test_noop_two_tables_that_grew() -> None:
    other = replace(TABLE, location="file:/u", name="u", version=9, columns=SCHEMA)
    then = replace(KEPT.tables[0], location="file:/u", version=4)
    both = replace(
        GREW,
        tables=(*GREW.tables, other),
        published=replace(KEPT, tables=(*KEPT.tables, then)),
        changes={"file:/t": APPENDED, "file:/u": APPENDED},
    )
    assert plan_refresh(both).code is FullCode.SEVERAL_TABLES
    harmless = replace(both, changes={"file:/t": APPENDED, "file:/u": OPTIMIZED})
    assert plan_refresh(harmless).mode == "REPLACE"


# a run that died above version 3 added what came from version 5 to 7; version 8 came since
THEN_READ = (replace(GREW.tables[0], version=7, commit="txn:b"),)
BY_THE_CHANGE = stamp(
    kind="INCREMENTAL",
    base_versions=[list(t.identity) for t in THEN_READ],
    since=[["file:/t", "id-1", 5, "txn:a"]],
    sets={"replaced": [], "appended": [0]},
)
DIED = replace(
    GREW,
    head=Head(4, BY_THE_CHANGE),
    adoptable="r2",
    written=Written(THEN_READ, {"file:/t": APPENDED}, is_behind=True),
)


def test_a_commit_of_the_change_alone_is_adopted_at_its_own_versions() -> None:
    plan = plan_refresh(DIED)
    assert plan.mode == "ADOPT" and "a run of its own adds what came since" in str(plan.reason)
    assert [s.name for s in plan.stages] == ["PinVersions", "Adopt", "Measure", "Publish"]
    [adopt] = [s for s in plan.stages if isinstance(s, Adopt)]
    assert adopt.tables == THEN_READ and adopt.is_behind
    assert adopt.delta is not None and adopt.delta.table == THEN_READ[0]
    # what it did to which set it says itself: today's bounds may be other ones
    assert (adopt.delta.replaced, adopt.delta.appended) == ((), (0,))
    assert "default.t at version 7" in str(adopt.detail)
    joined = replace(DIED, plan=replace(PLAN, joins=(JOIN,)))
    assert names(joined)[-3:] == ["Measure", "CheckJoins", "Publish"]
    full = replace(DIED, head=Head(4, {**BY_THE_CHANGE, "kind": "FULL"}))
    assert names(full) == ["PinVersions", "Adopt", "Measure", "Publish"]


def told(**changed: object) -> RefreshRequest:
    return replace(DIED, head=Head(4, {**BY_THE_CHANGE, **changed}))


NOT_ADOPTED = {
    "of another run": replace(DIED, adoptable="r9"),
    "of no run that died": replace(DIED, adoptable=None),
    "not right above its parent": told(parent_version=2),
    "above a version that is not published": replace(
        DIED, head=Head(5, {**BY_THE_CHANGE, "parent_version": 4})
    ),
    "added to other versions": told(since=[["file:/t", "id-1", 4, "txn:z"]]),
    "added to another history": told(since=[["file:/t", "id-1", 5, "txn:z"]]),
    "of another definition": told(spec="other"),
    "of unknown kind": told(kind="RESTORE"),
    "that does not say what it did": told(sets=None),
    "that does not say to what": told(since=None),
    "whose versions are lost": replace(DIED, written=None),
    "over a damaged table": replace(DIED, damage="its file x is gone"),
    "that failed": replace(DIED, has_failed=True),
    "where FULL is asked for": replace(DIED, mode="FULL"),
    "of a range that cannot be added": replace(
        DIED,
        written=Written(
            THEN_READ,
            {"file:/t": Changes(ChangeKind.UNKNOWN, ChangeCode.RANGE_REWRITTEN, Message("x"))},
        ),
    ),
    "whose files are gone": replace(DIED, written=replace(DIED.written, gone=("part-1",))),
    "of two tables": replace(DIED, written=replace(DIED.written, changes={"file:/t": OPTIMIZED})),
}


@pytest.mark.parametrize("why", NOT_ADOPTED)
def test_a_commit_is_not_adopted(why: str) -> None:
    plan = plan_refresh(NOT_ADOPTED[why])
    assert plan.mode != "ADOPT" and "Adopt" not in [s.name for s in plan.stages]
    undone = {"RestorePublished", "WriteFull"} & {s.name for s in plan.stages}
    assert undone, "nothing is added above rows that were not published"


def test_full_adopts_what_was_computed_from_the_base_tables_alone() -> None:
    now = stamp(source=None)
    died = replace(BASE, mode="FULL", head=Head(4, now), adoptable="r2")
    assert plan_refresh(died).mode == "ADOPT"
    built = replace(died, head=Head(4, {**now, "source": {"cache_id": "c2"}}))
    assert plan_refresh(built).mode == "FULL"
    assert plan_refresh(replace(built, mode="AUTO")).mode == "ADOPT"
