"""Who may not be answered from a cache is told neither values nor counts of its rows, whatever his
role: a definition's WHERE asks a question, and the number of rows is the answer."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from cachemgr.cli import main
from cachemgr.metastore.accounts import RunAccount
from cachemgr.metastore.records import (
    REASON_PARTS,
    JoinRecord,
    JoinSide,
    Publication,
    SnapshotTableRecord,
)
from cachemgr.roles import Role
from cachemgr.vocabulary import JoinState
from matcher.model.message import Count, Message, TableName, Value, Word, literal
from matcher.model.message_codec import message_data

# so long that no time and no id holds them by chance
ROWS, BYTES, VALUE = 471_108_151_923, 998_877_665_544, "N10156"
PLAN = {"relations": [["file:/pay", "hr.pay"]]}
JOIN = "CREATE RECORD PRESERVING JOIN j AS a INNER JOIN hr.pay ON a.k = pay.k PRESERVES a"


def published(store, cache, *, by_text=False):
    moved = Message(
        "{table} moved: 1 commit appended {rows} in {files}, {least} to {most} of {name}",
        table=TableName("hr.pay"),
        rows=Count(ROWS, "row"),
        files=Count(ROWS, "file"),
        least=Count(BYTES),
        most=Count(ROWS / 7, form=",.1f"),
        name=Word("all") if by_text else Value(VALUE),
    )
    run = store.refreshes.start(
        cache.id, "w", now=None, lease_seconds=60, mode="FULL", reason=str(moved)
    )
    facts = {} if by_text else {REASON_PARTS: message_data(moved)}
    store.refreshes.update(run.id, run.fencing_token, facts=facts)
    detail = Message("hr.pay: 1 commit removed {rows}", rows=Count(ROWS, "row"))
    if by_text:
        detail = literal(str(detail))
    counts = {"changed_rows": ROWS, "rows_written": ROWS, "bytes_written": BYTES}
    account = RunAccount("FULL", "ROWS_REMOVED", detail, "append only", BYTES, BYTES, **counts)
    table = SnapshotTableRecord("hr.pay", "file:/pay", "id-pay", 1)
    store.refreshes.publish(
        run.id,
        run.fencing_token,
        Publication(3, ROWS, BYTES, [table], facts=account.to_facts()),
        now=None,
    )
    failed = store.refreshes.start(
        cache.id, "w", now=None, lease_seconds=60, mode="FULL", reason="r"
    )
    text = f"[CAST_INVALID_INPUT] The value '{VALUE}' of {ROWS} cannot be cast"
    store.refreshes.fail(failed.id, failed.fencing_token, text, now=None)
    return run, failed


def told(client, run, failed) -> str:
    places = ("/caches", "/caches/pay", "/caches/pay/refreshes", f"/refreshes/{run.id}",
              f"/refreshes/{failed.id}", "/catalog", "/definitions", "/caches/pay/why", "/joins",
              "/decisions", "/info")  # fmt: skip
    answers = [client.get(f"/api/v1{place}") for place in places]
    assert all(a.status_code == 200 for a in answers), [a.text for a in answers]
    texts = [a.text for a in answers] + [client.get("/metrics").text]
    version = client.get("/api/v1/caches/pay").json()["version"]
    if client.role is not Role.VIEWER:
        texts.append(client.post("/api/v1/caches/pay/disable").text)
        body = {"version": version + 1, "rewriteEnabled": True}
        texts.append(client.patch("/api/v1/caches/pay", json=body).text)
    return "\n".join(texts)


@pytest.mark.parametrize("by_text", [False, True], ids=["in parts", "by an earlier release"])
@pytest.mark.parametrize("role", list(Role))
def test_neither_values_nor_counts_without_a_grant(
    store, new_cache, client_of, role: Role, by_text: bool
):
    cache = new_cache("pay", plan=PLAN)
    run, failed = published(store, cache, by_text=by_text)
    client = client_of(role, "ann")
    client.role = role
    assert str(ROWS) in told(client, run, failed)
    store.tables.restrict("hr.pay", "file:/pay", "id-pay", by="root")
    without = told(client, run, failed)
    for secret in (str(ROWS), str(BYTES), VALUE, f"{ROWS / 7:,.1f}"):
        assert secret not in without
    assert "[CAST_INVALID_INPUT] the refresh failed" in without
    store.grants.add(cache.id, "ann")
    granted = told(client, run, failed)
    assert str(ROWS) in granted and str(BYTES) in granted and VALUE in granted


def test_a_narrowed_cache_is_no_other(store, new_cache, client_of):
    cache = new_cache("pay", plan=PLAN)
    run, failed = published(store, cache)
    store.grants.add(cache.id, "bob")
    for role in Role:
        client = client_of(role, f"ann-{role.value}")
        client.role = role
        assert str(ROWS) not in told(client, run, failed)


def test_the_command_line_tells_no_more(store, new_cache, metastore_url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cache = new_cache("pay", plan=PLAN)
    published(store, cache)
    store.tables.restrict("hr.pay", "file:/pay", "id-pay", by="root")
    for words in (("cache", "list"), ("cache", "show", "pay"), ("cache", "history", "pay"),
                  ("cache", "why-full", "pay")):  # fmt: skip
        done = CliRunner().invoke(main, [*words, "--metastore", metastore_url, "-o", "json"])
        assert done.exit_code == 0, done.output
        for secret in (str(ROWS), str(BYTES), VALUE):
            assert secret not in done.output, words


def test_what_contradicts_a_join_is_told_to_operators_and_not_of_restricted_tables(
    store, client_of
):
    side, pay = JoinSide("a", "file:/a", "id-a"), JoinSide("hr.pay", "file:/pay", "id-pay")
    message = f"join j does not hold: {ROWS} rows of a would be lost, for example k = '{VALUE}'"
    join = JoinRecord("j", JOIN, side, pay, (("k", "k"),), state=JoinState.BROKEN, message=message)
    store.joins.create(join, now=store.clock.now())
    viewer, operator = client_of(Role.VIEWER), client_of(Role.OPERATOR)

    def shown(client) -> str:
        return json.dumps([client.get(f"/api/v1/joins{p}").json() for p in ("", "/j")])

    assert VALUE in shown(operator)
    assert VALUE not in shown(viewer) and "does not hold" in shown(viewer)
    store.tables.restrict("hr.pay", "file:/moved", "id-pay", by="root")
    for client in (viewer, operator, client_of(Role.ADMIN)):
        assert VALUE not in shown(client) and str(ROWS) not in shown(client)
        assert "BROKEN" in shown(client)
