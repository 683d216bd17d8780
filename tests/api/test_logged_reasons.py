"""Reasons in the decision log are data: a template and arguments, of which each reader is shown
those that he may see, and by which it is known of which caches they speak."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from cachemgr.metastore.logged_reasons import logged_reason, masked_reason, message_of_reason
from cachemgr.metastore.records import DecisionRecord
from cachemgr.roles import Role
from cachemgr.serving.wire import MAX_PARTS, encode_decision
from cachemgr.vocabulary import Outcome
from matcher.model.message import CacheName, Count, Sql, TableName, Value
from matcher.model.reasons import Reason, ReasonCode

ROWS, VALUE = 471_108_151_923, "N10156"
PLAN = {"relations": [["file:/pay", "hr.pay"]]}


def stale(cache: str) -> Reason:
    return Reason(
        ReasonCode.STALE,
        "{table} got {rows}, {value} among them; {cache} lacks them",
        "REFRESH RELATIONAL CACHE {cache}",
        table=TableName("hr.pay"),
        rows=Count(ROWS, "row"),
        value=Value(VALUE),
        cache=CacheName(cache),
    )


def missed(store, *reasons) -> DecisionRecord:
    at = store.clock.now() + timedelta(seconds=1)
    return DecisionRecord(at, "s", "q", Outcome.MISS, reasons=reasons, principal="carl")


def log(store, *reasons) -> None:
    store.decisions.log([missed(store, *reasons)])


def test_a_reason_comes_back_from_the_log_in_its_parts(store) -> None:
    reason = stale("pay")
    log(store, logged_reason(reason, ["file:/pay"]), {"code": "OLD", "detail": "12 rows"})
    new, old = store.decisions.latest(1)[0].reasons
    assert new["code"] == "STALE" and new["detail"] == reason.detail
    assert new["tables"] == ["file:/pay"] and message_of_reason(new) == reason.fault
    assert str(message_of_reason(old)) == "12 rows", "of an earlier release"


@pytest.mark.parametrize("place", ["/decisions", "/caches/pay/why"])
@pytest.mark.parametrize("role", [Role.OPERATOR, Role.ADMIN])
@pytest.mark.parametrize("by_text", [False, True], ids=["in parts", "by an earlier release"])
def test_no_counts_and_no_values_for_who_has_no_grant(
    store, new_cache, client_of, role: Role, place: str, by_text: bool
) -> None:
    cache = new_cache("pay", plan=PLAN)
    reason = logged_reason(stale("pay"), ["file:/pay"])
    if by_text:
        del reason["parts"]
        reason["detail"] = f"hr.pay got {ROWS} rows, {ROWS:,} of them; pay lacks them"
    log(store, reason)
    client = client_of(role, "ann")

    def shown() -> str:
        answer = client.get(f"/api/v1{place}")
        assert answer.status_code == 200 and "pay lacks them" in answer.text
        return answer.text

    assert str(ROWS) in shown()
    store.grants.add(cache.id, "bob")
    hidden = shown()
    for secret in (str(ROWS), VALUE, f"{ROWS:,}"[4:]):
        assert secret not in hidden
    if not by_text:
        assert "hr.pay got some rows" in hidden
    store.grants.add(cache.id, "ann")
    assert str(ROWS) in shown()


def test_a_reason_is_shown_with_its_arguments(store, new_cache, client_of) -> None:
    new_cache("pay", plan=PLAN)
    log(store, logged_reason(stale("pay"), ["file:/pay"]))
    (decision,) = client_of(Role.OPERATOR).get("/api/v1/decisions").json()["decisions"]
    (reason,) = decision["reasons"]
    assert reason["args"]["cache"] == {"kind": "cache", "value": "pay"}
    assert "parts" not in reason and reason["detail"] == stale("pay").detail
    (decision,) = client_of(Role.VIEWER, "vic").get("/api/v1/decisions").json()["decisions"]
    assert decision["reasons"] == [{"code": "STALE"}]


def test_why_leaves_out_what_is_said_of_other_caches(store, new_cache, client_of) -> None:
    for name in ("pay", "other"):
        new_cache(name, plan=PLAN)
    log(store, logged_reason(stale("other"), ["file:/pay"]))
    # a table of the name of another cache is none
    named = Reason(ReasonCode.NO_CACHE_FOR_TABLES, "no cache covers {t}", t=TableName("other"))
    log(store, logged_reason(named, ["file:/pay"]))
    found = client_of(Role.OPERATOR).get("/api/v1/caches/pay/why").json()
    assert [r["detail"] for r in found["reasons"]] == ["no cache covers other"]


def test_who_asked_is_for_operators(store, new_cache, client_of) -> None:
    new_cache("pay", plan=PLAN)
    log(store, logged_reason(stale("pay"), ["file:/pay"]))
    for role, told in ((Role.OPERATOR, "carl"), (Role.VIEWER, None)):
        found = client_of(role, "vic").get("/api/v1/caches/pay/why").json()
        assert found["latest"][0]["principal"] == told


def test_credentials_stand_in_no_argument() -> None:
    url = "postgresql://ann:secret@db/x"
    reason = Reason(ReasonCode.STALE, "{sql}", "{more}", sql=Sql("a"), more=Sql(url))
    for found in (reason, Reason(ReasonCode.STALE, "{sql}", sql=Sql(url))):
        assert "secret" not in json.dumps(masked_reason(logged_reason(found)))
    clean = logged_reason(stale("c"))
    assert masked_reason(clean) == clean


def test_a_session_sends_the_parts(store, client_of) -> None:
    sent = encode_decision(missed(store, logged_reason(stale("c")), {"code": "A", "detail": "b"}))
    body = {"batchId": "0123456789", "decisions": [sent]}
    assert client_of(Role.VIEWER, "vic").post("/api/v1/decisions", json=body).status_code == 200
    new, old = store.decisions.latest(1)[0].reasons
    assert message_of_reason(new) == stale("c").fault and "parts" not in old


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"template": "x", "args": {"a": {"kind": "count"}}},
        {"template": "x", "args": {"a": {"kind": "cache", "value": "v" * MAX_PARTS}}},
        {"template": 7, "args": {}},
        {"template": "{a}", "args": {"a": {"kind": "cache", "value": 7}}},
        {"template": "x", "args": [1]},
    ],
)
def test_parts_that_are_none_leave_the_text(store, client_of, parts) -> None:
    reason = {"code": "A", "detail": "b", "parts": parts}
    sent = encode_decision(missed(store, {"code": "A", "detail": "b"})) | {"reasons": [reason]}
    body = {"batchId": "0123456789", "decisions": [sent]}
    assert client_of(Role.VIEWER, "vic").post("/api/v1/decisions", json=body).status_code == 200
    (stored,) = store.decisions.latest(1)[0].reasons
    assert stored == {"code": "A", "detail": "b", "tables": []}
