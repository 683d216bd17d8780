"""What a killed service's Spark leaves in its temporary folder goes; what lives, or is somebody
else's, stays."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from cachemgr.spark.scratch import roots_of, scratch, sweep
from tests.processes import ROOT, Started, until

pytestmark = pytest.mark.spark

_START = """
import signal, sys, threading
from cachemgr.spark.host import SparkHost
from tests.processes import SMALL_SPARK
conf = {**SMALL_SPARK, "spark.local.dir": sys.argv[1]}
host = SparkHost("local[1]", "sqlite:///m.db", "caches", conf)
spark = host.plain()
assert spark.range(1000).repartition(2).persist().count() == 1000
spark.addArtifacts(__file__, file=True)
told = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: told.set())
print("jvm", spark.sparkContext._gateway.proc.pid, flush=True)
told.wait()
host.stop()
"""


def start(stack: ExitStack, folder: Path, root: Path, name: str) -> Started:
    """A process that starts a Spark, and lets it work."""
    (folder / "start.py").write_text(_START)
    command = [sys.executable, "start.py", str(root)]
    made = Started.run(command, folder / f"{name}.log", folder, {})
    stack.callback(made.kill)
    return made


def jvm_of(process: Started) -> psutil.Process:
    """Its JVM, once that has worked."""
    until(lambda: "jvm " in process.text() or not process.alive, 180, "Spark has worked")
    found = re.search(r"jvm (\d+)", process.text())
    assert found, process.text()[-3000:]
    return psutil.Process(int(found[1]))


def names(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir()}


def test_what_dead_processes_left_goes_and_nothing_else(tmp_path):
    root = tmp_path / "the user's"
    for foreign in (
        "blockmgr-somebodys",
        "spark-somebodys",
        "relational-cache-spark-elsewhere-1-0",
    ):
        (root / foreign).mkdir(parents=True)
    foreign = names(root)
    with ExitStack() as stack:
        killed = start(stack, tmp_path, root, "killed")
        jvm = jvm_of(killed)
        (left,) = names(root) - foreign
        inside = {p.name.partition("-")[0] for p in (root / left).iterdir()}
        assert {"blockmgr", "spark", "artifacts"} <= inside
        lives = start(stack, tmp_path, root, "lives")
        jvm_of(lives)
        assert len(names(root) - foreign) == 2, "a start deletes nothing of who lives"

        jvm.send_signal(signal.SIGSTOP)
        killed.process.kill()
        killed.process.wait()
        assert sweep([str(root)]) == 0, "the JVM outlives its Python, and may still write"
        killed.kill()
        until(lambda: sweep([str(root)]) == 1, 30, "what the dead one left goes")
        (stays,) = names(root) - foreign
        assert stays != left and sweep([str(root)]) == 0
        assert (root / stays / "python.lock").exists()

        assert lives.stop() == 0
        until(lambda: names(root) == foreign, 30, "one that ends in good order leaves nothing")


_TWICE = """
import sys
from pathlib import Path
from cachemgr.errors import RefreshError
from cachemgr.spark.host import SparkHost
from tests.processes import SMALL_SPARK
init = ["CREATE TABLE a (x INT) USING delta LOCATION 'a'", "SELECT * FROM text.`flag`"]
conf = {**SMALL_SPARK, "spark.sql.warehouse.dir": "w", "spark.local.dir": sys.argv[1]}
now = [0.0]
host = SparkHost("local[1]", "sqlite:///m.db", "caches", conf, init, clock=lambda: now[0])
try:
    host.spark()
except RefreshError as error:
    print("failed", error.code)
Path("flag").write_text("")
now[0] += 3600  # nothing is tried for a while after a start that failed
host.spark()
print("then", host.state)
host.stop()
"""


def test_a_start_that_failed_half_way_is_begun_again(tmp_path):
    """As where a table that it names could not be read for a while."""
    (tmp_path / "twice.py").write_text(_TWICE)
    done = subprocess.run(
        [sys.executable, "twice.py", str(tmp_path / "scratch")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert "failed SPARK_NOT_STARTED" in done.stdout, done.stderr[-3000:]
    assert "then running" in done.stdout, done.stderr[-3000:]


def test_where_spark_would_write_is_respected(tmp_path, monkeypatch):
    for key in ("SPARK_LOCAL_DIRS", "SPARK_HOME"):
        monkeypatch.delenv(key, raising=False)
    assert len(roots_of({})) == 1
    assert roots_of({"spark.local.dir": "/a, /b"}) == ("/a", "/b")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    (tmp_path / "spark-defaults.conf").write_text("spark.local.dir   /c\nspark.local.dirty /d\n")
    assert roots_of({}) == ("/c",) and roots_of({"spark.local.dir": "/a"}) == ("/a",)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/e")
    assert roots_of({"spark.local.dir": "/a"}) == ("/e",)


def test_a_folder_that_cannot_be_made_is_sparks_to_complain_of(tmp_path):
    (tmp_path / "file").write_text("")
    assert scratch([str(tmp_path / "file")]) is None
    assert sweep([str(tmp_path / "file"), str(tmp_path / "none")]) == 0
