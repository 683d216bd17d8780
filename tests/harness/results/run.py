"""`make fuzz-results`: random queries whose rows are written as results and read back, beside what
a session gives for them: names, types, rows, their order, pages of each size, and both formats.

What was done is kept by its seed: `--start S --n N`.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cachemgr.results.folders import Results
from cachemgr.results.formats import encoded
from cachemgr.results.kinds import ResultFormat
from cachemgr.results.positions import FIRST, Position
from cachemgr.results.reader import Result
from cachemgr.spark.results import writer as writing
from cachemgr.spark.results.writer import WRITING, ResultWriter, is_ordered
from tests.harness.results.cases import Case, drawn


class Session:
    """Where cases are tried.

    Args:
        spark: A session.
        folder: Where results go.
    """

    def __init__(self, spark: Any, folder: Path) -> None:
        self._spark = spark
        self._results = Results(str(folder))
        self._run = 0

    def wrong_of(self, case: Case) -> str:
        """What differs of a case; empty if nothing does."""
        session = self._spark.newSession()
        for key, value in {**case.settings, **WRITING}.items():
            session.conf.set(key, value)
        frame = session.sql(case.query)
        expected = [tuple(plain(v) for v in row) for row in frame.collect()]
        self._run += 1
        folder = self._results.make("s", self._run)
        try:
            ResultWriter(session).write(
                frame, folder, self._results.uri("s", self._run), most_rows=case.most_rows
            )
            return _wrong(case, frame, expected, Result.at(folder))
        finally:
            self._results.delete_run("s", self._run)


def _wrong(case: Case, frame: Any, expected: list[tuple[Any, ...]], result: Result) -> str:
    most = len(expected) if case.most_rows is None else case.most_rows
    rows = list(_rows(p.batch for p in result.pieces()))
    wrong = _wrong_rows(case, expected, rows, min(most, len(expected)))
    if wrong:
        return wrong
    if result.manifest.truncated != (len(expected) > most) or result.manifest.rows != len(rows):
        return f"truncated is {result.manifest.truncated}, rows {result.manifest.rows}"
    if result.manifest.ordered != is_ordered(frame):
        return f"ordered is {result.manifest.ordered}"
    if result.schema().names != frame.columns:
        return f"names are {result.schema().names} instead of {frame.columns}"
    if list(_paged(result, case.page_rows)) != rows:
        return f"pages of {case.page_rows} rows differ"
    for kind in ResultFormat:
        marked = ((p.batch, "") for p in result.pieces())
        content = b"".join(encoded(kind, result.schema(), marked))
        table = _decoded(kind, content)
        if list(_rows(table.to_batches())) != rows or table.schema.names != frame.columns:
            return f"as {kind} it differs"
    return ""


def _wrong_rows(
    case: Case, expected: list[tuple[Any, ...]], rows: list[tuple[Any, ...]], number: int
) -> str:
    if len(rows) != number:
        return f"{len(rows)} rows instead of {number}"
    if case.is_total:
        return "" if rows == expected[:number] else _first(expected, rows)
    strange = Counter(rows) - Counter(expected)
    if strange:
        return f"strange rows: {list(strange)[:3]}"
    if case.keys:
        keys = [row[: case.keys] for row in rows]
        if keys != [row[: case.keys] for row in expected[:number]]:
            return "the order of the keys differs"
    return ""


def _first(expected: list[tuple[Any, ...]], rows: list[tuple[Any, ...]]) -> str:
    at = next(n for n, (a, b) in enumerate(zip(expected, rows, strict=False)) if a != b)
    return f"row {at}: {rows[at]} instead of {expected[at]}"


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterable[tuple[Any, ...]]:
    for batch in batches:
        columns = [[plain(v) for v in column.to_pylist()] for column in batch.columns]
        yield from zip(*columns, strict=True)


def _paged(result: Result, size: int) -> Iterable[tuple[Any, ...]]:
    at: Position | None = FIRST
    while at is not None:
        pieces = list(result.pieces(at, size))
        yield from _rows(piece.batch for piece in pieces)
        at = pieces[-1].after if pieces else None


def _decoded(kind: ResultFormat, content: bytes) -> pa.Table:
    if kind is ResultFormat.ARROW:
        return pa.ipc.open_stream(content).read_all()
    return pq.ParquetFile(io.BytesIO(content)).read()


def plain(value: Any) -> Any:
    """A value as both sides have it, so that NaN and -0.0 are themselves; the entries of a
    map have no order that PySpark keeps.

    Args:
        value: Of a row of Spark, or of Arrow.
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float() | Decimal():
            return repr(value)
        case bytearray() | bytes():
            return bytes(value)
        case dict():
            return tuple(sorted((str(k), plain(v)) for k, v in value.items()))
        case tuple() if hasattr(value, "asDict"):
            return plain(value.asDict())
        case list() if value and isinstance(value[0], tuple) and not hasattr(value[0], "asDict"):
            return tuple(sorted((str(k), plain(v)) for k, v in value))  # a map of Arrow's
        case list() | tuple():
            return tuple(map(plain, value))
    if getattr(value, "tzinfo", None) is not None:
        value = value.replace(tzinfo=None)
    return str(value)


def run(spark: Any, folder: Path, seeds: Iterable[int], until: float) -> tuple[int, list[str]]:
    """Try cases; gives how many were, and what was wrong."""
    session, done, found = Session(spark, folder), 0, []
    writing._MANY_FILES = 12  # type: ignore[misc]
    for seed in seeds:
        if time.monotonic() > until:
            break
        case = drawn(Random(f"results {seed}"))
        wrong = session.wrong_of(case)
        if wrong:
            found.append(f"seed {seed}: {case}\n  {wrong}")
        done += 1
    return done, found


def main() -> int:
    """1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--n", type=int, default=1500)
    parser.add_argument("--minutes", type=float, default=60)
    chosen = parser.parse_args()
    # Spark's rows have times of this process's zone
    os.environ["TZ"] = "UTC"
    time.tzset()
    from tests.spark_session import spark_session

    seeds = range(chosen.start, chosen.start + chosen.n)
    with spark_session() as spark, tempfile.TemporaryDirectory() as folder:
        until = time.monotonic() + 60 * chosen.minutes
        done, found = run(spark, Path(folder), seeds, until)
    sys.stdout.write("\n".join([*found, f"{done} cases, {len(found)} wrong\n"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
