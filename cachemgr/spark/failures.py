"""Queries that fail on a file of a cache: the error names the cache, and the next one does without.

Spark names the file alone. PySpark converts each error of the JVM in one function, which is
wrapped: one that names a file under some cache's place is handed to those who watch, and what they
say is added to it as a note. What it says itself, and its type, stay as they are.
"""

from __future__ import annotations

import functools
import logging
import re
import sys
from collections.abc import Callable
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions import captured
from pyspark.errors.exceptions.captured import CapturedException

from cachemgr.causes import tell_of_storage

Watcher = Callable[[str], "str | None"]

# A cache's folder is named by its id.
_ID: Final = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")
_READING: Final = re.compile(
    r"FAILED_READ_FILE|FileNotFoundException|File .{1,2000}? does not exist"
)
# The file was read, and is not what was written: unlike an error of the storage, or of the reader,
# that is so for everybody.
_NOT_AS_WRITTEN: Final = re.compile(
    r"is not a Parquet file|Expected magic number|ChecksumException|Checksum error|"
    r"ParquetDecodingException|[Cc]orrupted? (?:file|footer|page|data|statistics)|"
    r"CANNOT_READ_FILE_FOOTER|Could not read footer"
)
_MOST: Final = 100_000

_log = logging.getLogger("cachemgr.hook")
_watchers: list[Watcher] = []


def is_read_failure(text: str) -> bool:
    """Whether Spark says that it could not read a file."""
    return _READING.search(text[:_MOST]) is not None


def is_not_as_written(text: str) -> bool:
    """Whether Spark read a file and found other bytes in it than a writer of Parquet makes.

    Args:
        text: What it says.
    """
    return _NOT_AS_WRITTEN.search(text[:_MOST]) is not None and not tell_of_storage([text[:_MOST]])


def cache_ids(text: str) -> frozenset[str]:
    """What may be ids of caches in the places that a text names."""
    return frozenset(_ID.findall(text[:_MOST]))


def watch(watcher: Watcher) -> None:
    """Call `watcher` with each failure to read a file; what it returns is added to the error.

    Args:
        watcher: Called in the user's thread with what Spark says; raises nothing.
    """
    if watcher not in _watchers:
        _watchers.append(watcher)
    _wrap()


def unwatch(watcher: Watcher) -> None:
    """Take a watcher back."""
    if watcher in _watchers:
        _watchers.remove(watcher)


def _wrap() -> None:
    # Not `get_return_value`, which each new session puts in its place again.
    original: Any = captured.convert_exception
    if getattr(original, "_cachemgr", False):
        return

    @functools.wraps(original)
    def convert_exception(java: Any) -> CapturedException:
        converted: CapturedException = original(java)
        error = sys.exc_info()[1]
        # causes are converted by this function as well
        if isinstance(error, Py4JJavaError) and error.java_exception is java:
            _tell(converted, error)
        return converted

    convert_exception._cachemgr = True  # type: ignore[attr-defined]
    captured.convert_exception = convert_exception  # type: ignore[assignment]


def _tell(converted: CapturedException, error: Py4JJavaError) -> None:
    """Add to whichever of both the user sees: that of py4j, where Spark knows nothing better."""
    try:
        text = _text(converted)
        if is_read_failure(text):
            for note in filter(None, (watcher(text) for watcher in tuple(_watchers))):
                error.add_note(note)
                converted.add_note(note)
                return
    except Exception:  # the user's own error matters more
        _log.debug("a failure could not be looked at", exc_info=True)


def _text(error: CapturedException) -> str:
    """What Spark says, with the causes."""
    found: list[str] = []
    cause: Any = error
    while isinstance(cause, CapturedException) and len(found) < 10:
        found.append(str(cause._desc))
        cause = cause._cause
    return "\n".join(found)
