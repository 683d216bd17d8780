"""What the tests of results by files ask of a Thrift server: rows with and without files, and where
the files are."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.doors.spark_server import Server

ON: Final = "SET spark.cachemgr.results.toFiles=true"
# Of a stage, a task and the moment, and where in Spark an error was raised.
_NUMBERS: Final = re.compile(r"#\d+L?|\b(stage|task|TID|job|Task|Job) \d+(\.\d+)?|\(TID \d+\)")


@dataclass(frozen=True)
class Fetched:
    """What a client was given for a query.

    Args:
        columns: Names and types.
        rows: In their order.
        error: The first line of its error; empty for none.
        files: How many files held its rows.
    """

    columns: tuple[Any, ...]
    rows: tuple[tuple[Any, ...], ...]
    error: str
    files: int


def results_in(location: Path) -> list[Path]:
    """The files of results below a location.

    Args:
        location: As `spark.cachemgr.results.location` says.
    """
    return sorted(location.glob("relational-cache-results-*/*/*.parquet"))


def statements_in(location: Path) -> list[Path]:
    """The folders of statements below a location.

    Args:
        location: As `spark.cachemgr.results.location` says.
    """
    return [path for path in location.glob("relational-cache-results-*/*") if path.is_dir()]


def fetched(cursor: Any, query: str, location: Path) -> Fetched:
    """What a cursor is given for a query, whose files are counted before they go.

    Args:
        cursor: A cursor of PyHive.
        query: The query.
        location: Where files would be.
    """
    try:
        cursor.execute(query)
        files = len(results_in(location))
        columns = tuple((column[0], column[1]) for column in cursor.description or ())
        rows = tuple(cursor.fetchall()) if columns else ()
    except Exception as error:
        return Fetched((), (), first_line(error), len(results_in(location)))
    return Fetched(columns, rows, "", files)


def first_line(error: Exception) -> str:
    """What an error of a Thrift server says, without numbers that differ each time.

    Args:
        error: As PyHive raises it.
    """
    status = getattr(error.args[0], "status", None)
    told = str(status.errorMessage) if status else str(error)
    return _NUMBERS.sub("", told.split("\n")[0])


@contextmanager
def sessions(server: Server, *texts: str) -> Iterator[tuple[Any, Any]]:
    """Cursors of two sessions: one with files, and one without.

    Args:
        server: The server.
        texts: What both are told first.
    """
    with server.session() as files, server.session() as plain:
        for text in texts:
            files.execute(text)
            plain.execute(text)
        files.execute(ON)
        yield files, plain


def sorted_rows(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows in an order that does not depend on how they came.

    Args:
        rows: The rows.
    """
    return sorted(rows, key=repr)


def heap_mb(jvm: int) -> float:
    """What the JVM's heap holds once all garbage is gone, in MB.

    Args:
        jvm: Its process id.
    """
    subprocess.run(["jcmd", str(jvm), "GC.run"], check=True, capture_output=True, timeout=60)
    told = subprocess.run(
        ["jcmd", str(jvm), "GC.heap_info"],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout
    return sum(int(found) for found in re.findall(r"used (\d+)K", _without_classes(told))) / 1024


def _without_classes(told: str) -> str:
    return told.split("Metaspace")[0]


def rss_mb(jvm: int, key: str = "VmRSS") -> float:
    """What a process has of memory, in MB.

    Args:
        jvm: Its process id.
        key: VmHWM for the most so far.
    """
    return float(Path(f"/proc/{jvm}/status").read_text().split(f"{key}:")[1].split()[0]) / 1024
