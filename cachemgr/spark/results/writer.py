"""Writes the rows of a query as a result: Parquet files of one job, and last the manifest.

A result of few rows is collected and written here, which saves Spark's job of a write. How many
there are is never found out by running the query: Spark's plan proves it, as it does where a hit's
rows were computed while it was planned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import groupby
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from cachemgr.jvm.loader import java_class
from cachemgr.results.folders import Folder
from cachemgr.results.manifest import Manifest, ResultColumn, ResultFile
from cachemgr.results.reader import batches_of
from cachemgr.results.types import is_nested, refuse_types
from cachemgr.spark.results.preview import first_rows

WRITING: Final = {
    # a file's rows as they were computed: see `cachemgr.delta.own_session`
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.fieldId.write.enabled": "false",
}
_FEW_ROWS: Final = 10_000
# Spark brings a LIMIT's rows together in one task.
_MOST_ROWS_OF_LIMIT: Final = 100_000
# A reader that begins in the middle of a row group decodes what stands before.
_GROUP_BYTES: Final = 16 << 20
# More files than that, smaller than this on the average, are written once more into fewer.
_MANY_FILES: Final = 200
_SMALL_BYTES: Final = 1 << 20
_MERGED_BYTES: Final = 64 << 20
_FOOTERS_AT_ONCE: Final = 8
# With Arrow's own schema a reader would make other types of it than of Spark's files.
_AS_SPARK_WRITES: Final = {
    "store_schema": False,
    "use_dictionary": False,
    "write_page_checksum": True,
}
_KEEPING_ORDER: Final = frozenset(
    {"Project", "SubqueryAlias", "View", "GlobalLimit", "LocalLimit", "Offset"}
)


def columns_of(frame: DataFrame) -> tuple[ResultColumn, ...]:
    """The columns of a query's result.

    Args:
        frame: The query.
    """
    fields = frame.schema.fields
    return tuple(ResultColumn(f.name, f.dataType.jsonValue(), f.nullable) for f in fields)


def is_ordered(frame: DataFrame) -> bool:
    """Whether a query says in which order its rows come.

    Args:
        frame: The query.
    """
    plan = frame._jdf.queryExecution().analyzed()
    while plan.nodeName() in _KEEPING_ORDER:
        plan = plan.children().head()
    return bool(plan.nodeName() == "Sort" and getattr(plan, "global")())


class ResultWriter:
    """Writes results in one application.

    Args:
        spark: The session of a query, with the settings `WRITING`.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def write(
        self, frame: DataFrame, folder: Folder, uri: str, *, most_rows: int | None
    ) -> Manifest:
        """Compute a query and write its rows.

        Args:
            frame: The query.
            folder: A folder that is empty.
            uri: The same, as Spark calls it.
            most_rows: How many rows are wanted; None for all.

        Returns:
            What was written, with the manifest.

        Raises:
            CacheManagerError: A column's type is held by no result.
            pyspark.errors.PySparkException: The query fails.
        """
        columns, ordered = columns_of(frame), is_ordered(frame)
        refuse_types(columns)
        if most_rows is not None and most_rows <= _MOST_ROWS_OF_LIMIT:
            frame = frame.limit(most_rows + 1)
        bound = frame._jdf.queryExecution().optimizedPlan().maxRows()
        if bound.isDefined() and bound.get() <= _FEW_ROWS and not is_nested(columns):
            files = [_collected(first_rows(self._spark, frame), folder)]
        else:
            files = self._written(frame, folder, uri)
            if len(files) > _MANY_FILES and sum(f.bytes for f in files) < _SMALL_BYTES * len(files):
                files = _merged(folder, files)
        manifest = Manifest(columns, tuple(files), ordered=ordered)
        if most_rows is not None and manifest.rows > most_rows:
            kept = _first_rows(folder, files, most_rows)
            manifest = replace(manifest, files=tuple(kept), truncated=True)
        folder.write_manifest(manifest)
        return manifest

    def _written(self, frame: DataFrame, folder: Folder, uri: str) -> list[ResultFile]:
        written = java_class(self._spark, "ResultFiles").write(frame._jdf, uri, _GROUP_BYTES)
        names = written.split("\n")
        with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
            files = list(pool.map(lambda name: _file(folder, name), names))
        # each task without rows may have left one
        filled = [file for file in files if file.rows]
        return filled or files[:1]


def _file(folder: Folder, name: str) -> ResultFile:
    with folder.open(name) as opened:
        footer = pq.ParquetFile(opened).metadata
        groups = tuple(footer.row_group(i).num_rows for i in range(footer.num_row_groups))
    return ResultFile(name, folder.size(name), groups)


def _collected(frame: DataFrame, folder: Folder) -> ResultFile:
    table = frame.toArrow()
    named = table.rename_columns([f"c{i}" for i in range(table.num_columns)])
    return _write(folder, "part-00000-c000.parquet", named.schema, named.to_batches())


def _write(
    folder: Folder, name: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> ResultFile:
    with (
        folder.create(name) as file,
        pq.ParquetWriter(file, schema, **_AS_SPARK_WRITES) as writer,
    ):
        for batch in batches:
            writer.write_batch(batch)
    return _file(folder, name)


def _merged(folder: Folder, files: Sequence[ResultFile]) -> list[ResultFile]:
    """Fewer files with the same rows in the same order, for those who download whole files."""
    merged: list[ResultFile] = []
    for number, some in enumerate(_portions(files)):
        name = f"part-{number:05d}-merged-c000.parquet"
        merged.append(_write(folder, name, _schema(folder, some[0]), batches_of(folder, some)))
    for file in files:
        folder.delete(file)
    return merged


def _portions(files: Sequence[ResultFile]) -> Iterator[list[ResultFile]]:
    begins = [0]
    for file in files:
        begins.append(begins[-1] + file.bytes)
    numbered = zip(begins, files, strict=False)
    for _, portion in groupby(numbered, lambda each: each[0] // _MERGED_BYTES):
        yield [file for _, file in portion]


def _first_rows(folder: Folder, files: Sequence[ResultFile], most: int) -> list[ResultFile]:
    """The files of the first rows; of the last of them only those that are wanted."""
    kept: list[ResultFile] = []
    left = most
    for file in files:
        if file.rows > left:
            name = f"part-{len(kept):05d}-cut-c000.parquet"
            first = _up_to(batches_of(folder, [file]), left)
            kept.append(_write(folder, name, _schema(folder, file), first))
            break
        kept.append(file)
        left -= file.rows
        if left == 0:
            break
    for file in files:
        if file not in kept:
            folder.delete(file)
    return kept


def _up_to(batches: Iterable[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.slice(0, most)
        most -= batch.num_rows
        if most <= 0:
            return


def _schema(folder: Folder, file: ResultFile) -> Any:
    with folder.open(file.name) as opened:
        return pq.ParquetFile(opened).schema_arrow
