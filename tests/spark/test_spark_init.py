"""A statement of `spark_init` that fails is named wherever somebody looks for the cause."""

from __future__ import annotations

import logging

import pytest
from pyspark.errors import ParseException

from cachemgr.errors import RefreshError
from cachemgr.spark import host as hosts
from cachemgr.spark.host import SparkHost

SAYS = "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'TABEL'. (line 1, pos 7)\n\n== SQL ==\n…"


class Conf:
    def set(self, key: str, value: str) -> None:
        pass


class Session:
    conf = Conf()
    stopped = 0

    def sql(self, text: str) -> None:
        if "TABEL" in text:
            raise ParseException(SAYS)

    def stop(self) -> None:
        Session.stopped += 1


@pytest.fixture
def clock() -> list[float]:
    return [1_000.0]


@pytest.fixture
def host_with(monkeypatch, clock):
    def make(*init: str) -> SparkHost:
        made = SparkHost("local", "sqlite:///x", "/caches", {}, init, clock=lambda: clock[0])
        monkeypatch.setattr(made, "_created", Session)
        monkeypatch.setattr(hosts.api, "enable", lambda spark: None)
        monkeypatch.setattr(hosts, "is_stopped", lambda context: False)
        monkeypatch.setattr(made, "lost", lambda: False)
        return made

    return make


def test_it_is_named_in_the_log_and_in_the_answer(host_with, caplog):
    host = host_with("USE s", "CREATE  TABEL\n x")
    assert host.state == "notStarted"
    with caplog.at_level(logging.ERROR), pytest.raises(RefreshError) as caught:
        host.spark()
    (line,) = [r.getMessage() for r in caplog.records if r.levelname == "ERROR"]
    for told in (line, caught.value.message):
        assert "statement 2 of the setting spark_init, `CREATE TABEL x`" in told
        assert "Syntax error at or near 'TABEL'" in told and "\n" not in told
    assert host.state == "failed" and Session.stopped


def test_the_doctor_carries_it_out(host_with):
    with pytest.raises(RefreshError, match="statement 1 of the setting spark_init, `CREATE TABEL"):
        host_with("CREATE TABEL x").initialised()
    assert host_with("USE s").initialised() == "1 statements"


def test_no_password_of_it_is_shown(host_with):
    with pytest.raises(RefreshError) as caught:
        host_with("CREATE TABEL x LOCATION 'jdbc:postgresql://ann:geheim@db/x'").spark()
    assert "geheim" not in str(caught.value)


def test_a_start_that_failed_without_a_message_is_named_by_its_kind(host_with, monkeypatch):
    host = host_with()

    def fails() -> None:
        raise ParseException("")

    monkeypatch.setattr(host, "_created", fails)
    with pytest.raises(RefreshError, match=r"does not start \(ParseException\)"):
        host.spark()


def test_the_next_start_that_succeeds_is_running(host_with, monkeypatch):
    host = host_with("CREATE TABEL x")
    with pytest.raises(RefreshError):
        host.spark()
    monkeypatch.setattr(host, "_init", ())
    host._spark = host._started()
    assert host.state == "running"


def test_the_waits_grow_and_one_line_says_each_try(host_with, clock, caplog):
    host = host_with("CREATE TABEL x LOCATION '/secret'")
    before = Session.stopped
    waits = []
    with caplog.at_level(logging.INFO):
        for _ in range(9):
            began = clock[0]
            for _ in range(3):  # who asks meanwhile is told at once, and nothing is started
                with pytest.raises(RefreshError, match=r"tried again in \d+ s") as caught:
                    host.spark()
                assert "CREATE TABEL x" in caught.value.message
            while host._failed.seconds_left(clock[0]) > 0:
                clock[0] += 1
            waits.append(clock[0] - began)
    assert waits == [5, 10, 20, 40, 80, 160, 300, 300, 300]
    assert Session.stopped - before == 9
    lines = [r.getMessage() for r in caplog.records]
    assert len(lines) == 9 and lines[0].endswith("tried again in 5 s")
    assert not any("\n" in line for line in lines)
    assert not any(record.exc_info for record in caplog.records)


def test_anybody_may_read_why_and_no_statement(host_with, monkeypatch, clock):
    host = host_with("USE s", "CREATE TABEL x LOCATION '/secret'")
    assert host.trouble is None
    with pytest.raises(RefreshError):
        host.spark()
    assert "statement 2 of the setting spark_init fails" in host.trouble
    assert "tried again in 5 s" in host.trouble and "secret" not in host.trouble
    monkeypatch.setattr(host, "_init", ())
    clock[0] += 6
    assert "when next needed" in host.trouble
    host.spark()
    assert (host.state, host.trouble) == ("running", None)
