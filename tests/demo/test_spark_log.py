"""Spark's own output goes to a file; of it errors alone reach the terminal."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cachemgr.demo.errors import DemoError
from cachemgr.demo.spark_log import SparkLog
from cachemgr.errors import ConfigurationError
from tests import spark_start
from tests.processes import ROOT, SMALL_SPARK

# 13 of them with five sets of parameters each take minutes, and print nothing else
ONE_QUERY = """
import cachemgr.demo.ssb_draw as draw
draw.QUERIES = draw.QUERIES[:1]
from cachemgr.cli import main
main()
"""
WARN = "26/11/23 22:26:08 WARN Utils: Your hostname resolves to a loopback address"
ERROR = "26/11/23 22:26:09 ERROR Executor: Exception in task 0.0"
TRACE = [
    "java.io.IOException: No space left on device",
    "\tat java.base/java.io.write",
    "Caused by: x",
]


def _child(text: str) -> None:
    """What a launched JVM does: it writes to the descriptor that it inherited."""
    subprocess.run([sys.executable, "-c", f"import os; os.write(2, {text.encode()!r})"], check=True)


def test_what_a_process_writes_that_is_launched_inside_goes_to_the_file(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = SparkLog(tmp_path / "spark.log")
    with log.receives_jvm():
        _child(f"{WARN}\n:: loading settings :: url\n")
        print("ours", file=sys.stderr)
    _child("after\n")
    os.write(2, b"and ours\n")
    assert capfd.readouterr().err == "ours\nafter\nand ours\n"
    assert log.path.read_text() == f"{WARN}\n:: loading settings :: url\n"


def test_errors_are_shown_with_their_traces_and_nothing_else(tmp_path: Path) -> None:
    log = SparkLog(tmp_path / "spark.log")
    shown: list[str] = []
    with log.shows_errors(shown.append):
        lines = [WARN, ERROR, *TRACE, WARN, "\tof the warning", "found io.delta#delta-spark"]
        log.path.write_text("\n".join([*lines, "Exception in thread main", "half a li"]))
    assert shown == [ERROR, *TRACE, "Exception in thread main"]


def test_a_start_that_fails_says_how_the_log_ends(tmp_path: Path) -> None:
    log = SparkLog(tmp_path / "spark.log")
    with pytest.raises(DemoError, match=r"(?s)gateway.*spark.log:.*JAVA_HOME is not set"):
        with log.receives_jvm():
            _child("JAVA_HOME is not set\n")
            raise RuntimeError("Java gateway process exited\nand more")
    with pytest.raises(ConfigurationError), log.receives_jvm():
        raise ConfigurationError("NO", "says so itself")


@pytest.mark.spark
@pytest.mark.slow
def test_the_demo_prints_nothing_of_ivy_and_no_warning(tmp_path: Path) -> None:
    conf = tmp_path / "conf"
    conf.mkdir()
    settings = {k: v for k, v in SMALL_SPARK.items() if k not in spark_start.settings()}
    # with a setting of jars Spark itself has Ivy look for Delta, and tells of it
    settings["spark.jars.excludes"] = "org.example:none"
    lines = [f"{key} {value}" for key, value in settings.items()]
    (conf / "spark-defaults.conf").write_text("\n".join(lines))
    command = [sys.executable, "-c", ONE_QUERY]
    work = tmp_path / ("longer-than-a-line-" * 10)
    command += ["demo", "--scale", "0.002", "--workdir", str(work)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SPARK_CONF_DIR": str(conf)}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=900, check=False
    )
    shown = done.stdout + done.stderr
    assert done.returncode == 0, shown
    assert "WARN" not in shown and "ivy" not in shown.lower()
    assert done.stderr == ""
    named = re.search(r"what Spark itself logged is in (.+)", done.stdout)
    assert named is not None, shown
    log = Path(named[1]).read_text()
    assert "WARN" in log and ":: resolution report ::" in log
    report = Path(named[1]).with_name("report.html")
    assert report.exists() and report.with_name("report-figures.json").exists()
