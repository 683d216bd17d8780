"""Spark's errors as ours: a code and one line."""

from __future__ import annotations

import logging
from typing import Final

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger

from cachemgr.causes import cause_of

_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
# Of a connection that Ctrl-C has cut off in the middle of an answer.
_MOST_CAUSES: Final = 20
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


def innermost_code_and_line(error: Py4JJavaError) -> tuple[str, str]:
    """The same of an error that PySpark does not know, by the innermost of its causes that has a
    condition of Spark's.

    Args:
        error: The error.

    Returns:
        `SPARK_FAILED`, and what the innermost cause says, where none has one.
    """
    found, java = None, error.java_exception
    context = SparkContext._active_spark_context
    for _ in range(_MOST_CAUSES):
        if java is None or context is None:
            break
        if is_instance_of(context._gateway, java, "org.apache.spark.SparkThrowable"):
            found = java if java.getCondition() is not None else found
        java = java.getCause()
    if found is None:
        return "SPARK_FAILED", cause_of(error)
    code = str(found.getCondition())
    first = (str(found.getMessage() or "").strip() or code).splitlines()[0]
    return code, first.removeprefix(f"[{code}]").lstrip()


def without_traces() -> None:
    """Keep PySpark from writing each failed statement to stderr, as JSON with a stack trace and its
    text, and py4j each that Ctrl-C ended: whoever sent it is told, and logs hold no SQL."""
    for name in _LOGGERS:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_no_interrupt)
    logging.getLogger(_CONNECTIONS).setLevel(logging.CRITICAL)


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith("KeyboardInterrupt while sending command")
