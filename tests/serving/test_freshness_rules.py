"""STRICT, MAX STALENESS and UNLIMITED, on plain data."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from cachemgr.base_state import BaseState, TableAt
from cachemgr.delta.base_columns import kept_columns
from cachemgr.delta.base_commits import BaseCommit, CommitRange, FileAction
from cachemgr.delta.changes import DataFile
from cachemgr.delta.past import UNKNOWN_PAST, Past
from cachemgr.serving.freshness import CLOCK_SKEW_MS, Histories, Verdict, check_freshness
from cachemgr.serving.seen_tables import TableRef, by_location
from cachemgr.serving.served_cache import ServedCache
from cachemgr.vocabulary import FreshnessKind
from matcher.model.expr import Col
from matcher.model.ir import CachePlan, Relation, StoredColumn
from matcher.model.reasons import ReasonCode

NOW = 1_000_000_000


def seen(location, version=5, table_id="id", kind="delta", commit="txn:5"):
    return TableRef(
        location.upper(), location, table_id, version, kind, False, commit=commit, committed_ms=50
    )


def schema(**columns):
    fields = [
        {"name": n, "type": t, "nullable": True, "metadata": m} for n, (t, m) in columns.items()
    ]
    return json.dumps({"type": "struct", "fields": fields})


THEN = schema(x=("long", {}), y=("string", {}))
TABLE = TableAt("A", "a", "id", 9, 50, "txn:5")
PAST = Past("txn:5", 50, NOW, THEN)


def cache(freshness=FreshnessKind.STRICT, seconds=None, **fields):
    return ServedCache(
        id="c",
        name="c",
        plan=CachePlan("c", (), (), None),
        location="",
        version=1,
        snapshot={"a": BaseState("id", 5, "txn:5", 50), "b": BaseState("id", 7, "txn:5", 50)},
        columns=dict.fromkeys(("a", "b"), kept_columns(THEN, {"x"})),
        freshness=freshness,
        max_staleness_seconds=seconds,
        rewrite_enabled=True,
        settings=frozenset(),
        principals=None,
        unvalidated=frozenset(),
        reads=frozenset(),
        **{"read_ms": 0, **fields},
    )


def check(found, *tables, read=("a",), first=lambda place: NOW, past=PAST):
    def lookup(table, version, *, columns_then):
        return replace(past, next_ms=first(table.location))

    return check_freshness(found, read, by_location(tables), NOW, Histories(lookup))


def test_strict_passes_the_very_versions():
    verdict = check(cache(), seen("a", 5))
    assert verdict.reason is None and verdict.exact


@pytest.mark.parametrize("version", [4, 6])
def test_strict_refuses_older_and_newer_versions(version):
    assert check(cache(), seen("a", version)).reason.code is ReasonCode.STALE


def test_a_table_that_the_block_does_not_read_may_have_moved():
    assert check(cache(), seen("a", 5), seen("b", 99), read=("a",)).exact


@pytest.mark.parametrize("freshness", [FreshnessKind.STRICT, FreshnessKind.UNLIMITED])
def test_a_recreated_table_with_the_same_version_is_refused(freshness):
    verdict = check(cache(freshness), seen("a", 5, table_id="other"))
    assert verdict.reason.code is ReasonCode.TABLE_RECREATED


@pytest.mark.parametrize(
    "table", [seen("a", None), seen("a", kind="files"), seen("a", 5, table_id=None)]
)
def test_a_table_without_a_version_is_refused(table):
    verdict = check(cache(FreshnessKind.UNLIMITED), table)
    assert verdict.reason.code is ReasonCode.FRESHNESS_UNKNOWN


def test_a_table_outside_of_the_snapshot_is_refused():
    assert check(cache(), seen("z"), read=("z",)).reason.code is ReasonCode.FRESHNESS_UNKNOWN


def test_a_table_that_was_not_seen_is_refused():
    assert check(cache()).reason.code is ReasonCode.FRESHNESS_UNKNOWN


def test_unlimited_serves_whatever_came_after_and_says_that_it_is_not_exact():
    verdict = check(cache(FreshnessKind.UNLIMITED), seen("a", 99))
    assert verdict.reason is None and not verdict.exact


@pytest.mark.parametrize(("age_ms", "hit"), [(0, True), (30_000, True), (30_001, False)])
def test_max_staleness_counts_from_the_first_commit_with_skew_against_the_hit(age_ms, hit):
    found = cache(FreshnessKind.MAX_STALENESS, 60)
    verdict = check(found, seen("a", 9), first=lambda place: NOW - age_ms)
    assert (verdict.reason is None) is hit
    assert CLOCK_SKEW_MS == 30_000


def test_max_staleness_below_the_skew_serves_only_what_is_exact():
    found = cache(FreshnessKind.MAX_STALENESS, 10)
    assert check(found, seen("a", 5)).reason is None
    moved = check(found, seen("a", 6), first=lambda place: NOW)
    assert moved.reason.code is ReasonCode.STALE


def test_max_staleness_never_serves_rows_from_the_querys_future():
    found = cache(FreshnessKind.MAX_STALENESS, 1_000)
    verdict = check(found, seen("a", 4))
    assert verdict.reason.code is ReasonCode.STALE and "later version 5" in verdict.reason.detail


def test_max_staleness_takes_the_table_that_lags_most():
    found = cache(FreshnessKind.MAX_STALENESS, 100)
    ages = {"a": NOW - 1_000, "b": NOW - 500_000}
    verdict = check(
        found, seen("a", 6), seen("b", 8), read=("a", "b"), first=lambda place: ages[place]
    )
    assert (
        verdict.reason.code is ReasonCode.STALE and "B changed 500 s ago" in verdict.reason.detail
    )


def test_one_table_at_two_versions_is_not_exact():
    verdict = check(cache(FreshnessKind.UNLIMITED), seen("a", 5), seen("a", 6))
    assert verdict.reason is None and not verdict.exact


@pytest.mark.parametrize("first", [NOW + 1, NOW + 86_400_000, NOW - 500_001, 0])
def test_a_commit_outside_of_the_snapshots_moment_and_now_counts_as_that_moment(first):
    """A clock in the future must not make a stale cache fresh, nor one in the past an own age."""
    found = cache(FreshnessKind.MAX_STALENESS, 529, read_ms=NOW - 500_000)
    verdict = check(found, seen("a", 9), first=lambda place: first)
    assert "A changed 500 s ago" in verdict.reason.detail
    assert check(replace(found, max_staleness_seconds=530), seen("a", 9)).reason is None


ALL = [FreshnessKind.STRICT, FreshnessKind.UNLIMITED]


@pytest.mark.parametrize("freshness", ALL)
def test_another_commit_of_that_number_is_refused(freshness):
    verdict = check(cache(freshness), seen("a", 5, commit="txn:6"))
    assert verdict.reason.code is ReasonCode.TABLE_RECREATED
    assert "put back from a copy" in verdict.reason.detail


@pytest.mark.parametrize("freshness", ALL)
def test_a_commit_that_was_cleaned_from_the_log_is_no_other_history(freshness):
    assert check(cache(freshness), seen("a", 5, commit="")).exact


@pytest.mark.parametrize(("made", "exact"), [(50, True), (51, False), (None, False)])
def test_a_snapshot_stored_before_identities_is_proven_by_the_commits_time(made, exact):
    old = {"a": BaseState("id", 5, "", made)}
    verdict = check(replace(cache(), snapshot=old), seen("a", 5))
    assert verdict.exact is exact and (verdict.reason is None) is exact
    behind = replace(cache(FreshnessKind.UNLIMITED), snapshot=old)
    assert (check(behind, seen("a", 6)).reason is None) is exact


@pytest.mark.parametrize("freshness", [FreshnessKind.MAX_STALENESS, FreshnessKind.UNLIMITED])
def test_a_snapshot_of_a_lost_history_never_serves(freshness):
    found = cache(freshness, 1_000)
    lost = check(found, seen("a", 9), past=replace(PAST, commit="txn:6"))
    assert lost.reason.code is ReasonCode.TABLE_RECREATED
    shorter = check(found, seen("a", 4))
    assert shorter.reason.code is ReasonCode.STALE
    assert check(found, seen("a", 9), past=replace(PAST, commit="")).reason is None


MAPPED = {"delta.columnMapping.physicalName": "col-1"}
CHANGES = {
    "gone": (schema(y=("string", {})), "column x is gone"),
    "renamed": (schema(x=("long", MAPPED)), "column x is another column of that name"),
    "widened": (schema(x=("decimal(20,0)", {})), "column x was long and is decimal(20,0)"),
    "narrowed": (schema(x=("integer", {})), "column x was long and is integer"),
    "not null": (THEN.replace('"nullable": true', '"nullable": false', 1), "no longer be NULL"),
    "collated": (
        schema(x=("long", {"__COLLATIONS": {"x": "ICU.UNICODE_CI"}})), "another collation",
    ),
}  # fmt: skip


@pytest.mark.parametrize("freshness", [FreshnessKind.MAX_STALENESS, FreshnessKind.UNLIMITED])
@pytest.mark.parametrize("change", CHANGES)
def test_noop_a_column_that_the_cache_reads_is_another_one_now(change, freshness):
    now, told = CHANGES[change]
    verdict = check(cache(freshness, 1_000), seen("a", 9), past=replace(PAST, columns=now))
    assert verdict.reason.code is ReasonCode.COLUMNS_CHANGED and told in verdict.reason.detail
    # no refresh reads a column that is not there, or follows one to a type that holds less
    not_followed = ("gone", "narrowed", "collated")
    assert ("REFRESH" in verdict.reason.suggestion) == (change not in not_followed)


def test_columns_that_the_cache_does_not_read_may_change():
    now = schema(z=("int", {}), y=("long", MAPPED), X=("long", {"comment": "the very same"}))
    verdict = check(cache(FreshnessKind.UNLIMITED), seen("a", 9), past=replace(PAST, columns=now))
    assert verdict.reason is None and not verdict.exact


NESTED = {"type": "struct", "fields": [
    {"name": "f", "type": "long", "nullable": True, "metadata": {"comment": "one"}}]}  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [("one", "two", True), ('"long"', '"integer"', False), ('"comment": "one"', MAPPED, False)],
)
def test_fields_inside_of_a_column_count_like_columns(old, new, same):
    then = schema(x=({"type": "array", "elementType": NESTED, "containsNull": True}, {}))
    now = then.replace(old, new if isinstance(new, str) else json.dumps(new)[1:-1])
    assert now != then
    found = replace(cache(FreshnessKind.UNLIMITED), columns={"a": kept_columns(then, {"x"})})
    verdict = check(found, seen("a", 9), past=replace(PAST, columns=now))
    assert (verdict.reason is None) is same


def test_a_snapshot_stored_without_columns_goes_by_what_the_log_says_of_them():
    x = Relation("a", "a")
    plan = CachePlan("c", (x,), (), None, columns=(StoredColumn("x", Col(0, "x", "bigint")),))
    old = replace(cache(FreshnessKind.UNLIMITED), plan=plan, columns={})
    wide = schema(x=("long", {}), more=("long", {}))
    for then, now, code in (
        (THEN, THEN, None), (THEN, wide, None), (THEN, CHANGES["renamed"][0], "COLUMNS_CHANGED"),
        (None, THEN, "COLUMNS_CHANGED"),
    ):  # fmt: skip
        past = replace(PAST, columns=now, columns_then=then)
        reason = check(old, seen("a", 9), past=past).reason
        assert (None if reason is None else reason.code.value) == code


def test_a_past_that_nobody_can_tell_now_is_asked_for_again():
    found = cache(FreshnessKind.UNLIMITED)
    answers = iter([UNKNOWN_PAST, PAST])
    histories = Histories(lambda table, version, *, columns_then: next(answers))
    tables = by_location([seen("a", 9)])
    verdict = check_freshness(found, ["a"], tables, NOW, histories)
    assert verdict.reason.code is ReasonCode.FRESHNESS_UNKNOWN
    assert check_freshness(found, ["a"], tables, NOW, histories).reason is None


def test_a_past_is_asked_for_once_for_each_state_of_the_table():
    asked = []

    def lookup(table, version, *, columns_then):
        asked.append((table.state, version))
        return PAST

    histories = Histories(lookup)
    for table in (TABLE, TABLE, replace(TABLE, version=10), replace(TABLE, version=10, commit="x")):
        assert histories.past(table, 5) is PAST
    assert len(asked) == 3


# -- what the commits since did to the rows -------------------------------------------------------


def data_file(path):
    return FileAction(DataFile(path, "", 100, 60), True)


def base_commit(version, *, add="", remove="", made_ms=NOW):
    added, removed = (tuple(map(data_file, text.split())) for text in (add, remove))
    identity = f"txn:{version}"
    return BaseCommit(version, identity, made_ms, added=added, removed=removed)


OPTIMIZE = {}
APPEND = {"add": "n"}
DELETE = {"remove": "o"}


def after(*ranges, past=PAST, before="txn:5", **fields):
    """Histories in which each place's commits are given, by the place's letter."""
    given = {place: commits for place, *commits in ranges}

    def read(table, version):
        commits = [
            base_commit(version + number, **what)
            for number, what in enumerate(given[table.location], start=1)
        ]
        return CommitRange(before, 50, tuple(commits))

    found = replace(past, **fields) if fields else past
    return Histories(lambda table, version, *, columns_then: found, read)


def judged(found, histories, *tables):
    read = list(dict.fromkeys(table.location for table in tables))
    return check_freshness(found, read, by_location(tables), NOW, histories)


def moved(place="a", version=6):
    return seen(place, version, commit=f"txn:{version}")


KINDS = [
    (FreshnessKind.STRICT, None),
    (FreshnessKind.MAX_STALENESS, 1),
    (FreshnessKind.UNLIMITED, None),
]


@pytest.mark.parametrize(("kind", "seconds"), KINDS)
def test_commits_without_data_change_leave_a_cache_exact(kind, seconds):
    verdict = judged(cache(kind, seconds), after(("a", OPTIMIZE), next_ms=1), moved())
    assert verdict == Verdict(None, exact=True)


@pytest.mark.parametrize(("kind", "seconds"), KINDS)
def test_noop_the_same_rows_under_other_columns_are_not_the_same(kind, seconds):
    histories = after(("a", OPTIMIZE), columns=CHANGES["renamed"][0])
    verdict = judged(cache(kind, seconds), histories, moved())
    assert verdict.reason.code is ReasonCode.COLUMNS_CHANGED and not verdict.exact


@pytest.mark.parametrize(
    ("what", "told"),
    [
        (APPEND, "1 commit appended 60 rows in 1 file"),
        (DELETE, "1 commit removed rows: those of 1 file went"),
    ],
)
def test_strict_says_what_happened_since(what, told):
    reason = judged(cache(), after(("a", what)), moved()).reason
    assert reason.code is ReasonCode.STALE and reason.detail.endswith(f"is STRICT: {told}")


def test_strict_says_that_rows_went_and_columns_are_other_ones_now():
    wide = CHANGES["widened"][0]
    reason = judged(cache(), after(("a", DELETE), columns=wide), moved()).reason
    assert reason.code is ReasonCode.COLUMNS_CHANGED and "is decimal(20,0)" in reason.detail
    assert reason.suggestion == "REFRESH RELATIONAL CACHE c"
    narrow = judged(cache(), after(("a", DELETE), columns=CHANGES["narrowed"][0]), moved()).reason
    assert "OR REPLACE" in narrow.suggestion
    gone = after(("a", DELETE), columns=CHANGES["gone"][0])
    assert "REFRESH" not in judged(cache(), gone, moved()).reason.suggestion
    stored_without = replace(cache(), columns={})
    for found, past in ((stored_without, PAST), (cache(), UNKNOWN_PAST)):
        reason = judged(found, after(("a", DELETE), past=past), moved()).reason
        assert reason.code is ReasonCode.STALE


def test_rows_that_were_appended_are_told_where_they_are_all_that_is_in_the_way():
    strict = judged(cache(), after(("a", APPEND)), moved())
    assert strict.reason.code is ReasonCode.STALE and not strict.exact
    assert strict.appended["a"].rows_added == 60
    old = cache(FreshnessKind.MAX_STALENESS, 1)
    late = judged(old, after(("a", {**APPEND, "made_ms": 1})), moved())
    assert late.reason.code is ReasonCode.STALE and late.appended.keys() == {"a"}
    any_age = judged(cache(FreshnessKind.UNLIMITED), after(("a", APPEND)), moved())
    assert any_age.reason is None and not any_age.exact and any_age.appended.keys() == {"a"}
    assert judged(cache(), after(("a", DELETE)), moved()).appended == {}


@pytest.mark.parametrize("kind", [FreshnessKind.STRICT, FreshnessKind.UNLIMITED])
@pytest.mark.parametrize(
    ("first", "second", "places"),
    [
        (APPEND, OPTIMIZE, {"a"}),
        (OPTIMIZE, APPEND, {"b"}),
        (APPEND, APPEND, {"a", "b"}),
        (APPEND, DELETE, set()),
        (DELETE, APPEND, set()),
    ],
)
def test_appended_rows_of_several_tables(first, second, places, kind):
    histories = after(("a", first), ("b", second))
    verdict = judged(cache(kind), histories, moved(), moved("b", 8))
    assert verdict.appended.keys() == places and not verdict.exact
    assert (verdict.reason is None) is (kind is FreshnessKind.UNLIMITED)


@pytest.mark.parametrize(("kind", "seconds"), KINDS[:2])
@pytest.mark.parametrize(
    ("first", "second", "in_the_way"),
    [(APPEND, DELETE, "B"), (DELETE, APPEND, "A"), (APPEND, APPEND, "A")],
)
def test_the_table_that_is_told_is_the_one_whose_rows_cannot_be_read_beside(
    first, second, in_the_way, kind, seconds
):
    old = {"made_ms": 1}
    histories = after(("a", {**first, **old}), ("b", {**second, **old}), next_ms=1)
    reason = judged(cache(kind, seconds), histories, moved(), moved("b", 8)).reason
    assert reason.code is ReasonCode.STALE
    assert reason.detail.startswith((f"{in_the_way} is at version", f"{in_the_way} changed "))


def test_noop_appended_rows_of_a_table_that_is_read_at_two_versions_are_not_told():
    verdict = judged(cache(), after(("a", APPEND)), seen("a", 5), moved())
    assert verdict.reason.code is ReasonCode.STALE and verdict.appended == {}


def test_the_lag_counts_from_the_first_commit_that_changed_a_row():
    found = cache(FreshnessKind.MAX_STALENESS, 60)
    commits = [{"made_ms": 1}, {**APPEND, "made_ms": NOW - 20_000}, {"add": "m"}]
    fresh = judged(found, after(("a", *commits), next_ms=1), moved(version=8))
    assert fresh.reason is None and fresh.appended["a"].rows_added is not None
    commits[1]["made_ms"] = NOW - 31_000
    stale = judged(found, after(("a", *commits), next_ms=1), moved(version=8))
    assert stale.reason.code is ReasonCode.STALE and "changed 31 s ago" in stale.reason.detail


@pytest.mark.parametrize(("kind", "seconds"), KINDS)
def test_the_same_rows_of_another_history_are_not_the_same(kind, seconds):
    """The commit that the snapshot was made from is another one by now."""
    histories = after(("a", OPTIMIZE), past=replace(PAST, commit="txn:z"), before="txn:z")
    verdict = judged(cache(kind, seconds), histories, moved())
    assert not verdict.exact and verdict.reason is not None
    assert "put back from a copy" in verdict.reason.detail


def test_where_nothing_moved_nothing_is_looked_at():
    def never(*args, **kwargs):
        raise AssertionError

    assert judged(cache(), Histories(never, never), seen("a", 5)).exact


def test_a_log_that_cannot_be_read_leaves_things_as_they_were():
    """Then it is not known what changed, only that the table moved."""
    found = Histories(lambda table, version, *, columns_then: PAST)
    strict = judged(cache(), found, moved())
    assert strict.reason.code is ReasonCode.STALE and strict.appended == {}
    assert judged(cache(FreshnessKind.UNLIMITED), found, moved()).reason is None
