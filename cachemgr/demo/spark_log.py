"""Where Spark's own output goes while the demo runs: a file, and of it only errors to the terminal.

Ivy's report of what it fetched, and the warnings of Spark and Hadoop about the machine, are written
by the JVM to its standard error. It inherits that from us when it is launched, so for as long as
that takes descriptor 2 is the file. The JVM keeps it for its whole life, ours is put back.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from cachemgr.demo.errors import DemoError
from cachemgr.errors import CacheManagerError

_STDERR: Final = 2
_POLL_SECONDS: Final = 0.5
_TAIL_LINES: Final = 20
# A line of log4j's begins with the time and the level; what follows it without one belongs to it.
_LEVEL: Final = re.compile(r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d (?P<level>[A-Z]+) ")
_SHOWN: Final = ("ERROR", "FATAL")
# What a JVM writes by itself when a thread or the whole of it ends.
_OF_THE_JVM: Final = re.compile(
    r"Exception in thread |Exception: |Error: |# |java\.lang\.OutOfMemoryError"
)
_CONTINUED: Final = re.compile(r"\s|Caused by: |[\w.$]+(Exception|Error)\b")


class SparkLog:
    """The log file of one run, written anew.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(b"")
        self._read = 0
        self._within = False

    @contextmanager
    def receives_jvm(self) -> Iterator[None]:
        """A JVM that is launched inside writes its standard error to the file for good.

        Yields:
            Nothing; Python's own `sys.stderr` stays what it was.

        Raises:
            DemoError: The block failed, and the end of the log says why; errors that say so
                themselves pass.
        """
        sys.stderr.flush()
        ours, kept = sys.stderr, os.dup(_STDERR)
        target = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        try:
            os.dup2(target, _STDERR)
            # Not for a test's capture, which has no descriptor of its own.
            if _descriptor(ours) == _STDERR:
                sys.stderr = open(os.dup(kept), "w", buffering=1, errors="backslashreplace")
            yield
        except (CacheManagerError, KeyboardInterrupt):
            raise
        except Exception as error:
            raise DemoError(self._failure(error)) from error
        finally:
            if sys.stderr is not ours:
                sys.stderr.close()
                sys.stderr = ours
            os.dup2(kept, _STDERR)
            os.close(kept)
            os.close(target)

    @contextmanager
    def shows_errors(self, show: Callable[[str], object]) -> Iterator[None]:
        """Errors that reach the file are shown as well, within a second.

        Args:
            show: Takes one line, without its end.

        Yields:
            Nothing; the work is done inside.
        """
        stop = threading.Event()

        def follow() -> None:
            done = False
            while not done:
                done = stop.wait(_POLL_SECONDS)
                for line in self.new_errors():
                    show(line)

        follower = threading.Thread(target=follow, name="spark-log", daemon=True)
        follower.start()
        try:
            yield
        finally:
            stop.set()
            follower.join()

    def new_errors(self) -> list[str]:
        """The lines of errors that were written since the last call, stack traces included."""
        with self.path.open("rb") as log:
            log.seek(self._read)
            found = log.read()
        # The last line may be half written: it is read with the next ones.
        whole = found[: found.rfind(b"\n") + 1]
        self._read += len(whole)
        lines = whole.decode(errors="replace").splitlines()
        return [line for line in lines if self._is_error(line)]

    def _is_error(self, line: str) -> bool:
        level = _LEVEL.match(line)
        if level is not None:
            self._within = level["level"] in _SHOWN
        elif _OF_THE_JVM.match(line):
            self._within = True
        elif not _CONTINUED.match(line):
            self._within = False
        return self._within

    def _failure(self, error: Exception) -> str:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        lines = self.path.read_text(errors="replace").splitlines()[-_TAIL_LINES:]
        end = "".join(f"\n  {line}" for line in lines)
        return f"Spark did not start: {first}; the end of its log {self.path}:{end}"


def _descriptor(stream: object) -> int | None:
    try:
        found: int = stream.fileno()  # type: ignore[attr-defined]
    except (AttributeError, OSError, ValueError):
        return None
    return found
