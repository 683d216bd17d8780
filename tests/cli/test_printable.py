"""No control character of anybody's reaches a person's terminal, whichever way it came."""

from __future__ import annotations

import json
import logging
import os

import pytest
from typer.testing import CliRunner

from cachemgr.cli import main, output
from cachemgr.errors import DefinitionError
from cachemgr.metastore import open_metastore
from cachemgr.metastore.records import DecisionRecord, JoinRecord, JoinSide
from cachemgr.printable import printable, printable_data
from cachemgr.server.logs import configure_logs
from cachemgr.vocabulary import Outcome
from tests.worlds.records import cache_of

EVIL = "x\x1b[2J\x1b]0;t\x07\r\x9b31m\u202e\u2066\x7f\u2028y"


def harmless(text: str) -> bool:
    return not set(EVIL) - set("x[2J]0;t31my") & set(text)


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in [n for n in os.environ if n.startswith("CACHEMGR_")]:
        monkeypatch.delenv(name)


def test_what_would_not_be_seen_is_written_out():
    assert harmless(printable(EVIL)) and "\\x1b[2J" in printable(EVIL)
    assert printable("Grüße, 東京 🎉 é\n\tb") == "Grüße, 東京 🎉 é\n\tb"
    assert printable("a\nb", one_line=True) == "a\\nb"
    assert printable_data({"a": [EVIL, 1, None]}) == {"a": [printable(EVIL), 1, None]}


def test_tables_messages_and_headings(capsys):
    output.show_rows(["a", EVIL], [[EVIL, "1"]])
    output.show_one({"a": EVIL, EVIL: "b"}, output.Format.TABLE)
    output.show([{"a": EVIL}], ("a",), output.Format.TABLE)
    output.say(EVIL)
    printed = capsys.readouterr()
    assert harmless(printed.out + printed.err) and "\\x1b" in printed.out


def test_every_command_on_a_metastore(metastore_url):
    values = {"definition_hash": "h", "location": "/c", "columns": (), "plan_version": "2"}
    values |= {"comment": EVIL, "owner": EVIL, "definition": f"SELECT '{EVIL}'"}
    side = JoinSide(EVIL, "/t", None)
    with open_metastore(metastore_url) as store:
        store.caches.create(
            cache_of(namespace="default", name=EVIL, **values), now=store.clock.now()
        )
        join = JoinRecord(EVIL, f"CREATE {EVIL}", side, side, (("a", "b"),), message=EVIL)
        store.joins.create(join, now=store.clock.now())
        store.tables.restrict(EVIL, "file:/x", None, by=EVIL)
        reason = {"code": "STALE", "detail": EVIL, "tables": [EVIL]}
        store.decisions.log(
            [DecisionRecord(store.clock.now(), EVIL, EVIL, Outcome.MISS, reasons=(reason,))]
        )
    there = ("--metastore", metastore_url)
    for words in (
        ("cache", "list"), ("cache", "show", EVIL), ("cache", "why"), ("join", "list"),
        ("table", "list"), ("token", "list"), ("cache", "show", f"no{EVIL}"), ("export",),
        ("explain", f"SELECT '{EVIL}' FROM {EVIL}"), ("doctor", "--no-spark"),
    ):  # fmt: skip
        done = CliRunner().invoke(main, [*words, *there])
        assert done.exception is None or isinstance(done.exception, SystemExit), words
        assert harmless(done.stdout + done.stderr), (words, done.stdout + done.stderr)


def test_errors(monkeypatch, capsys):
    from cachemgr.cli.failure import handled, set_debug

    set_debug(True)
    with pytest.raises(BaseException), handled():  # noqa: B017 - typer's own way to exit
        raise DefinitionError("X", f"cache {EVIL}")
    set_debug(False)
    printed = capsys.readouterr()
    assert harmless(printed.err) and "cache x" in printed.err


@pytest.mark.parametrize("form", ["text", "json"])
def test_logs(form: str, capsys, monkeypatch):
    configure_logs("INFO", form)
    logging.getLogger("cachemgr").info("sent by %s", f"{EVIL}\nforged line")
    written = capsys.readouterr().err
    assert harmless(written) and len(written.splitlines()) == 1
    assert form == "text" or json.loads(written)["event"].endswith("forged line")
