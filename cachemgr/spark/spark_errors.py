"""Spark's errors as ours: a code and one line."""

from __future__ import annotations

import logging
from typing import Final

from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger

_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
# Of a connection that Ctrl-C has cut off in the middle of an answer.
_CONNECTIONS: Final = "py4j.clientserver"


def code_and_line(error: PySparkException) -> tuple[str, str]:
    """An error's condition, and the first line of its message without that, and what was noted.

    Args:
        error: The error.

    Returns:
        `SPARK_FAILED` for the condition where Spark names none.
    """
    first = (str(error).strip() or type(error).__name__).splitlines()[0]
    code = error.getCondition()
    line = first.removeprefix(f"[{code}]").lstrip()
    return code or "SPARK_FAILED", "; ".join((line, *getattr(error, "__notes__", ())))


def without_traces() -> None:
    """Keep PySpark from writing each failed statement to stderr, as JSON with a stack trace and its
    text, and py4j each that Ctrl-C ended: whoever sent it is told, and logs hold no SQL."""
    for name in _LOGGERS:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_no_interrupt)
    logging.getLogger(_CONNECTIONS).setLevel(logging.CRITICAL)


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith("KeyboardInterrupt while sending command")
