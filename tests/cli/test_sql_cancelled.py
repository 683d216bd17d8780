"""What Ctrl-C over a statement of `cachemgr sql` comes to; without a Spark."""

from __future__ import annotations

import signal
import time
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

pytest.importorskip("pyspark")

from cachemgr.cli import main
from cachemgr.spark.process import jvm_log, shell
from cachemgr.spark.process.cancellable import Cancellable
from cachemgr.spark.process.jvm_log import JvmLog


class FakeSpark:
    """Notes what is asked of it; a job runs until it is cancelled as often as it takes."""

    def __init__(self, cancels: int) -> None:
        self.said: list[str] = []
        self.sparkContext = self
        self._jvm = SimpleNamespace()
        self._cancels = cancels

    def cancelAllJobs(self) -> None:
        self.said.append("cancelled")

    def job(self) -> None:
        while self.said.count("cancelled") < self._cancels:
            time.sleep(0.01)


@pytest.fixture(autouse=True)
def _pyspark_handler():
    """What PySpark does at Ctrl-C where nobody else does anything."""
    before = signal.signal(signal.SIGINT, lambda *_: pytest.fail("PySpark's handler was asked"))
    yield
    signal.signal(signal.SIGINT, before)


def _press_ctrl_c_soon(seconds: float = 0.2) -> None:
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, seconds)


def test_spark_is_silent_before_its_jobs_are_cancelled(monkeypatch):
    spark = FakeSpark(cancels=2)
    monkeypatch.setattr(shell, "run_statement", lambda *_: spark.job())
    monkeypatch.setattr(JvmLog, "fall_silent", lambda _: spark.said.append("silent"))
    monkeypatch.setattr(JvmLog, "speak", lambda _: spark.said.append("speaks"))
    theirs = signal.getsignal(signal.SIGINT)
    running = shell.Statements(spark)
    _press_ctrl_c_soon()
    with pytest.raises(KeyboardInterrupt):
        running.run("SELECT 1", 1)
    assert spark.said == ["speaks", "silent", "cancelled", "silent", "cancelled"]
    assert signal.getsignal(signal.SIGINT) is theirs


def test_a_second_ctrl_c_does_not_leave_the_statement_running():
    spark = FakeSpark(cancels=2)
    pressed = []

    def pressed_again() -> None:
        pressed.append(True)
        if len(pressed) == 1:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, signal.default_int_handler)
    _press_ctrl_c_soon()
    with pytest.raises(KeyboardInterrupt):
        Cancellable(spark).run(spark.job, pressed_again)
    assert len(pressed) == 3 and spark.said == ["cancelled"] * 2


def test_the_log_comes_back_once_tasks_have_had_time_to_end(monkeypatch):
    levels = ["WARN"]
    known = {
        "LogManager": SimpleNamespace(getRootLogger=lambda: SimpleNamespace(getLevel=levels.pop)),
        "Level": SimpleNamespace(toLevel=str),
        "Configurator": SimpleNamespace(setRootLevel=levels.append),
    }
    monkeypatch.setattr(jvm_log, "class_on_path", lambda _, name: known[name.rsplit(".")[-1]])
    now = [100.0]
    log = JvmLog(FakeSpark(0), lambda: now[0])
    log.fall_silent()
    now[0] += 20
    log.fall_silent()
    now[0] += 20
    log.speak()
    assert levels == ["OFF"]  # a task of what was cancelled may still end, and say so
    now[0] += 20
    log.speak()
    log.speak()
    assert levels == ["OFF", "WARN"]


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (["SELECT 1"], "error: the statement was cancelled"),
        (
            ["SELECT 1", "SELECT 2"],
            "statement 1 of 2 cancelled; 1 statement after it not run: SELECT 1",
        ),
    ],
)
def test_a_script_says_in_one_line_that_it_was_cancelled(monkeypatch, statements, said):
    def run(*_: object) -> None:
        raise KeyboardInterrupt

    host = SimpleNamespace(spark=lambda: FakeSpark(0), stop=lambda: None)
    monkeypatch.setattr("cachemgr.spark.host.host_of", lambda _: host)
    monkeypatch.setattr(shell.Statements, "run", run)
    done = CliRunner().invoke(main, ["sql", *(w for text in statements for w in ("-e", text))])
    assert done.exit_code == 130
    assert done.stderr.splitlines()[1:] == [said]
