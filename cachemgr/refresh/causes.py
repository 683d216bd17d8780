"""What made Spark fail, in plain words.

Py4J says "An error occurred while calling o1037.save." for a full disk and a wrong place alike;
what happened stands in the innermost causes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from py4j.protocol import Py4JJavaError

_MOST_CAUSES: Final = 20
# What is said of a failure, by the first of these that fits any of its causes.
_PLAIN: Final = (
    (r"No space left on device|ENOSPC|[Dd]isk quota exceeded", "the disk is full"),
    (r"File too large|EFBIG", "no file may grow any larger there"),
    (r"AccessControlException|AccessDenied|Permission denied|403 Forbidden", "permission denied"),
    (
        r"No FileSystem for scheme|UnsupportedFileSystemException|"
        r"FileSystem.{0,200}UnsupportedOperationException",
        "the location is of a storage that this Spark cannot write",
    ),
    (r"DELTA_VIOLATE_CONSTRAINT|DELTA_NOT_NULL_CONSTRAINT|CHECK constraint", "a CHECK constraint"),
    (r"OutOfMemoryError", "Spark ran out of memory"),
    (r"DELTA_CANNOT_MODIFY_APPEND_ONLY", "the table takes appended rows only"),
)
_CLASS: Final = re.compile(r"^(?:[\w$]+\.)+[\w$]+(?::\s*|$)")


def cause_of(error: BaseException) -> str:
    """One line that says what went wrong.

    Args:
        error: What a refresh failed with.
    """
    return in_plain_words(_texts(error)) or type(error).__name__


def were_jobs_cancelled(error: BaseException) -> bool:
    """Whether somebody cancelled the jobs: by Ctrl-C over a statement, at which PySpark cancels all
    of the application, or by hand.

    Args:
        error: What a refresh or a job failed with.
    """
    return "SPARK_JOB_CANCELLED" in str(error)


def in_plain_words(texts: Sequence[str]) -> str:
    """What a chain of causes comes to.

    Args:
        texts: What each says, the outermost first.

    Returns:
        The innermost cause that says anything, after a word for people where there is one; empty if
        none says anything.
    """
    said = [line for text in texts if (line := _CLASS.sub("", _first(text)))]
    if not said:
        return ""
    for pattern, plain in _PLAIN:
        for text in reversed(texts):
            if re.search(pattern, text, re.DOTALL):
                return f"{plain}: {_CLASS.sub('', _first(text)) or said[-1]}"
    return said[-1]


def _first(text: str) -> str:
    return next((line.strip()[:500] for line in text.splitlines() if line.strip()), "")


def _texts(error: BaseException) -> list[str]:
    if not isinstance(error, Py4JJavaError):
        return [str(error)]
    found: list[str] = []
    java: Any = error.java_exception
    while java is not None and len(found) < _MOST_CAUSES:
        found.append(str(java.toString()))
        java = java.getCause()
    return found
