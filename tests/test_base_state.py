"""When two looks at a base table saw the same, and what a commit's clock counts for."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from cachemgr.base_state import BaseState, TableAt, counted, versions_of

TABLE = TableAt("default.t", "file:/t", "id", 5, 1_000, "txn:a", "{}")
THEN = TABLE.state


def test_a_table_is_what_its_place_and_state_say():
    assert TABLE.identity == ("file:/t", "id", 5, "txn:a")
    assert THEN == BaseState("id", 5, "txn:a", 1_000)
    assert replace(TABLE, name="other", columns="").identity == TABLE.identity
    assert versions_of([TABLE, replace(TABLE, location="file:/u", version=7)]) == {
        "file:/t": 5, "file:/u": 7,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("then", "now", "same", "put_back"),
    [
        (THEN, THEN, True, False),
        (THEN, THEN._replace(commit="txn:b"), False, True),
        (THEN, THEN._replace(commit=""), True, False),
        (THEN, THEN._replace(version=6), False, False),
        (THEN, THEN._replace(table_id="other"), False, False),
        (THEN._replace(commit=""), THEN, True, False),
        (THEN._replace(commit="", committed_ms=999), THEN, False, True),
        (BaseState(None, None), BaseState(None, None), False, False),
    ],
)
def test_the_same_state_and_one_that_was_put_back(then, now, same, put_back):
    assert then.is_same(now) is same and then.is_put_back(now) is put_back


@pytest.mark.parametrize(
    ("commit", "read", "now", "moment"),
    [(5, 3, 9, 5), (3, 3, 9, 3), (9, 3, 9, 9), (2, 3, 9, 3), (10, 3, 9, 3), (5, 12, 9, 9)],
)
def test_a_commits_clock_counts_between_the_snapshot_and_now_alone(commit, read, now, moment):
    assert counted(commit, read, now) == moment
    start = datetime(2026, 1, 1, tzinfo=UTC)
    hours = [start + timedelta(hours=hour) for hour in (commit, read, now, moment)]
    assert counted(*hours[:3]) == hours[3]
