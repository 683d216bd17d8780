"""Candidates in words: what is said once, and what may not be left out."""

from __future__ import annotations

from typing import Any

from cachemgr.reason_text import CandidateRow, candidate_rows, reason_text


def candidate(
    keys: list[str] | None, *told: tuple[str, str], outcome: str = "refused", cache: str = "c"
) -> dict[str, Any]:
    of = "cache" if keys is None else f"set {keys}"
    reasons = [{"code": code, "detail": f"{of} lacks", "suggestion": cure} for code, cure in told]
    cost = None if outcome == "refused" else 12.4
    return {
        "cache": cache, "groupingSet": keys, "outcome": outcome, "cost": cost, "reasons": reasons
    }  # fmt: skip


def test_a_reason_says_what_would_help() -> None:
    told = {"code": "X", "detail": "lacks a", "suggestion": ""}
    assert reason_text(told) == "X: lacks a"
    assert reason_text(told | {"suggestion": "add a"}) == "X: lacks a (add a)"


def test_what_stands_above_is_not_said_again() -> None:
    found = [candidate(None, ("AGG", "add SUM(b)"), ("STALE", "refresh"))]
    (row,) = candidate_rows(found, found[0]["reasons"][:1])
    assert row.reasons == ("AGG, as above", "STALE: cache lacks (refresh)")


def test_the_keys_are_read_under_the_name_of_0_1_0() -> None:
    new = candidate(["g"], ("A", "b"))
    old = {"grouping_set" if key == "groupingSet" else key: value for key, value in new.items()}
    assert candidate_rows([old]) == candidate_rows([new])


def test_sets_that_are_refused_alike_are_one_row() -> None:
    lacks = ("AGG", "add SUM(b)")
    found = candidate_rows(
        [candidate([], lacks), candidate(["g", "h"], lacks), candidate(["g"], lacks)]
    )
    assert found == [
        CandidateRow(
            "c",
            "(g, h) and 2 other sets",
            "refused",
            None,
            ("AGG: set ['g', 'h'] lacks (add SUM(b))",),
        )
    ]
    found = candidate_rows([candidate([], lacks), candidate(["g"], lacks)])
    assert [row.sets for row in found] == ["(g) and 1 other set"]


def test_what_differs_has_a_row_of_its_own() -> None:
    lacks, other = ("AGG", "add SUM(b)"), ("AGG", "add SUM(c)")
    found = [
        candidate(["g"], outcome="chosen"),
        candidate(["h"], outcome="valid"),
        candidate(["i"], outcome="valid"),
        candidate(["g"], lacks),
        candidate(["h"], other),
        candidate(["i"], lacks, other),
        candidate(["g"], lacks, cache="d"),
        candidate(None, lacks),
        candidate(None, lacks),
    ]
    rows = candidate_rows(found)
    assert [(r.cache, r.sets, r.outcome) for r in rows] == [
        (c["cache"], c["groupingSet"] and f"({c['groupingSet'][0]})", c["outcome"]) for c in found
    ]
    assert [r.cost for r in rows[:4]] == ["12", "12", "12", None]
