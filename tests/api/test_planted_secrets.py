"""Credentials that an older release let into caches: planted in each place of a stored cache, and
looked for in all that REST, the command line, logs and the records beside tables give out."""

from __future__ import annotations

import io
import json
import logging
import re
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from cachemgr.cli import main
from cachemgr.ddl import parse
from cachemgr.ddl.render import render
from cachemgr.delta.storage import LocalFiles
from cachemgr.errors import RefreshError
from cachemgr.journal.journal import Journal
from cachemgr.metastore.masked import held_secrets
from cachemgr.metastore.records import DecisionRecord, JoinRecord, JoinSide
from cachemgr.roles import Role
from cachemgr.server.logs import configure_logs
from cachemgr.statements import apply as applying
from cachemgr.statements.export import export
from cachemgr.vocabulary import JoinState, Outcome

# each a credential by another rule, and a text that no ordinary output holds
COMMENT = "ask jdbc:postgresql://u:topsecret1@h/db, or host=h password='topsecret2'"
SELECT = (
    "SELECT a, 'jdbc:mysql://h/x?user=a&password=topsecret3' AS u, SUM(b) AS s -- pwd=topsecret4\n"
    "FROM t WHERE password = 'shown' GROUP BY a"
)
PROPERTIES = {
    "pw": "topsecret5",
    "note": "key AKIATOPSECRETSIXTOPS",
    "fs.s3a.secret.key": "topsecret7",
}
GIVEN = "s3a://TOPSECRET8:topsecret9@bucket/c"
ERROR = "[X] cannot connect to postgresql://u:topsecret10@h/db"
PLANTED = re.compile(r"(?i)topsecret\w*")


@pytest.fixture
def planted(store, new_cache, tmp_path):
    cache = new_cache(
        "planted",
        comment=COMMENT,
        definition=SELECT,
        properties=PROPERTIES,
        given=GIVEN,
        context={"catalog": "spark_catalog", "schema": "default"},
        location=f"file:{tmp_path}/caches/{'0' * 32}",
    )
    failed = store.refreshes.start(
        cache.id, "w", now=None, lease_seconds=60, mode="FULL", reason=ERROR
    )
    store.refreshes.fail(failed.id, failed.fencing_token, ERROR, now=None)
    side = JoinSide("delta.`s3a://TOPSECRET11:topsecret12@b/t`", "file:/a", "id-a")
    on = "INNER JOIN b ON x.k = b.k PRESERVES x"
    text = render(parse(f"CREATE RECORD PRESERVING JOIN j AS {side.name} x {on}"))
    other = JoinSide("b", "file:/b", "id-b")
    join = JoinRecord("j", text, side, other, (("k", "k"),), state=JoinState.BROKEN, message=ERROR)
    store.joins.create(join, now=store.clock.now())
    return cache


def test_what_is_planted_is_found_where_it_stands(store, planted):
    (line,) = held_secrets(store.caches.all())
    assert line.startswith("cache default.planted: the SELECT, COMMENT, LOCATION, TBLPROPERTIES")
    assert "note" in line and not PLANTED.search(line)


def test_rest_shows_none(store, planted, client_of):
    for role in Role:
        client = client_of(role)
        told = []
        for place in ("caches", "caches/planted", "caches/planted/refreshes", "definitions",
                      "joins", "joins/j", "caches/planted/why", "decisions", "info"):  # fmt: skip
            answer = client.get(f"/api/v1/{place}")
            assert answer.status_code == 200, (place, answer.text)
            told.append(answer.text)
        run = client.get("/api/v1/caches/planted/refreshes").json()["refreshes"][0]
        told += [client.get(f"/api/v1/refreshes/{run['id']}").text, client.get("/metrics").text]
        told.append(client.get("/readyz").text)
        text = "\n".join(told)
        assert not PLANTED.search(text), PLANTED.search(text)
        assert "password = 'shown'" in text and "password=***" in text  # a comparison is none


def test_the_command_line_shows_none(store, planted, metastore_url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exported = tmp_path / "all.yaml"
    for words in (
        ("cache", "list"), ("cache", "show", "planted"), ("cache", "history", "planted"),
        ("cache", "why-full", "planted"), ("join", "list"), ("export",),
        ("export", "-f", str(exported)), ("diff", "-f", str(exported)), ("db", "upgrade"),
        ("doctor", "--no-spark"),
    ):  # fmt: skip
        for output in ((), ("-o", "json")):
            if output and words[0] == "db":
                continue
            done = CliRunner().invoke(main, [*words, *output, "--metastore", metastore_url])
            assert done.exit_code in (0, 1 if words[0] == "doctor" else 0), done.output
            assert not PLANTED.search(done.output), (words, done.output)
            assert "Traceback" not in done.output
    assert not PLANTED.search(exported.read_text())
    told = CliRunner().invoke(main, ["db", "upgrade", "--metastore", metastore_url]).output
    assert "warning: cache default.planted: the SELECT, COMMENT" in told


def test_the_record_beside_the_table_keeps_what_a_rebuild_needs_alone(store, planted, tmp_path):
    journal = Journal(store, f"file:{tmp_path}/caches", LocalFiles, since=0)
    journal.catch_up()
    (record,) = [
        f
        for f in (tmp_path / "caches").rglob("*.json")
        if planted.id in str(f) or "planted" in f.read_text()
    ]
    content = json.loads(record.read_text())
    (row,) = content["rows"]["caches"]
    assert row.pop("definition") == SELECT  # it is refreshed by that
    row.pop("context")
    assert not PLANTED.search(json.dumps(content["rows"]))


def test_a_document_with_them_or_masked_changes_nothing_and_a_new_one_is_refused(store, planted):
    wanted = export(store)
    assert not PLANTED.search(repr(wanted))
    assert applying.plan(store, wanted, prune=False) == ()
    (cache,) = wanted.caches
    clauses = {"comment": COMMENT, "properties": PROPERTIES, "location": GIVEN}
    raw = replace(cache, definition=SELECT, spec=replace(cache.spec, **clauses))
    document = applying.Definitions((raw,), wanted.joins)
    assert applying.plan(store, document, prune=False) == ()
    for changed in (
        {"spec": replace(cache.spec, comment="pw=topsecret13")},
        {"spec": replace(cache.spec, properties={**PROPERTIES, "other.password": "topsecret13"})},
        {"definition": "SELECT 'jdbc:x://u:topsecret13@h' AS a FROM t"},
    ):
        document = applying.Definitions((replace(cache, **changed),))
        changes = applying.plan(store, document, prune=False)
        assert changes and not PLANTED.search(repr(changes))
        with pytest.raises(Exception, match="SECRET_IN_DEFINITION") as refused:
            applying.check(changes, document, _never)
        assert not PLANTED.search(str(refused.value))
    # what else changes is changed, and what was masked in the document stays as it is stored
    more = replace(cache.spec, properties={**cache.spec.properties, "a": "b"})
    document = applying.Definitions((replace(cache, spec=more),))
    changes = applying.plan(store, document, prune=False)
    applying.check(changes, document, _never)
    (done,) = applying.apply(store, changes, document, _never)
    assert done.outcome == "DONE"
    now = store.caches.named("default", "planted")
    assert now.spec.properties == {**PROPERTIES, "a": "b"} and now.definition == SELECT


def _never(text: str, context: object) -> object:
    raise AssertionError(text)


def test_decisions_and_logs_hold_none(store, planted, client_of, monkeypatch):
    reason = {"code": "PREDICATE_NOT_CONTAINED", "detail": f"the query keeps x = '{COMMENT}'"}
    decision = DecisionRecord(
        at=store.clock.now(), session_id="s", query_hash="h", outcome=Outcome.MISS, caches=(),
        grouping_set=None, reasons=(reason,), millis=1.0,
    )  # fmt: skip
    store.decisions.log([decision])
    for place in ("decisions", "caches/planted/why"):
        assert not PLANTED.search(client_of(Role.ADMIN).get(f"/api/v1/{place}").text), place
    out = io.StringIO()
    monkeypatch.setattr("sys.stderr", out)
    configure_logs("INFO", "json")
    for text in (COMMENT, GIVEN, ERROR, *PROPERTIES.values()):
        logging.getLogger("cachemgr").warning("it failed: %s", text)
    try:
        raise RefreshError("X", ERROR)
    except RefreshError:
        logging.getLogger("cachemgr").exception("a trace")
    shown = out.getvalue().replace("topsecret5", "").replace("topsecret7", "")  # bare words
    assert "***" in shown and not PLANTED.search(shown), PLANTED.search(shown)
