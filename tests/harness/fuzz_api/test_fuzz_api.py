"""Half a minute of `make fuzz-api`, and that it finds what is there to be found."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
from types import SimpleNamespace

import pytest

from tests.harness.fuzz_api import parsers
from tests.harness.fuzz_api.asking import Asking
from tests.harness.fuzz_api.costly import costly, named
from tests.harness.fuzz_api.findings import Findings
from tests.harness.fuzz_api.run import fuzz


@pytest.mark.postgres
@pytest.mark.slow
def test_half_a_minute(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))  # statements get no further than Spark
    findings = Findings()
    tried = fuzz(0.35, 20261121, findings, contract=False)
    assert not findings.first, findings.text()
    assert all(tried[kind] > 0 for kind in ("ddl", "sql", "garbage", "texts")), tried


def test_texts_follow_from_the_seed():
    assert parsers.made(1, "ddl", 7) == parsers.made(1, "ddl", 7) != parsers.made(2, "ddl", 7)
    texts = [parsers.made(3, kind, n) for kind in parsers.KINDS for n in range(700)]
    assert max(map(len, texts)) == 1_000_000 and len(set(texts)) > 1300
    assert any(not t.isascii() for t in texts) and any("\0" in t for t in texts)


def test_texts_ask_for_much_and_name_what_is_hard_to_carry():
    choose = random.Random(5)
    asked = [costly(choose) for _ in range(300)]
    assert asked == [costly(again) for again in [random.Random(5)] for _ in range(300)]
    assert any("l5.lo_" in text for text in asked) and any("9" * 4301 in text for text in asked)
    assert all("{" not in text for text in asked)
    assert {len(text) > 100_000 for text in asked} == {True, False}
    statements = [named(choose) for _ in range(300)]
    assert any("`x/y`" in text for text in statements)
    assert all(parsers.read_statement(text) is None for text in statements)


def _hangs(text: str) -> None:
    while True:
        pass


def _dies(text: str) -> None:
    import os

    os._exit(11)


def _fails(text: str) -> str:
    raise KeyError(text)


@pytest.mark.parametrize(
    ("read", "said"),
    [(_hangs, "no end after"), (_dies, "the process died"), (_fails, "KeyError at test_fuzz_api")],
)
def test_a_parser_that_does_not_behave(monkeypatch, read, said):
    monkeypatch.setattr(parsers, "CPU_SECONDS", 0.5)
    with parsers.reader(parsers.Reading(ddl=read)) as reads:
        assert said in reads.read("ddl", "x")
        assert said in reads.read("ddl", "x"), "another process went on"


@contextlib.contextmanager
def _server(answer: bytes | None):
    """Answers everything with the same bytes; None never answers."""
    over = threading.Event()

    def serve(listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                threading.Thread(target=talk, args=(connection,), daemon=True).start()

    def talk(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.recv(65536)
            if answer is None:
                over.wait(60)
            else:
                connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, args=(listening,), daemon=True).start()
        yield listening.getsockname()[1]
        over.set()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", None),
        (b"HTTP/1.1 422 X\r\n\r\n", None),
        (b"HTTP/1.1 500 X\r\n\r\n{}", "status 500"),
        (b"HTTP/1.1 503 X\r\n\r\n{}", "status 503"),
        (b'HTTP/1.1 503 X\r\n\r\n{"type":"SPARK_LOST"}', None),
        (b'HTTP/1.1 200 OK\r\n\r\n{"code": "INTERNAL_ERROR"}', "an internal error"),
        (b"HTTP/1.1 400 X\r\n\r\nTraceback (most", "a stack trace"),
        (b"HTTP/1.1 200 OK\r\n\r\n471,108,151,923 rows", "it tells 471108151923"),
        (None, "no end of the answer"),
    ],
)
def test_a_service_that_does_not_behave(monkeypatch, answer, said):
    monkeypatch.setattr("tests.harness.fuzz_api.asking.ANSWER_SECONDS", 0.5)
    findings = Findings()
    with _server(answer) as port:
        service = SimpleNamespace(
            replica=SimpleNamespace(port=port),
            tokens=dict.fromkeys(("viewer", "operator", "admin"), "t"),
        )
        started = time.monotonic()
        Asking(service, 1, findings).one("texts", 1)
        assert time.monotonic() - started < 10
    assert (said is None) == (not findings.first), findings.text()
    assert said is None or said in findings.text()


def test_a_service_that_grows():
    findings = Findings()
    asking = Asking(SimpleNamespace(), 1, findings, rss=[200, 210, 220, 230, 240, 250])
    asking.judge_memory()
    assert not findings.first
    asking.rss = [200, 210, 300, 500, 700, 900]
    asking.judge_memory()
    assert "it grows" in findings.text()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('{"event": "cube is refreshed", "level": "info"}', False),
        ('{"event": "Spark does not start: no java; tried again in 5 s", "level": "error"}', False),
        ('{"event": "a request failed", "level": "error"}', True),
        ("Traceback (most recent call last):", True),
        ('{"event": "a row with N10156Sentinel", "level": "info"}', True),
        ('{"event": "Spark does not start: x", "exception": "Traceback", "level": "error"}', True),
    ],
)
def test_errors_that_a_service_logs(line, found):
    findings = Findings()
    started = SimpleNamespace(text=lambda: f"\n{line}\n")
    service = SimpleNamespace(replica=SimpleNamespace(started=started))
    Asking(service, 1, findings).judge_log()
    assert bool(findings.first) == found
