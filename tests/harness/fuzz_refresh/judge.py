"""Compares what two sessions say of one query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException

from tests.worlds.lab_star import exact

_MOST_SHOWN: Final = 6


@dataclass(frozen=True)
class Answer:
    """What came of a query: columns and rows, or the error.

    Args:
        columns: Names and types.
        rows: Rows in a form to compare, in the order in which they came.
        error: What was raised instead.
    """

    columns: tuple[tuple[str, str], ...] = ()
    rows: tuple[Any, ...] = ()
    error: Exception | None = None


def _collect(frame: Any) -> tuple[Any, ...]:
    return tuple(exact(row) for row in frame.collect())


def _count(frame: Any) -> tuple[Any, ...]:
    return (frame.count(),)


def _show(frame: Any) -> tuple[Any, ...]:
    return tuple(frame._show_string(100_000, False, False).splitlines())


ACTIONS: Final[dict[str, Callable[[Any], tuple[Any, ...]]]] = {
    "collect": _collect,
    "count": _count,
    "show": _show,
}


def answer(
    spark: Any, text: str, action: str = "collect", frames: list[Any] | None = None
) -> Answer:
    """Ask for a query's rows.

    Args:
        spark: The session.
        text: The query.
        action: By which action.
        frames: Takes the DataFrame that was asked.
    """
    try:
        frame = spark.sql(text)
        if frames is not None:
            frames.append(frame)
        columns = tuple((f.name, f.dataType.simpleString()) for f in frame.schema.fields)
        return Answer(columns, ACTIONS[action](frame))
    except Exception as error:
        return Answer(error=error)


def rows_answer(frame: Any) -> Answer:
    """The rows of a DataFrame, or why there are none."""
    try:
        columns = tuple((f.name, f.dataType.simpleString()) for f in frame.schema.fields)
        return Answer(columns, _collect(frame))
    except Exception as error:
        return Answer(error=error)


def difference(got: Answer, wanted: Answer, *, ordered: bool = False) -> str:
    """What is wrong with an answer; empty if nothing is.

    A query that raises without us may be answered where an intermediate value overflowed, and
    nowhere else: the generated queries have no other error that depends on rows.

    Args:
        got: What the session with caches said.
        wanted: What Spark says without them.
        ordered: Whether the order counts.
    """
    if wanted.error is not None:
        return _against_error(got, wanted.error)
    if got.error is not None:
        return f"raises {one_line(got.error)}"
    if got.columns != wanted.columns:
        return f"columns {got.columns} instead of {wanted.columns}"
    if ordered:
        return "" if got.rows == wanted.rows else _told(got.rows, wanted.rows, "in this order")
    same = Counter(got.rows) == Counter(wanted.rows)
    return "" if same else _told(got.rows, wanted.rows, "")


def _against_error(got: Answer, error: Exception) -> str:
    if got.error is None and isinstance(error, AnalysisException):
        return f"answers where Spark raises {one_line(error)}"
    if got.error is not None and not _is_sparks(got.error):
        return f"raises {one_line(got.error)} instead of {one_line(error)}"
    return ""


def _is_sparks(error: Exception) -> bool:
    """Whether Spark raised it on purpose; PySpark gives what a broadcast raises as Java's error."""
    if not isinstance(error, Py4JJavaError):
        return isinstance(error, PySparkException)
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    try:
        return cause.getCondition() is not None
    except Py4JError:  # no error of Spark's
        return False


def one_line(error: Exception) -> str:
    """An error's class and the beginning of its text."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}"


def _told(got: Sequence[Any], wanted: Sequence[Any], how: str) -> str:
    more = list((Counter(got) - Counter(wanted)).elements())
    less = list((Counter(wanted) - Counter(got)).elements())
    if not more and not less:
        more, less = list(got), list(wanted)
    lines = [f"{len(got)} rows, should be {len(wanted)} {how}".rstrip()]
    lines += [f"  has    {_row(r)}" for r in more[:_MOST_SHOWN]]
    lines += [f"  lacks  {_row(r)}" for r in less[:_MOST_SHOWN]]
    return "\n".join(lines)


def _row(row: Any) -> str:
    return str([text for _, text in row]) if isinstance(row, tuple) else str(row)
