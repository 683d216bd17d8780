"""Ctrl-C in the demo, as a terminal sends it: to Python and to the JVM."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from pathlib import Path

import pytest

from tests.processes import Started, until

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_ctrl_c_in_a_refresh_ends_the_demo_without_traces(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "cachemgr", "demo", "--scale", "0.002"]
    running = Started.run(command, tmp_path / "demo.log", tmp_path, {})
    try:
        until(lambda: "Refresh the cube" in running.text(), 120, "the refresh", every=0.05)
        os.killpg(running.process.pid, signal.SIGINT)
        assert running.process.wait(60) != 0
    finally:
        running.kill()
    assert "Traceback" not in running.text() and "Exception" not in running.text()
    (metastore,) = tmp_path.rglob("metastore.db")
    with sqlite3.connect(metastore) as database:  # the next run need not wait for its lease
        assert database.execute("SELECT holder FROM leases").fetchall() == [(None,)]
