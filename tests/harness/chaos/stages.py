"""Where each replica's refreshes stand, read from its log as it is written.

The log is flushed line by line, so what a killed replica wrote last is where it was.
"""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path

IDLE = "no refresh"
# The step that was done last, as the log has it, and what the refresh does then.
AFTER = {
    "started": "pinning base versions",
    "pinned": "planning",
    "PinVersions": "planning",
    "RestorePublished": "after restoring the published state",
    "PrepareTable": "after making the table",
    "writing": "inside Delta's write",
    "written": "reading the log back",
    "WriteFull": "measuring",
    "Adopt": "measuring",
    "Measure": "before publishing",
    "publishing": "publishing",
}
IN_WRITE_BEFORE = "inside Delta's write, before its commit"
IN_WRITE_AFTER = "inside Delta's write, after its commit"
_STEP = re.compile(r"refresh (\w+): step (\w+)")
_OVER = re.compile(r"refresh (\w+) of cache \S+:")
_ASKED = re.compile(r"refresh of \S+ asked for: .* \[(\w+)\]$")


class StageTail(threading.Thread):
    """Follows one replica's log.

    Args:
        log: The log file; it may not exist yet, and grows over restarts.
    """

    def __init__(self, log: Path) -> None:
        super().__init__(name=f"chaos-tail-{log.stem}", daemon=True)
        self.asked: set[str] = set()
        self._log = log
        self._at = 0
        self._running: tuple[str, str] | None = None
        self._lock = threading.Lock()
        self._over = threading.Event()

    def run(self) -> None:
        """Follow until told to stop."""
        while not self._over.wait(0.02):
            self.catch_up()

    def stop(self) -> None:
        """Follow no more."""
        self._over.set()
        self.join()

    def catch_up(self) -> None:
        """Read what was written since the last look."""
        if not self._log.exists():
            return
        with self._lock:
            with self._log.open("rb") as file:
                file.seek(self._at)
                text = file.read()
            whole = text[: text.rfind(b"\n") + 1]
            self._at += len(whole)
            for line in whole.splitlines():
                self._read(line)

    def _read(self, line: bytes) -> None:
        if not line.startswith(b"{"):
            return
        try:
            event = str(json.loads(line).get("event", ""))
        except ValueError:
            return
        if (step := _STEP.search(event)) is not None:
            self._running = (step[1], step[2])
        elif (over := _OVER.search(event)) is not None:
            if self._running is not None and self._running[0] == over[1]:
                self._running = None
        elif (asked := _ASKED.search(event)) is not None:
            self.asked.add(asked[1])

    def now(self) -> tuple[str, str] | None:
        """The refresh that runs and the step that it has done last; None if none runs."""
        self.catch_up()
        with self._lock:
            return self._running

    def forget(self) -> None:
        """Its process is gone: nothing runs."""
        with self._lock:
            self._running = None
