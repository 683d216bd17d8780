"""The JVM of a service gives way to it in every thread, those of Spark's tasks among them."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.spark

_START = """
import os, sys
from pathlib import Path
from cachemgr.spark.host import SparkHost
from tests.processes import SMALL_SPARK
host = SparkHost("local[2]", "sqlite:///m.db", "caches", SMALL_SPARK, nice=7)
spark = host.plain()
assert spark.range(1000).repartition(2).count() == 1000

def nices(process):
    tasks = Path(f"/proc/{process}/task").iterdir()
    return {int((t / "stat").read_text().rpartition(")")[2].split()[16]) for t in tasks}

own = os.getpriority(os.PRIO_PROCESS, 0)
jvm = spark.sparkContext._gateway.proc.pid
print("logs", spark.newSession().conf.get("spark.databricks.delta.delta.log.cacheSize"))
print("found", own, os.getsid(jvm) == os.getsid(0), *nices(jvm))
host.stop()
"""


def test_all_threads_of_the_jvm_have_the_priority_and_python_keeps_its_own(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", _START], cwd=tmp_path, capture_output=True, text=True, timeout=240
    )
    # half of 700 MB for what Delta keeps of tables
    assert "logs 10" in done.stdout
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("found ")]
    assert lines, done.stderr[-3000:]
    _, own, same_session, *found = lines[0]
    assert found == [str(min(19, int(own) + 7))]
    assert same_session == "True", "another session would have its own share of the processor"
