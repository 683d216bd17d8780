"""Ends what tests started, also when they are killed before they could do so themselves.

A process of its own reads from a pipe whose other end the process of the tests alone holds. However
that one ends, the pipe ends with it, and what it told of and did not take back is ended then.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

# For a PostgreSQL that is asked to stop at once.
_LONGEST = 10.0


def watch_group(pid: int) -> None:
    """SIGKILL the process group of `pid` once this process is gone."""
    _tell({"pid": pid, "signal": signal.SIGKILL, "group": True})


def watch_postgres(pid: int, folder: Path) -> None:
    """Stop the PostgreSQL of postmaster `pid` once this process is gone, and remove its folder."""
    _tell({"pid": pid, "signal": signal.SIGQUIT, "group": False, "folder": str(folder)})


def forget(pid: int) -> None:
    """It has been ended: its number may become another process's."""
    _tell({"pid": pid})


def alive(pid: int) -> bool:
    """Whether a process runs; one that is dead and that nobody has waited for does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def _tell(what: dict[str, Any]) -> None:
    # shorter than a pipe's buffer, so that threads do not mix their lines
    os.write(_pipe(os.getpid()), (json.dumps(what) + "\n").encode())


@cache
def _pipe(pid: int) -> int:
    """The pipe to the watchdog of this process; a fork has one of its own."""
    started = subprocess.Popen(
        [sys.executable, "-I", __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # what ends the tests' own group does not end it
        start_new_session=True,
    )
    assert started.stdin is not None
    pipe = os.dup(started.stdin.fileno())  # not inherited, and closed by nobody but the end
    started.stdin.close()
    # It ends when this process does, so nobody waits for it.
    started.returncode = 0
    return pipe


def _end(told: dict[str, Any]) -> None:
    with suppress(ProcessLookupError):
        (os.killpg if told["group"] else os.kill)(told["pid"], told["signal"])
    end = time.monotonic() + _LONGEST
    while alive(told["pid"]) and time.monotonic() < end:
        time.sleep(0.05)
    if "folder" in told:
        shutil.rmtree(told["folder"], ignore_errors=True)


def main() -> None:
    """Listen until the pipe ends, then end what is left."""
    left: dict[int, dict[str, Any]] = {}
    for line in sys.stdin:
        told = json.loads(line)
        if "signal" in told:
            left[told["pid"]] = told
        else:
            left.pop(told["pid"], None)
    for told in left.values():
        _end(told)


if __name__ == "__main__":
    main()
