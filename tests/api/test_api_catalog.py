"""The catalog that remote sessions follow, and the decisions that they send back."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import text

from cachemgr.access.grants import hashed_id
from cachemgr.base_state import BaseState
from cachemgr.metastore import open_metastore
from cachemgr.metastore.records import JoinRecord, JoinSide, Publication, SnapshotTableRecord
from cachemgr.roles import Role
from cachemgr.serving.wire import (
    CATALOG_VERSION,
    decode_entry,
    decode_join,
    digest,
    encode_decision,
)
from cachemgr.vocabulary import JoinState
from matcher.model.codec import encode_plan
from matcher.model.expr import Agg, Col
from matcher.model.ir import CachePlan, Measure, Relation, StoredColumn

PLAN = encode_plan(
    CachePlan(
        "c",
        (Relation("file:/t", "t"),),
        (),
        (StoredColumn("k", Col(0, "k", "string")),),
        (Measure("n", Agg("count", (), "bigint", False)),),
    )
)


def catalog(client, **params):
    answer = client.get("/api/v1/catalog", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def names(found):
    return [c["name"] for c in found["caches"]]


def publish(store, cache):
    run = store.refreshes.start(
        cache.id, "w", now=store.clock.now(), lease_seconds=60, mode="FULL", reason="test"
    )
    tables = [SnapshotTableRecord("t", "file:/t", "id-t", 3, 0)]
    store.refreshes.publish(
        run.id,
        run.fencing_token,
        Publication(cache_version=1, rows=10, bytes=10, tables=tables, plan=PLAN),
        now=store.clock.now(),
    )


def test_everything_then_changes_alone(client, store, new_cache):
    one, two = new_cache("one", plan=PLAN), new_cache("two", plan=PLAN)
    publish(store, two)
    found = catalog(client, catalogVersion=CATALOG_VERSION)
    assert found["full"] and names(found) == ["one", "two"] and found["nextPageToken"] is None
    assert found["principal"] == "operator"
    entries = {c["name"]: decode_entry(c, "operator") for c in found["caches"]}
    stored = {e.cache.name: e for e in store.registry.state().entries}
    assert entries["two"].published.run.plan == stored["two"].published.run.plan == PLAN
    assert entries["two"].published.tables[0].table_id == "id-t"
    assert entries["one"].published is None and entries["one"].cache.plan == PLAN
    assert found["digest"] == digest({e.cache.id: e.cache.revision for e in stored.values()})

    at = {"since": found["revision"], "epoch": found["epoch"]}
    nothing = catalog(client, **at)
    assert not nothing["full"] and names(nothing) == []
    now = store.clock.now()
    store.caches.update(one.id, one.version, now=now, rewrite_enabled=False)
    changed = catalog(client, **at)
    assert names(changed) == ["one"] and not changed["caches"][0]["rewriteEnabled"]
    store.caches.drop(one.id, now=store.clock.now())
    dropped = catalog(client, since=changed["revision"], epoch=changed["epoch"])
    assert names(dropped) == [] and dropped["gone"] == [hashed_id(one.id)]
    left = store.registry.state().entries
    assert dropped["digest"] == digest({e.cache.id: e.cache.revision for e in left})


def test_pages_hold_each_cache_also_if_it_changes_between_two(client, store, new_cache):
    made = [new_cache(f"c{i}", plan=PLAN) for i in range(5)]
    first = catalog(client, pageSize=2)
    assert names(first) == ["c0", "c1"] and first["nextPageToken"]
    store.caches.update(made[0].id, made[0].version, now=store.clock.now(), rewrite_enabled=False)
    seen, page = {c["id"]: c for c in first["caches"]}, first
    while page["nextPageToken"]:
        page = catalog(client, pageSize=2, pageToken=page["nextPageToken"])
        seen |= {c["id"]: c for c in page["caches"]}
    assert len(seen) == 5 and not seen[made[0].id]["rewriteEnabled"]
    assert page["digest"] == digest({i: c["revision"] for i, c in seen.items()})
    assert page["revision"] == store.registry.revision()


def test_caches_of_one_revision_are_split_by_id(client, store, new_cache):
    for i in range(5):
        new_cache(f"c{i}")
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE caches SET revision = 3"))
    seen, token = [], None
    while True:
        page = catalog(client, pageSize=2, **({"pageToken": token} if token else {}))
        seen += names(page)
        token = page["nextPageToken"]
        if token is None:
            break
    assert sorted(seen) == [f"c{i}" for i in range(5)]


def test_a_page_that_ended_with_a_cache_that_changed_since_loses_none(client, store, new_cache):
    made = {c.name: c for c in (new_cache(f"c{i}") for i in range(5))}
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE caches SET revision = 3"))
    first = catalog(client, pageSize=2)
    last = made[names(first)[-1]]
    seen, page = {c["id"]: c for c in first["caches"]}, first
    now = store.clock.now()
    store.caches.update(last.id, last.version, now=now, rewrite_enabled=False)
    while page["nextPageToken"]:
        page = catalog(client, pageSize=2, pageToken=page["nextPageToken"])
        seen |= {c["id"]: c for c in page["caches"]}
    assert len(seen) == 5 and not seen[last.id]["rewriteEnabled"]


@pytest.mark.parametrize("known", ["another epoch", "a revision to come"])
def test_a_registry_that_is_another_one_is_sent_whole(client, store, cache, known):
    mark = store.registry.mark()
    at = {"epoch": mark.epoch, "since": mark.revision + 1}
    if known == "another epoch":
        at = {"epoch": "f" * 32, "since": mark.revision}
    found = catalog(client, **at)
    assert found["full"] and names(found) == ["cube"]


def test_each_metastore_has_an_epoch_of_its_own(store, tmp_path):
    assert len(store.registry.mark().epoch) == 32
    with open_metastore(f"sqlite:///{tmp_path / 'another.db'}") as other:
        assert other.registry.mark().epoch != store.registry.mark().epoch


def test_a_cache_narrowed_to_others_is_not_sent_and_grants_of_others_never(
    client_of, store, new_cache
):
    ann, bob = client_of(Role.VIEWER, "ann"), client_of(Role.VIEWER, "bob")
    made = new_cache("secret", plan=PLAN)
    new_cache("open", plan=PLAN)
    before = catalog(bob)
    assert names(before) == ["secret", "open"] and not before["caches"][0]["granted"]
    store.grants.add(made.id, "ann")
    at = {"since": before["revision"], "epoch": before["epoch"]}
    after = catalog(bob, **at)
    assert names(after) == [] and after["gone"] == [hashed_id(made.id)]
    assert after["digest"] != before["digest"]
    assert names(catalog(bob)) == ["open"]
    seen = bob.get("/api/v1/catalog", params=at).text + bob.get("/api/v1/catalog").text
    assert "secret" not in seen and "ann" not in seen
    mine = catalog(ann)
    entry = next(decode_entry(c, "ann") for c in mine["caches"] if c["name"] == "secret")
    assert entry.cache.narrowed and entry.grants == {"ann"}
    store.grants.revoke(made.id, "ann")
    assert names(catalog(ann)) == ["open"]


def test_caches_of_a_restricted_table_are_sent_to_those_granted_alone(client_of, store, new_cache):
    ann, bob = client_of(Role.VIEWER, "ann"), client_of(Role.ADMIN, "bob")
    made = new_cache("over_t", plan=PLAN)
    nested = json.loads(json.dumps(PLAN).replace("file:/t", f"file:/caches/{made.id}"))
    new_cache("over_it", plan=nested)
    publish(store, made)
    other = json.loads(json.dumps(PLAN).replace("file:/t", "file:/u").replace('"t"', '"u"'))
    new_cache("over_u", plan=other)
    before = catalog(bob)
    assert names(before) == ["over_it", "over_t", "over_u"] and not before["restricted"]
    mark = store.tables.restrict("t", "file:/t", None, by="root")
    at = {"since": before["revision"], "epoch": before["epoch"]}
    assert catalog(bob, **at)["digest"] != before["digest"]
    assert names(catalog(bob)) == ["over_u"]
    store.grants.add(made.id, "ann")
    mine = catalog(ann)
    assert sorted(names(mine)) == ["over_t", "over_u"]
    assert mine["restricted"]["file:/t"] == mine["restricted"][hashed_id(made.id)] == "t"
    new_cache("also_over_t", plan=PLAN)
    assert sorted(names(catalog(ann))) == ["over_t", "over_u"]
    store.tables.unrestrict(mark.id)
    assert sorted(names(catalog(bob))) == ["also_over_t", "over_it", "over_u"]


def test_of_a_restricted_tables_caches_and_joins_others_are_told_nothing(
    client_of, store, new_cache
):
    """Nor where their files lie, by an id: not in what is whole, nor in changes, nor once a grant
    has ended."""
    ann, bob = client_of(Role.VIEWER, "ann"), client_of(Role.VIEWER, "bob")
    secret = {**PLAN, "relations": [["file:/a", "a"], ["file:/b", "b"]]}
    made = new_cache("secret", plan=secret, location="file:/caches/vault")
    new_cache("open", plan=json.loads(json.dumps(PLAN).replace("file:/t", "file:/b")))
    store.joins.create(JOIN, now=store.clock.now())
    store.tables.restrict("hr.a", "file:/elsewhere", "ia", by="root")
    store.tables.restrict("hr.a", "file:/a", None, by="root")
    told = []

    def ask(client, **at):
        answer = client.get("/api/v1/catalog", params=at)
        if client is bob:
            told.append(answer.text)
        return answer.json()

    begun = ask(bob)
    at = {"since": begun["revision"], "epoch": begun["epoch"]}
    assert names(begun) == ["open"] and not begun["joins"] and "file:/a" in begun["restricted"]
    store.caches.update(made.id, made.version, now=store.clock.now(), rewrite_enabled=False)
    assert ask(bob, **at)["gone"] == [hashed_id(made.id)]
    store.grants.add(made.id, "ann")
    ask(bob, **at)
    hers = ask(ann, **at)
    assert names(hers) == ["secret"] and [j["name"] for j in hers["joins"]] == ["j"]
    store.grants.revoke(made.id, "ann")
    ended = ask(ann, since=hers["revision"], epoch=hers["epoch"])
    assert ended["gone"] == [hashed_id(made.id)] and not ended["joins"]
    ask(bob, **at), ask(bob)
    for word in ("secret", "vault", made.id, '"j"', "ann"):
        assert word not in "".join(told)


JOIN = JoinRecord(
    name="j",
    definition="…",
    left=JoinSide("a", "file:/a", "ia"),
    right=JoinSide("b", "file:/b", "ib"),
    keys=(("x", "y"),),
    state=JoinState.VALID,
    validated_under={"spark.sql.session.timeZone": "UTC"},
    validated_versions={
        "file:/a": BaseState("ia", 1, "txn:a", 7),
        "file:/b": BaseState("ib", None),
    },
)


@pytest.mark.parametrize("finds_each", [True, False])
def test_joins_are_sent(client, store, finds_each):
    join = replace(JOIN, finds_each=finds_each)
    store.joins.create(join, now=store.clock.now())
    [sent] = [decode_join(j) for j in catalog(client)["joins"]]
    assert sent == replace(join, id="", definition="")


def test_a_poll_that_waits_hears_of_a_change_at_once_and_of_nothing_at_its_end(
    client, store, cache
):
    mark = store.registry.mark()
    at = {"since": mark.revision, "epoch": mark.epoch}
    started = time.monotonic()
    assert names(catalog(client, waitSeconds=0.5, **at)) == []
    assert 0.4 < time.monotonic() - started < 5
    timer = threading.Timer(0.5, lambda: store.grants.add(cache.id, "operator"))
    timer.start()
    started = time.monotonic()
    assert names(catalog(client, waitSeconds=20, **at)) == ["cube"]
    assert 0.4 < time.monotonic() - started < 5
    timer.join()


def test_a_token_revoked_during_the_wait_gets_no_news(serve, store, cache):
    import httpx

    record, token = store.tokens.create("ann", Role.VIEWER)
    mark = store.registry.mark()

    def meanwhile():
        store.tokens.revoke(record.id)
        store.grants.add(cache.id, "ann")

    timer = threading.Timer(0.5, meanwhile)
    with httpx.Client(
        base_url=serve(), headers={"Authorization": f"Bearer {token}"}, timeout=30
    ) as client:
        timer.start()
        answer = client.get(
            "/api/v1/catalog",
            params={"since": mark.revision, "epoch": mark.epoch, "waitSeconds": 20},
        )
    timer.join()
    assert answer.status_code == 401 and answer.json()["error"]["type"] == "UNAUTHENTICATED"


def test_hundreds_may_wait_while_others_are_answered(client, store, cache):
    """More than the pool has threads: waiting holds none."""
    import asyncio

    import httpx

    mark = store.registry.mark()
    params = {"since": mark.revision, "epoch": mark.epoch, "waitSeconds": 30}
    asked = store.queue.request(cache.id, why="test", requested_by="ann")

    async def run():
        limits = httpx.Limits(max_connections=200)
        async with httpx.AsyncClient(
            base_url=client.base_url, headers=client.headers, timeout=60, limits=limits
        ) as many:
            polls = [many.get("/api/v1/catalog", params=params) for _ in range(60)]
            polls += [
                many.get(f"/api/v1/refreshes/{asked.id}", params={"waitSeconds": 30})
                for _ in range(60)
            ]
            waiting = [asyncio.ensure_future(p) for p in polls]
            await asyncio.sleep(2)
            started = time.monotonic()
            assert (await many.get("/api/v1/info")).status_code == 200
            took = time.monotonic() - started
            assert not any(w.done() for w in waiting)
            await asyncio.to_thread(store.queue.cancel, asked.id, by="ann")
            await asyncio.to_thread(store.grants.add, cache.id, "operator")
            answers = await asyncio.gather(*waiting)
            assert {a.status_code for a in answers} == {200}
            assert all(names(a.json()) == ["cube"] for a in answers[:60])
            assert {a.json()["state"] for a in answers[60:]} == {"CANCELLED"}
            return took

    assert asyncio.run(run()) < 10  # far less than they wait


@pytest.mark.parametrize(
    ("params", "status", "kind"),
    [
        ({"catalogVersion": "0.1"}, 409, "CATALOG_VERSION"),
        ({"pageToken": "bm9uc2Vuc2U"}, 400, "PAGE_TOKEN"),
        ({"since": -1}, 422, "INVALID_REQUEST"),
        ({"waitSeconds": 61}, 422, "INVALID_REQUEST"),
        ({"pageSize": 0}, 422, "INVALID_REQUEST"),
    ],
)
def test_what_cannot_be_asked(client, cache, params, status, kind):
    answer = client.get("/api/v1/catalog", params=params)
    assert answer.status_code == status and answer.json()["error"]["type"] == kind


def test_a_page_token_serves_its_principal_alone(client_of, new_cache):
    for i in range(3):
        new_cache(f"c{i}")
    ann, bob = client_of(Role.VIEWER, "ann"), client_of(Role.VIEWER, "bob")
    token = catalog(ann, pageSize=1)["nextPageToken"]
    assert bob.get("/api/v1/catalog", params={"pageToken": token}).status_code == 400


def test_answers_are_compressed_for_those_who_take_it(client, new_cache):
    for i in range(50):
        new_cache(f"c{i}", plan=PLAN)
    packed = client.get("/api/v1/catalog")
    plain = client.get("/api/v1/catalog", headers={"Accept-Encoding": "identity"})
    assert packed.headers["Content-Encoding"] == "gzip" and packed.json() == plain.json()
    assert int(packed.headers["Content-Length"]) * 5 < int(plain.headers["Content-Length"])


# -- decisions -----------------------------------------------------------------------------

DECISION = {
    "at": "2026-01-31T12:00:00Z",
    "sessionId": "s1",
    "queryHash": "q1",
    "outcome": "MISS",
    "reasons": [{"code": "STALE", "detail": "t changed"}],
    "millis": 1.5,
}


def post(client, **changed):
    body = {"batchId": "batch-00001", "decisions": [DECISION]} | changed
    return client.post("/api/v1/decisions", json=body)


def test_decisions_are_noted_once_and_as_the_tokens_principal(client_of, store):
    ann, bob = client_of(Role.VIEWER, "ann"), client_of(Role.VIEWER, "bob")
    assert post(ann).json() == {"stored": 1, "repeated": False}
    assert post(ann).json() == {"stored": 0, "repeated": True}
    assert post(bob).json() == {"stored": 1, "repeated": False}
    found = store.decisions.latest()
    assert sorted(d.principal for d in found) == ["ann", "bob"]
    assert found[0].reasons[0]["code"] == "STALE" and found[0].millis == 1.5
    listed = ann.get("/api/v1/decisions").json()["decisions"]
    assert {d["principal"] for d in listed} == {"ann", None}  # whose others are is not told


def test_what_a_session_encodes_is_what_the_service_takes(client, store):
    from datetime import UTC, datetime

    from cachemgr.metastore.records import DecisionRecord
    from cachemgr.vocabulary import Outcome

    long = DecisionRecord(
        datetime.now(UTC),
        "s" * 500,
        "q\0" * 50,
        Outcome.HIT,
        ("c" * 600,) * 200,
        "g" * 9000,
        ({"code": "X", "detail": "d" * 9000},) * 200,
        0.5,
    )
    assert post(client, decisions=[encode_decision(long)]).status_code == 200
    [found] = store.decisions.latest()
    assert found.outcome is Outcome.HIT and len(found.reasons) == 100


def hit(at, *caches):
    return {**DECISION, "at": at.isoformat(), "outcome": "HIT", "reasons": [], "caches": caches}


def test_hits_that_cannot_be_true_are_left_out(client_of, new_cache, store):
    for name in ("open", "narrow", "pay"):
        new_cache(name, plan={"relations": [[f"file:/{name}", name]]})
    store.grants.add(store.caches.named("default", "narrow").id, "friend")
    store.tables.restrict("pay", "file:/pay", None, by="root")
    now = store.clock.now()
    ann, friend = client_of(Role.VIEWER, "ann"), client_of(Role.VIEWER, "friend")
    names = ("open", "narrow", "pay", "NARROW", "gone-since")
    sent = [hit(now, name) for name in names] + [hit(now, "open", "pay")]
    for client, who, kept in (
        (ann, "ann", {"open", "gone-since"}),
        (friend, "friend", {"open", "narrow", "NARROW", "gone-since"}),
    ):
        assert post(client, decisions=sent).json() == {"stored": len(kept), "repeated": False}
        mine = [d for d in store.decisions.latest() if d.principal == who]
        assert {d.caches for d in mine} == {(name,) for name in kept}


def test_what_was_taken_since_is_no_forgery(client_of, new_cache, store):
    ann = client_of(Role.VIEWER, "ann")
    was_open, was_granted = new_cache("was_open"), new_cache("was_granted")
    store.grants.add(was_granted.id, "ann")
    pay = new_cache("pay", plan={"relations": [["file:/pay", "pay"]]})
    before = store.clock.now()
    store.grants.add(was_open.id, "bob")
    store.grants.revoke(was_granted.id, "ann")
    store.tables.restrict("pay", "file:/pay", None, by="root")
    store.caches.drop(pay.id, now=store.clock.now())
    sent = [hit(before, name) for name in ("was_open", "was_granted", "pay")]
    assert post(ann, decisions=sent).json()["stored"] == 3


def test_no_decision_is_older_than_a_day(client, store):
    post(client, decisions=[{**DECISION, "at": "0001-01-01T00:00:00Z"}])
    at, now = store.decisions.latest()[0].at, store.clock.now()
    assert timedelta(hours=23) < now - at < timedelta(hours=25)


def test_decisions_of_the_future_are_of_now(client, store):
    post(client, decisions=[{**DECISION, "at": "2999-01-01T00:00:00+02:00"}])
    assert store.decisions.latest()[0].at <= store.clock.now()


@pytest.mark.parametrize(
    "changed",
    [
        {"batchId": "short"},
        {"batchId": "has a blank in it"},
        {"decisions": []},
        {"decisions": [DECISION] * 501},
        {"decisions": [{**DECISION, "principal": "root"}]},
        {"decisions": [{**DECISION, "at": "2026-01-31T12:00:00"}]},
        {"decisions": [{**DECISION, "outcome": "PERHAPS"}]},
        {"decisions": [{**DECISION, "millis": -1}]},
    ],
)
def test_batches_that_are_refused(client, store, changed):
    assert post(client, **changed).status_code == 422
    assert store.decisions.latest() == ()
