"""`cache why`: the decision log added up for one cache."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from sqlalchemy import update

from cachemgr.metastore.models import CacheRow
from cachemgr.metastore.records import DecisionRecord
from cachemgr.roles import Role
from cachemgr.vocabulary import Outcome


def _age(store, name: str, *, hours: int) -> None:
    """It was created so long ago."""
    moment = store.clock.now() - timedelta(hours=hours)
    with store.engine.begin() as connection:
        connection.execute(update(CacheRow).where(CacheRow.name == name).values(created_at=moment))


@pytest.fixture
def logged(store, new_cache):
    plan = {"relations": [["file:/sales", "sales"], ["file:/cust", "cust"]]}
    new_cache("cube", namespace="shop", plan=plan)
    _age(store, "cube", hours=24)
    now = store.clock.now()

    def decision(minutes: int, outcome: Outcome, *reasons, caches=()) -> DecisionRecord:
        found = tuple(
            {"code": code, "detail": f"{code} {minutes}", "tables": [table]}
            for code, table in reasons
        )
        at = now - timedelta(minutes=minutes)
        stored = "(region, day)" if caches == ("shop.cube",) else None
        return DecisionRecord(at, "s", f"q{minutes}", outcome, caches, stored, found, 1.5)

    store.decisions.log(
        [
            decision(1, Outcome.HIT, caches=("shop.cube",)),
            decision(2, Outcome.HIT, caches=("cube",)),  # another one, in the default schema
            decision(3, Outcome.MISS, ("STALE", "file:/sales")),
            decision(4, Outcome.MISS, ("STALE", "file:/sales"), ("STALE", "file:/cust")),
            decision(5, Outcome.MISS, ("MISSING_COLUMN", "file:/cust")),
            decision(6, Outcome.MISS, ("STALE", "file:/elsewhere")),
            # a part of it was answered from another cache
            decision(7, Outcome.HIT, ("MISSING_COLUMN", "file:/cust"), caches=("other",)),
            DecisionRecord(now, "s", "old", Outcome.MISS, reasons=({"code": "A", "detail": "b"},)),
            decision(600, Outcome.HIT, caches=("shop.cube",)),
        ]
    )


def test_hits_and_misses_by_reason(run, logged):
    code, out, err = run("cache", "why", "shop.cube", "-o", "json")
    found = json.loads(out)
    assert (code, err, found["hits"], found["misses"]) == (0, "", 2, 4)
    counted = [(r["code"], r["count"], r["detail"]) for r in found["reasons"]]
    assert counted == [("MISSING_COLUMN", 2, "MISSING_COLUMN 5"), ("STALE", 2, "STALE 3")]
    assert [d["queryHash"] for d in found["latest"]] == ["q1", "q3", "q4", "q5", "q7", "q600"]
    found = json.loads(run("cache", "why", "shop.cube", "--since", "1h", "-o", "json")[1])
    assert (found["hits"], found["misses"]) == (1, 4)


def test_for_people(run, logged):
    code, out, _ = run("cache", "why", "shop.cube")
    assert code == 0 and "2 hits, 4 misses" in out and "STALE 3" in out
    assert "GROUPING SET" in out and "LATEST" in out and "(region, day)" in out
    latest = out[out.index("OUTCOME") :]
    assert latest.split("\n")[0].split() == [
        "OUTCOME", "WHO", "GROUPING", "SET", "REASONS", "MILLIS", "LOCAL",
    ]  # fmt: skip
    # of one query, each code once, and no hash, which nobody knows a query by
    assert latest.count("STALE") == 2 and "q600" not in out
    out = run("cache", "why", "shop.cube", "--since", "150s")[1]
    assert "1 hit, 0 misses" in out


def test_one_query_on_a_metastore(run, logged):
    code, out, err = run("cache", "why", "shop.cube", "SELEC 1")
    if "NO_TEXT_DOOR" in err:  # the service of these tests decides no texts
        return
    assert code == 0 and "was not considered" in err
    assert "UNSUPPORTED_OPERATOR: SYNTAX_ERROR" in out


def test_wrong_usage(run, logged):
    assert run("cache", "why", "shop.cube", "--since", "soon")[0] == 2
    code, _, err = run("cache", "why", "nothing")
    assert code == 1 and "CACHE_NOT_FOUND" in err


def test_what_reasons_quote_is_for_operators(client_of, logged):
    for role, told in ((Role.OPERATOR, True), (Role.VIEWER, False)):
        answer = client_of(role).get("/api/v1/caches/shop.cube/why")
        assert answer.status_code == 200 and answer.json()["misses"] == 4
        assert ("STALE 3" in answer.text) is told and "STALE" in answer.text


def test_nothing_of_before_it_was_created_or_of_other_caches(run, store, new_cache):
    plan = {"relations": [["file:/sales", "sales"]]}
    for name in ("cube", "other"):
        new_cache(name, namespace="shop", plan=plan)
    _age(store, "cube", hours=1)
    now = store.clock.now()

    def decision(minutes: int, *details: str, caches=()) -> DecisionRecord:
        found = tuple(
            {"code": f"C{i}", "detail": detail, "tables": ["file:/sales"]}
            for i, detail in enumerate(details)
        )
        outcome = Outcome.HIT if caches else Outcome.MISS
        at = now - timedelta(minutes=minutes)
        return DecisionRecord(at, "s", f"q{minutes}", outcome, caches, None, found, 1.5)

    store.decisions.log(
        [
            decision(90, "no cache covers sales"),
            decision(91, caches=("shop.cube",)),  # of an earlier cache of that name
            decision(5, "cache shop.other holds groups", "grouping set (a) of cache shop.other, x"),
            decision(4, "cache shop.other holds groups", "cache shop.cube holds groups"),
            decision(3, "no cache covers sales"),
            decision(2, "sales is at version 7, the snapshot of shop.other read 6, and so on"),
        ]
    )
    code, out, _ = run("cache", "why", "shop.cube", "-o", "json")
    found = json.loads(out)
    assert (code, found["hits"], found["misses"]) == (0, 0, 4) and "shop.other" not in out
    assert [(r["count"], r["detail"]) for r in found["reasons"]] == [
        (1, "no cache covers sales"),
        (1, "cache shop.cube holds groups"),
    ]
    assert json.loads(run("cache", "why", "shop.cube", "--since", "2h", "-o", "json")[1]) == found
