"""`cachemgr cache`, `join` and `token`: the same on a service and on a metastore."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import threading
import time
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from typer.testing import CliRunner

from cachemgr.cache_spec import RefreshPolicy
from cachemgr.cli import main
from cachemgr.errors import DefinitionError
from cachemgr.metastore.records import JoinRecord, JoinSide
from cachemgr.roles import Role
from scheduler.triggers import Every


def test_list_and_show(run, cache, new_cache):
    new_cache("other", namespace="sales")
    code, out, err = run("cache", "list", "-o", "json")
    assert (code, err) == (0, "")
    assert [c["name"] for c in json.loads(out)] == ["cube", "other"]
    code, out, _ = run("cache", "list", "--like", "o*")
    assert code == 0 and "other" in out and "cube" not in out and "NOT_REFRESHED" in out
    heading, row = out.splitlines()
    assert heading.split() == [
        "NAMESPACE", "NAME", "STATUS", "REFRESH", "FRESHNESS", "ROWS", "REFRESHED", "LAST", "RUN",
        "NEXT",
    ]  # fmt: skip
    assert "ON DEMAND AUTO" in row and "STRICT" in row and "ON_DEMAND" not in row
    code, out, _ = run("cache", "show", "sales.other", "-o", "json")
    assert code == 0 and json.loads(out)["namespace"] == "sales"
    shown = run("cache", "show", "cube")[1]
    assert "definition" in shown and "status combined" in shown and "{" not in shown
    assert "ON DEMAND AUTO" in shown and "rewrite enabled" in shown


def test_the_list_says_what_waits_runs_and_came_of_the_last_run(run, cache, store):
    def listed() -> str:
        code, out, err = run("cache", "list")
        assert (code, err) == (0, "")
        return out.splitlines()[1].rstrip()

    store.queue.request(cache.id, why="asked")
    assert listed().endswith("PENDING")
    claimed = store.queue.claim("w", lease_seconds=20)
    assert "RUNNING 20" in listed() and listed().endswith("RUNNING")
    store.refreshes.finish_unchanged(claimed.id, claimed.fencing_token, now=store.clock.now())
    assert "UNCHANGED 20" in listed() and listed().endswith("-")


def test_the_list_says_what_is_overdue(run, new_cache, monkeypatch):
    new_cache("timed", refresh=RefreshPolicy(Every(60)))
    new_cache("asked")
    _, out, err = run("cache", "list")
    assert "overdue" not in out + err
    monkeypatch.setattr("cachemgr.cli.cache._LATE", timedelta(0))
    code, out, err = run("cache", "list")
    asked, timed = (line.rstrip() for line in out.splitlines()[1:])
    assert code == 0 and timed.endswith("Z, overdue") and asked.endswith("-")
    assert err.startswith("overdue: timed. ") and "cachemgr worker" in err
    assert run("cache", "list", "-o", "json")[2] == ""


def test_no_such_cache(run, cache):
    assert "did you mean cube?" in run("cache", "show", "cubes")[2]
    assert "did you mean cube?" in run("cache", "show", "sales.cube")[2]
    for words in (("show", "x"), ("pause", "x"), ("refresh", "x"), ("drop", "x", "--yes")):
        code, out, err = run("cache", *words)
        assert (code, out) == (1, "") and "CACHE_NOT_FOUND" in err and "Traceback" not in err


def test_usage_errors_exit_with_2(run):
    assert run("cache", "show")[0] == 2
    assert run("cache", "nothing")[0] == 2
    assert run("cache", "list", "-o", "xml")[0] == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("refresh", "x", "--mode", "FUL"),
         "'FUL' is none of AUTO, FULL, INCREMENTAL, INCREMENTAL_ONLY"),
        (("list", "-o", "xml"), "'xml' is none of table, json"),
    ],
)  # fmt: skip
def test_a_word_that_is_none_of_an_option_is_told_those_that_are(run, given, said):
    code, _, err = run("cache", *given)
    text = " ".join(err.replace("│", " ").split())
    assert code == 2 and said in text and "Value error" not in text


def test_switches(run, cache, store):
    for word, field, value in (
        ("disable", "rewrite_enabled", False),
        ("enable", "rewrite_enabled", True),
        ("pause", "paused", True),
        ("resume", "paused", False),
    ):
        code, out, err = run("cache", word, "cube")
        assert (code, out, err.strip()) == (0, "", f"cube {word}d")
        stored = store.caches.get(cache.id)
        shown = {"paused": stored.paused, "rewrite_enabled": stored.spec.rewrite_enabled}
        assert shown[field] is value


def test_drop_wants_consent(run, cache, store):
    code, out, err = run("cache", "drop", "cube")
    assert (code, out) == (1, "") and "NOT_CONFIRMED" in err and "--yes" in err
    assert store.caches.named("default", "cube") is not None
    assert run("cache", "drop", "cube", "--yes")[0] == 0
    assert store.caches.named("default", "cube") is None


@pytest.mark.parametrize("answer, kept", [(b"n\n", True), (b"y\n", False)])
def test_drop_asks_on_a_terminal(cache, store, metastore_url, answer, kept):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", "from cachemgr.cli import main; main()", "cache", "drop"]
    running = subprocess.Popen(
        [*command, "cube", "--metastore", metastore_url], stdin=theirs, stderr=subprocess.PIPE
    )
    os.write(ours, answer)
    _, err = running.communicate(timeout=60)
    os.close(ours)
    os.close(theirs)
    assert b"Drop the relational cache cube?" in err
    assert running.returncode == (1 if kept else 0)
    assert (store.caches.named("default", "cube") is not None) is kept


def test_switches_show_what_became_of_it_as_json(run, cache):
    code, out, err = run("cache", "pause", "cube", "-o", "json")
    assert code == 0 and json.loads(out)["paused"] is True and "paused" in err


def test_a_bug_is_one_line_and_a_trace_only_with_debug(monkeypatch):
    def broken(self, method, path, **more):
        raise RuntimeError("postgresql://ann:secret@db and cachemgr_0af_99ee")

    monkeypatch.setattr("cachemgr.cli.client.Client.call", broken)
    done = CliRunner().invoke(main, ["cache", "list"])
    assert done.exit_code == 1 and done.stdout == "" and done.stderr.count("\n") == 1
    assert "INTERNAL_ERROR" in done.stderr and "--debug" in done.stderr
    done = CliRunner().invoke(main, ["--debug", "cache", "list"])
    assert done.exit_code == 1 and "Traceback" in done.stderr
    for text in ("secret", "99ee"):
        assert text not in done.stderr


def test_an_argument_that_is_not_utf_8_is_no_bug_of_ours(metastore_url):
    # what the shell gave as the byte 0x80
    for command in (["cache", "why", "a\udc80"], ["cache", "pause", "a\udc80"]):
        done = CliRunner().invoke(main, [*command, "--metastore", metastore_url])
        assert done.exit_code == 1 and "'a\\udc80' is not UTF-8 text" in done.stderr


@pytest.mark.parametrize("where", ["start", "wait"])
@pytest.mark.parametrize(
    ("begun", "said"),
    [
        (0, "no longer waiting; refresh ID is still queued: `cachemgr cache cancel ID` "
            "withdraws it\n"),
        (1, {
            "start": "no longer waiting; `cachemgr cache history default.cube` shows what becomes "
            "of refresh ID\n",
            "wait": "no longer waiting; refresh ID goes on: `cachemgr cache history default.cube` "
            "shows it, `cachemgr cache cancel ID` stops it\n",
        }),
        (2, "refresh ID is over, UNCHANGED: `cachemgr cache history default.cube` shows it\n"),
    ],
)  # fmt: skip
def test_who_stops_waiting_is_told_where_the_refresh_stands(
    run, cache, store, monkeypatch, where, begun, said
):
    from cachemgr.cli.client import Client

    call = Client.call

    def carry_out(self):
        if begun:
            claimed = store.queue.claim("w", lease_seconds=20)
        if begun == 2:
            now = store.clock.now()
            store.refreshes.finish_unchanged(claimed.id, claimed.fencing_token, now=now)
        if where == "start":
            raise KeyboardInterrupt

    def interrupted(self, method, path, **more):
        if "params" in more:
            raise KeyboardInterrupt
        return call(self, method, path, **more)

    monkeypatch.setattr(Client, "carry_out", carry_out)
    monkeypatch.setattr(Client, "call", interrupted)
    code, out, err = run("cache", "refresh", "cube", "--wait")
    waiting = store.queue.waiting()
    run_id = waiting[0].id if waiting else store.refreshes.of(cache.id, limit=1)[0].id
    text = said if isinstance(said, str) else said[where]
    if os.environ.get("CACHEMGR_SERVER") and begun == 1:
        text = said["wait"]
    assert (code, out, err) == (130, "", text.replace("ID", run_id))


def test_who_joins_a_refresh_of_another_mode_is_told(run, cache, store):
    assert "joined" not in run("cache", "refresh", "cube", "--mode", "incremental")[2]
    assert "joined" not in run("cache", "refresh", "cube", "--mode", "full")[2], "it is FULL now"
    (waiting,) = store.queue.waiting()
    told = f"joined refresh {waiting.id} (FULL), which was asked for before and waits\n"
    for mode in ([], ["--mode", "incremental_only"]):
        code, out, err = run("cache", "refresh", "cube", *mode, "-o", "json")
        assert code == 0 and json.loads(out)["id"] == waiting.id and err.startswith(told)
    assert "joined" not in run("cache", "refresh", "cube", "--mode", "full")[2]


def test_who_stops_waiting_twice_is_told_where_to_look(run, cache, store, monkeypatch):
    from cachemgr.cli.client import Client

    call = Client.call

    def interrupted(self, method, path, **more):
        if method == "GET" and "/refreshes/" in path:
            raise KeyboardInterrupt
        return call(self, method, path, **more)

    monkeypatch.setattr(Client, "carry_out", lambda self: None)
    with monkeypatch.context() as until:
        until.setattr(Client, "call", interrupted)
        code, out, err = run("cache", "refresh", "cube", "--wait")
    (waiting,) = store.queue.waiting()
    assert (code, out) == (130, "") and f"shows what becomes of refresh {waiting.id}" in err
    code, out, _ = run("cache", "cancel", waiting.id, "-o", "json")
    assert code == 0 and json.loads(out)["state"] == "CANCELLED"
    code, out, err = run("cache", "cancel", "0" * 32)
    assert code == 1 and out == "" and "[REFRESH_NOT_FOUND] there is no refresh 0" in err
    assert "`cachemgr cache history NAME`" in err


@pytest.mark.parametrize(
    ("error", "cancelled", "said"),
    [
        ("[BASE_TABLE_LOST] base table t is gone:\n  make it anew", False,
         "error: [BASE_TABLE_LOST] base table t is gone: make it anew\n"),
        ("[REFRESH_CANCELLED] by bob", True, "error: [REFRESH_CANCELLED] by bob\n"),
        ("something broke", False,
         "error: [REFRESH_FAILED] the refresh ID of cache default.cube is FAILED: something broke; "
         "`cachemgr cache history default.cube` lists what came after it, "
         "`cachemgr cache refresh default.cube` asks again\n"),
    ],
)  # fmt: skip
def test_a_refresh_that_failed_is_told_in_one_line(
    run, cache, store, monkeypatch, error, cancelled, said
):
    from cachemgr.cli.client import Client

    def fails(self):
        claimed = store.queue.claim("w", lease_seconds=20)
        now = store.clock.now()
        store.refreshes.fail(claimed.id, claimed.fencing_token, error, now=now, cancelled=cancelled)

    monkeypatch.setattr(Client, "carry_out", fails)
    code, out, err = run("cache", "refresh", "cube", "--wait", "-o", "json")
    done = json.loads(out)
    assert (code, done["error"]) == (1, error) and done["state"] in ("FAILED", "CANCELLED")
    assert err == said.replace("ID", done["id"])


def test_a_refresh_that_was_cancelled_before_it_began_is_told(run, cache, store, monkeypatch):
    from cachemgr.cli.client import Client

    def cancel(self):
        store.queue.cancel(store.queue.waiting()[0].id, by="bob")

    monkeypatch.setattr(Client, "carry_out", cancel)
    code, _, err = run("cache", "refresh", "cube", "--wait")
    assert code == 1 and err.count("\n") == 1 and err.startswith("error: [REFRESH_CANCELLED] ")
    assert "cancelled by bob before it began" in err


FILE = "; a file goes in by `cachemgr {noun} create - < file`\n"


@pytest.mark.parametrize(
    ("noun", "form"),
    [
        ("cache", "CREATE [OR REPLACE] RELATIONAL CACHE …"),
        ("join", "CREATE RECORD PRESERVING JOIN …"),
    ],
)
def test_what_is_no_create_is_told_what_is_taken(run, store, noun, form):
    for text, code, said in (
        ("SELECT 1", "SYNTAX_ERROR",
         "'SELECT' is not expected here (line 1, column 1, at 'SELECT'); "),
        ("create.sql", "SYNTAX_ERROR", None),
        ("nofile.sql", "SYNTAX_ERROR",
         "'nofile' is not expected here (line 1, column 1, at 'nofile'); "),
        ("./a b.sql", "SYNTAX_ERROR", None),
        (" ", "SYNTAX_ERROR", None),
        ("SHOW RELATIONAL CACHES", "NOT_A_CREATE", "ddl is another statement: "),
    ):  # fmt: skip
        status, out, err = run(noun, "create", text)
        assert (status, out) == (1, "") and err.startswith(f"error: [{code}] ")
        assert err.endswith(FILE.format(noun=noun)) and len(err) < 300
        if said is not None:
            assert err == f"error: [{code}] {said}expected {form}{FILE.format(noun=noun)}"
    for text in ("CREATE RELATIONAL CACHE", "create record preserving join"):
        assert "a file goes in" not in run(noun, "create", text)[2]
    assert "a file goes in" not in run(noun, "create", "-", input="SELECT 1")[2]


def test_who_has_read_enough_closes_the_pipe(metastore_url, cache):
    command = f"{sys.executable} -c 'from cachemgr.cli import main; main()' cache list"
    done = subprocess.run(
        ["sh", "-c", f"{command} --metastore '{metastore_url}' | true"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.stderr == ""


def test_refresh_and_history(run, cache, store):
    code, out, _ = run("cache", "refresh", "cube", "--mode", "full", "-o", "json")
    asked = json.loads(out)
    assert code == 0 and (asked["state"], asked["mode"]) == ("PENDING", "FULL")
    (waiting,) = store.queue.waiting()
    assert waiting.id == asked["id"]
    store.queue.cancel(asked["id"], by="bob")
    code, out, _ = run("cache", "history", "cube", "-o", "json")
    assert [r["state"] for r in json.loads(out)] == ["CANCELLED"]
    _, out, said = run("cache", "history", "cube")
    assert "CANCELLED" in out and said == ""
    run("cache", "refresh", "cube")
    _, out, said = run("cache", "history", "cube", "--limit", "1")
    assert "PENDING" in out and "CANCELLED" not in out
    assert said == "the last 1; there are older ones: --limit shows up to 1000\n"


def test_joins(run, store):
    assert run("join", "list", "-o", "json") == (0, "[]\n", "")
    sides = JoinSide("a", "file:/a", "id-a"), JoinSide("b", "file:/b", "id-b")
    for name, finds_each in (("each", True), ("some", False)):
        join = JoinRecord(name, "…", *sides, keys=(("x", "y"),), finds_each=finds_each)
        store.joins.create(join, now=store.clock.now())
    listed = json.loads(run("join", "list", "-o", "json")[1])
    assert [(join["name"], join["kind"]) for join in listed] == [
        ("each", "INNER"),
        ("some", "LEFT"),
    ]
    code, _, err = run("join", "drop", "j", "--yes")
    assert code == 1 and "JOIN_NOT_FOUND" in err
    code, _, err = run("join", "drop", "eahc", "--yes")
    assert code == 1 and "did you mean each?" in err


@pytest.mark.parametrize(
    ("state", "message", "code", "said"),
    [
        ("VALID", None, 0, ""),
        ("BROKEN", "rows are lost", 1, "error: each does not hold now (BROKEN): rows are lost\n"),
        ("NOT_VALIDATED", None, 1, "error: each does not hold now (NOT_VALIDATED)\n"),
    ],
)
def test_a_join_that_does_not_hold_is_told_on_stderr(monkeypatch, state, message, code, said):
    answer = {"name": "each", "state": state, "message": message}
    monkeypatch.setattr("cachemgr.cli.client.Client.call", lambda *_, **__: answer)
    done = CliRunner().invoke(main, ["join", "validate", "each", "-o", "json"])
    assert (done.exit_code, done.stderr) == (code, said)
    assert json.loads(done.stdout) == answer


def test_a_service_that_is_not_there(monkeypatch):
    given = ["cache", "list", "--server", "http://127.0.0.1:9"]
    done = CliRunner().invoke(main, given)
    assert done.exit_code == 1 and "SERVICE_UNREACHABLE" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--server", "http://127.0.0.1:99999"), "not a service URL"),
        (("--server", "http://["), "not a service URL"),
        (("--server", "http://a:b:c"), "not a service URL"),
        (("--server", "ftp://x"), "not a service URL"),
        (("--server", "x"), "not a service URL"),
        (
            ("--server", "http://127.0.0.1:9", "--token", "ü"),
            "CACHEMGR_TOKEN holds no token: copy it",
        ),
        (
            ("--server", "http://127.0.0.1:9", "--token", "a\nb"),
            "CACHEMGR_TOKEN holds no token: copy it",
        ),
    ],
)
def test_what_cannot_be_a_service_or_its_token_is_not_asked(given, said):
    done = CliRunner().invoke(main, ["cache", "list", *given])
    assert done.exit_code == 1 and "BAD_SETTING" in done.stderr and said in done.stderr


class SlowSpark:
    """Starts for longer than a person likes to wait without a word."""

    state = "notStarted"

    def execute(self, text: str, principal: str):
        self.state = "starting"
        time.sleep(3)
        self.state = "running"
        raise DefinitionError("NO_SUCH_TABLE", "it was asked, after all")


def test_who_waits_for_spark_to_start_is_told(serve, metastore_url):
    slow = SlowSpark()
    url = serve(open_to_all=True, statements=slow, spark=lambda: slow.state)
    assert httpx.get(f"{url}/readyz").json()["spark"] == "notStarted"
    given = ["cache", "create", "CREATE RELATIONAL CACHE c AS SELECT 1 AS a", "--server", url]
    done = CliRunner().invoke(main, given)
    assert done.exit_code == 1 and "NO_SUCH_TABLE" in done.stderr
    assert done.stderr.splitlines()[0].startswith("The service starts its Spark")
    assert done.stderr.count("starts its Spark") == 1
    assert httpx.get(f"{url}/readyz").json()["spark"] == "running"


def test_a_server_that_is_another_one():
    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>")

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        done = CliRunner().invoke(main, ["cache", "list", "--server", url])
        server.shutdown()
    assert done.exit_code == 1 and "NOT_THE_SERVICE" in done.stderr


def test_a_server_with_a_path_that_is_not_ours(serve):
    url = serve(open_to_all=True)
    done = CliRunner().invoke(main, ["cache", "show", "cube", "--server", f"{url}/api"])
    assert done.exit_code == 1 and done.stderr == (
        f"error: [NOT_FOUND] {url}/api/api/v1/caches/cube was asked, and there is no "
        "/api/api/v1/caches/cube: paths begin with /api/v1, and GET /api/v1/openapi.json lists "
        "them; check --server\n"
    )


def test_a_wrong_token(serve, store):
    store.tokens.create("ann", Role.ADMIN)
    done = CliRunner().invoke(
        main, ["cache", "list", "--server", serve(), "--token", "cachemgr_x_y"]
    )
    assert done.exit_code == 1 and "UNAUTHENTICATED" in done.stderr


def test_tokens(metastore_url, store):
    def command(*words: str):
        done = CliRunner().invoke(main, ["token", *words, "--metastore", metastore_url])
        return done.exit_code, done.stdout, done.stderr

    code, out, err = command("create", "ann", "--role", "operator", "--expires-in", "2d")
    assert "from now on the service asks" in err and "no token is an admin's" in err
    found = store.tokens.bearer(out.strip())
    assert code == 0 and (found.principal, found.role) == ("ann", Role.OPERATOR)
    assert (found.expires_at - found.created_at).days == 2
    code, listed, _ = command("list", "-o", "json")
    assert code == 0 and json.loads(listed)[0]["id"] == found.id
    assert out.strip() not in listed and found.id in command("list")[1]
    made = json.loads(command("create", "bob", "-o", "json")[1])
    _, eve, said = command("create", "eve", "--role", "admin")
    assert "from now on" not in said and "no token is an admin's" not in said
    assert command("revoke", store.tokens.bearer(eve.strip()).id)[0] == 0
    assert "no token is an admin's" in command("create", "mia")[2]
    assert store.tokens.bearer(made["token"]).id == made["id"]
    assert command("list", "-o", "xml")[0] == 2
    assert command("revoke", found.id)[0] == 0
    assert store.tokens.bearer(out.strip()) is None
    assert command("revoke", "nothing")[0] == 1
    assert command("create", "ann", "--expires-in", "soon")[0] == 2
    code, _, err = command("create", "ann", "--role", "king")
    assert code == 2 and "'king' is none of viewer, operator, admin" in " ".join(err.split())
