"""Where a cache stands, on plain data."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from cachemgr.base_state import BaseState, TableAt
from cachemgr.cache_spec import CacheSpec, Freshness
from cachemgr.delta.base_columns import kept_columns
from cachemgr.delta.changes import ChangeCode, ChangeKind, Changes
from cachemgr.metastore.records import (
    CacheRecord,
    RefreshRunRecord,
    SnapshotRecord,
    SnapshotTableRecord,
    as_utc,
)
from cachemgr.statements.cache_facts import CacheFacts
from cachemgr.statements.describe import describe_rows
from cachemgr.statements.status import Looked, Moved, answers, status_of
from cachemgr.vocabulary import FreshnessKind, RunState
from matcher.model.codec import PLAN_VERSION
from matcher.model.message import Message


def schema(kind: str = "long", name: str = "x") -> str:
    field = {"name": name, "type": kind, "nullable": True, "metadata": {}}
    return json.dumps({"type": "struct", "fields": [field]})


CACHE = CacheRecord("default", "c", "SELECT", "h", "file:/c", plan_version=PLAN_VERSION)
RUN = RefreshRunRecord("r", "c", RunState.PUBLISHED, "FULL", "", "w", 1, as_utc(0))
KEPT = kept_columns(schema(), {"x"})
T, U = (
    SnapshotTableRecord(f"s.{n}", f"file:/{n}", f"id-{n}", 5, 1, f"txn:{n}", KEPT) for n in "tu"
)
APPENDS = Changes(
    ChangeKind.APPENDS, detail=Message("1 commit appended 7 rows in 2 files"), commits=1
)
SAME = Changes(ChangeKind.SAME, detail=Message("2 commits without data change"), commits=2)
REMOVED = Changes(ChangeKind.SIGNED, ChangeCode.ROWS_REMOVED, Message("1 commit removed 3 rows"))


def look(columns: str = schema(), **changes: Changes) -> Looked:
    """Both tables, those that are named two versions on."""
    versions: dict[str, BaseState | None] = {t.location: t.state for t in (T, U)}
    moved = {}
    for name, found in changes.items():
        now = TableAt(f"s.{name}", f"file:/{name}", f"id-{name}", 7, 2, "txn:new", columns)
        versions[now.location] = now.state
        moved[now.location] = Moved(now, found)
    return Looked(versions, moved)


def words(looked: Looked, cache: CacheRecord = CACHE) -> tuple[str, str, str]:
    published = SnapshotRecord(RUN, (T, U))
    found = status_of(cache, RUN, published, looked)
    told = answers(cache, published, looked, found.availability)
    return found.availability, found.combined, told


def described(facts: CacheFacts) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for item, value, _ in describe_rows(facts, extended=False).rows:
        found.setdefault(item, []).append(value)
    return found


def test_commits_without_data_change_are_nothing() -> None:
    assert words(look()) == words(look(t=SAME, u=SAME))
    assert words(look(t=SAME))[:2] == ("AVAILABLE", "HEALTHY")


def test_a_strict_cache_answers_with_the_rows_that_were_appended_to_one_table() -> None:
    availability, combined, told = words(look(t=APPENDS, u=SAME))
    assert (availability, combined) == ("APPENDED", "APPENDED")
    assert told == (
        "yes: with the appended rows, which hits read beside it "
        "(s.t: 1 commit appended 7 rows in 2 files)"
    )


@pytest.mark.parametrize(
    "looked",
    [
        look(t=REMOVED),
        look(t=APPENDS, u=REMOVED),
        look(t=replace(APPENDS, code=ChangeCode.RANGE_REWRITTEN)),
        look(schema("decimal(20,0)"), t=APPENDS),
        look(schema("decimal(20,0)"), t=SAME),
        Looked(look(t=SAME).versions),  # nobody looked at what happened
    ],
)
def test_what_a_strict_cache_does_not_answer(looked: Looked) -> None:
    availability, combined, told = words(looked)
    assert (availability, combined) == ("STALE", "STALE")
    assert told.startswith("no: not before its next refresh (s.")


def test_a_column_that_is_another_one_is_named() -> None:
    assert (
        "(s.t: 2 commits without data change; column x was long and is decimal(20,0))"
        in words(look(schema("decimal(20,0)"), t=SAME))[2]
    )


@pytest.mark.parametrize(
    ("columns", "what"),
    [
        (schema("double"), "column x was long and is double"),
        (schema(name="y"), "column x is gone"),
    ],
)
def test_no_refresh_is_promised_that_cannot_be_made(columns: str, what: str) -> None:
    told = words(look(columns, t=APPENDS))[2]
    assert told.startswith(f"no: no refresh can read its base tables as they are (s.t: {what}): ")
    assert "replace the cache" in told
    gone = replace(look(t=APPENDS), versions={T.location: None, U.location: U.state}, moved={})
    assert words(gone) == (
        "STALE",
        "BROKEN",
        "no: no refresh can be made before base table s.t is there again, or the cache is replaced",
    )


def test_describe_names_what_broke_a_cache() -> None:
    gone = Looked({T.location: None, U.location: U.state, "file:/v": None})
    told = described(CacheFacts(CACHE, (), RUN, SnapshotRecord(RUN, (T, U)), gone))
    first, second = told["broken"]
    assert first.startswith("base table s.t is gone: there is no Delta table at file:/t")
    assert "restore the table, or drop or replace the cache" in first
    # of a table whose name nothing says
    assert second.startswith("base table file:/v is gone")
    assert "broken" not in described(CacheFacts(CACHE, (), None, None, Looked()))


def test_a_table_that_cannot_be_read_now_is_not_gone() -> None:
    seen = look(t=APPENDS)
    states = {place: state for place, state in seen.versions.items() if place != U.location}
    away = replace(seen, versions=states, unread={U.location: "permission denied: x"})
    assert words(replace(away, moved={}, versions={T.location: T.state})) == (
        "UNKNOWN",
        "UNKNOWN",
        "unknown: the log of a base table cannot be read here (s.u: permission denied: x)",
    )
    assert words(replace(seen, versions={**seen.versions, U.location: None}))[1] == "BROKEN"


def test_several_tables_that_grew_may_be_dimensions_with_new_keys() -> None:
    availability, _, told = words(look(t=APPENDS, u=APPENDS))
    assert availability == "STALE", "nobody looked at the keys"
    assert told.startswith("where all but one of the tables that grew got new keys alone: with")


def test_the_property_is_named_where_it_alone_keeps_the_rows_away() -> None:
    switched = replace(CACHE, spec=CacheSpec(properties={"cachemgr.freshHits": "false"}))
    availability, _, told = words(look(t=APPENDS), switched)
    assert availability == "STALE" and "its property cachemgr.freshHits is false" in told
    assert "freshHits" not in words(look(t=REMOVED), switched)[2]
    assert words(look(t=SAME), switched)[0] == "AVAILABLE"


def test_caches_that_may_lag_answer_from_their_snapshot() -> None:
    bound = replace(CACHE, spec=CacheSpec(freshness=Freshness(FreshnessKind.MAX_STALENESS, 60)))
    availability, _, told = words(look(t=APPENDS), bound)
    assert availability == "STALE"
    assert told.startswith("yes: as of its snapshot, while its lag is below 60 s, then with the")
    assert "then with" not in words(look(t=REMOVED), bound)[2]
    assert words(look(t=SAME), bound)[0] == "AVAILABLE"
    unlimited = replace(CACHE, spec=CacheSpec(freshness=Freshness(FreshnessKind.UNLIMITED)))
    assert words(look(t=REMOVED), unlimited)[2].startswith("yes: as of its snapshot (s.t: 1 commit")


@pytest.mark.parametrize(
    "looked",
    [
        look(schema("decimal(20,0)"), t=APPENDS),
        look(t=Changes(ChangeKind.UNKNOWN, ChangeCode.HISTORY_REWRITTEN, Message("put back"))),
        Looked({"file:/t": T.state._replace(table_id="another"), "file:/u": U.state}),
    ],
)
@pytest.mark.parametrize(
    "freshness", [Freshness(FreshnessKind.MAX_STALENESS, 60), Freshness(FreshnessKind.UNLIMITED)]
)
def test_no_freshness_makes_up_for_another_table(looked: Looked, freshness: Freshness) -> None:
    availability, _, told = words(looked, replace(CACHE, spec=CacheSpec(freshness=freshness)))
    assert availability == "STALE" and told.startswith("no: not before its next refresh (s.t")


def test_what_does_not_depend_on_the_tables() -> None:
    assert words(look(), replace(CACHE, spec=CacheSpec(rewrite_enabled=False)))[2].startswith(
        "no: it has DISABLE"
    )
    assert words(look(), replace(CACHE, damaged="gone"))[:2] == ("DAMAGED", "DAMAGED")
    gone = status_of(CACHE, RUN, SnapshotRecord(RUN, (T, U)), Looked({"file:/t": None}))
    assert (gone.definition, gone.combined) == ("BROKEN", "BROKEN")
    never = status_of(CACHE, None, None, Looked())
    assert (never.refresh, never.combined) == ("NEVER", "NOT_REFRESHED")


def test_what_the_scheduler_saw_counts_where_nobody_looked() -> None:
    published = SnapshotRecord(RUN, (T, U))
    assert status_of(CACHE, RUN, published, Looked(), behind=True).combined == "STALE"
    assert status_of(CACHE, RUN, published, look(t=SAME), behind=True).combined == "HEALTHY"


@pytest.mark.parametrize(
    ("lost", "refresh", "combined"),
    [(False, "RUNNING", "HEALTHY"), (True, "FAILED", "REFRESH_FAILED")],
)
def test_a_refresh_whose_process_is_gone_has_failed(
    lost: bool, refresh: str, combined: str
) -> None:
    run = replace(RUN, state=RunState.RUNNING, is_lost=lost)
    found = status_of(CACHE, run, SnapshotRecord(RUN, (T, U)), look())
    assert (found.refresh, found.combined) == (refresh, combined)
