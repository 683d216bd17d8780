"""Tests that are killed leave no process and no folder of PostgreSQL behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import watchdog
from tests.processes import ROOT, Started, until

PROGRAM = """
import sys, time
from pathlib import Path
import psycopg
from tests.processes import Started, postgres_server

folder = Path(sys.argv[1])
left = Started.run(["sh", "-c", "sleep 600 & echo $!; wait"], folder / "left", folder, {})
with postgres_server() as url:
    with psycopg.connect(url) as connection:
        (data,) = connection.execute("SHOW data_directory").fetchone()
    postmaster = Path(data, "postmaster.pid").read_text().split()[0]
    print(left.process.pid, left.text().strip(), postmaster, data, flush=True)
    time.sleep(600)
"""


@pytest.mark.postgres
def test_what_a_killed_process_had_started_ends(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            *pids, data = process.stdout.readline().split()
            started = list(map(int, pids))
            assert len(started) == 3
            assert all(map(watchdog.alive, started)) and Path(data).is_dir()
        finally:
            process.kill()
    until(lambda: not any(map(watchdog.alive, started)), 20, "all of it has ended")
    until(lambda: not Path(data).exists(), 20, "its folder is gone")


def test_what_was_ended_is_not_ended_again(tmp_path: Path) -> None:
    """The number of a process that is over may be another's by then."""
    told: list[dict[str, object]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watchdog, "_tell", told.append)
        one = Started.run(["sleep", "600"], tmp_path / "log", tmp_path, {})
        assert [line["pid"] for line in told if "signal" in line] == [one.process.pid]
        one.kill()
    assert told[-1] == {"pid": one.process.pid}
