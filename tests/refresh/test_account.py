"""What a run notes down of its way and its cost, on plain data."""

from __future__ import annotations

import json
from dataclasses import replace

from cachemgr.delta.changes import ChangeCode, ChangeKind, Changes, DataFile
from cachemgr.delta.commits import AddedFile, Commit
from cachemgr.metastore.accounts import RunAccount, account_of
from cachemgr.refresh.account import planned, published, refused
from cachemgr.refresh.by_change.past_runs import Expected, Weighed
from cachemgr.refresh.by_change.why_full import CURES, FullCode, WhyFull
from cachemgr.refresh.planning.plan import RefreshPlan
from matcher.model.message import NOTHING, Count, Message, TableName, is_literal

APPENDED = Changes(
    ChangeKind.APPENDS,
    added=(DataFile("a", "", 100, 7), DataFile("b", "", 50, 3)),
    commits=2,
)
SAME = Changes(ChangeKind.SAME, added=(), commits=1)
COMMIT = Commit(4, {}, None, (AddedFile("f", {}, 30, 2, {}), AddedFile("g", {}, 12, 1, {})))


def test_a_delta_has_both_estimates_and_the_change() -> None:
    plan = RefreshPlan("c", "REPLACE", Message("why"), (), estimate=(12.6, 100.0))
    account = planned(plan, [APPENDED, SAME])
    assert account == RunAccount(
        "REPLACE", change_estimate=13, full_estimate=100, changed_rows=10, changed_bytes=150
    )
    assert account_of(account.to_facts()) == account
    assert "13% of a full refresh" in account.told() and "10 rows appended since" in account.told()


def test_a_full_one_has_the_same_estimates_and_says_why() -> None:
    plan = RefreshPlan(
        "c", "FULL", Message("why"), (), FullCode.FULL_IS_CHEAPER, (100.0, 95.0), Message("dear")
    )
    account = planned(plan, [APPENDED])
    assert (account.change_estimate, account.full_estimate) == (95, 100)
    assert (account.code, account.detail) == ("FULL_IS_CHEAPER", Message("dear"))
    assert account.cure == CURES[FullCode.FULL_IS_CHEAPER] != ""


def test_what_past_runs_made_it_expect_is_noted_down() -> None:
    weighed = Weighed(True, Expected(2.0, 3.0, 2), Expected(20.0, 20.333, 1))
    plan = RefreshPlan("c", "REPLACE", Message("why"), (), estimate=(1.0, 100.0), weighed=weighed)
    account = planned(plan, [APPENDED])
    assert (account.change_seconds, account.full_seconds) == (2.5, 20.17)
    assert account_of(account.to_facts()) == account
    assert "expected 2.5 s for the change alone and 20.2 s for a full refresh" in account.told()
    one = planned(replace(plan, weighed=replace(weighed, full=None)), [APPENDED])
    assert (one.change_seconds, one.full_seconds) == (2.5, None)
    assert "expected 2.5 s for the change alone, by past runs" in one.told()
    assert account.without_counts(str).change_seconds is None


def test_rows_that_went_are_not_counted() -> None:
    file = DataFile("old", "", 1000, None)
    signed = replace(
        APPENDED, kind=ChangeKind.SIGNED, code=ChangeCode.ROWS_REMOVED, removed=(file,)
    )
    account = planned(RefreshPlan("c", "REPLACE", NOTHING, ()), [signed])
    assert (account.changed_rows, account.changed_bytes) == (None, 1150)
    unknown = Changes(ChangeKind.UNKNOWN, ChangeCode.LOG_CLEANED)
    account = planned(RefreshPlan("c", "FULL", NOTHING, ()), [APPENDED, unknown])
    assert (account.changed_rows, account.changed_bytes) == (None, None)


def test_rows_that_their_writer_did_not_count() -> None:
    unknown = replace(APPENDED, added=(DataFile("a", "", 100, None),))
    account = planned(RefreshPlan("c", "APPEND", NOTHING, ()), [unknown])
    assert (account.changed_rows, account.changed_bytes) == (None, 100)


def test_what_was_written_comes_with_publishing() -> None:
    facts = {"spec": "s", **RunAccount("APPEND", changed_rows=3).to_facts()}
    assert published(facts, COMMIT) == RunAccount(
        "APPEND", changed_rows=3, rows_written=3, bytes_written=42
    )
    assert published(facts, None) == RunAccount("APPEND", changed_rows=3)
    adopted = RunAccount("ADOPT").to_facts()
    assert published(adopted, COMMIT).bytes_written is None, "an earlier run wrote it"


def test_a_refusal_has_the_code_and_no_way() -> None:
    account = refused(WhyFull(FullCode.TOP_K, Message("its first 3 rows")))
    assert (account.way, account.code, account.detail) == (
        None,
        "TOP_K",
        Message("its first 3 rows"),
    )
    assert "ORDER BY" in account.cure


def test_runs_of_earlier_releases_say_nothing() -> None:
    assert account_of({}) == account_of({"account": None}) == RunAccount()
    assert account_of({"account": {"way": "FULL", "later": 1}}) == RunAccount("FULL")


def test_counts_are_left_out_where_they_may_not_be_told() -> None:
    whole = RunAccount("FULL", "ROWS_REMOVED", Message("12 rows"), "append", 1, 2, 3, 4, 5, 6)
    some = Message("some rows")
    assert whole.without_counts(some) == RunAccount("FULL", "ROWS_REMOVED", some, "append")


def test_the_parts_of_a_detail_are_stored_and_an_earlier_releases_text_is_read() -> None:
    detail = Message("{table} lost {rows}", table=TableName("t"), rows=Count(12, "row"))
    facts = RunAccount("FULL", "ROWS_REMOVED", detail).to_facts()
    assert json.loads(json.dumps(facts)) == facts and facts["account"]["detail"] == "t lost 12 rows"
    assert account_of(facts).detail == detail
    old = account_of({"account": {"way": "FULL", "detail": "t lost 12 rows"}})
    assert str(old.detail) == "t lost 12 rows" and is_literal(old.detail)
