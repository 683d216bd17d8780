"""A result as a stream of bytes: Arrow's IPC stream, or one Parquet file, made while it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from cachemgr.results.kinds import ResultFormat

# Rows, and from where the next ones are read; empty at the end.
Marked = tuple[pa.RecordBatch, str]
MARK: Final = "next"
# twice as much would take twice the memory while it is written, most of it for dictionaries
_GROUP_BYTES: Final = 4 << 20


class _Taken:
    """A file of which what was written is taken away, a piece at a time."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._at = 0
        self.closed = False

    def write(self, data: Any) -> int:
        piece = bytes(data)
        self._pieces.append(piece)
        self._at += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._at

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True

    def taken(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


def encoded(kind: ResultFormat, schema: pa.Schema, marked: Iterable[Marked]) -> Iterator[bytes]:
    """Rows as bytes, as many at a time as come at once.

    Args:
        kind: As what.
        schema: Of the rows.
        marked: The rows; the marks go into an Arrow stream, as metadata of its batches.
    """
    return _ENCODERS[kind](schema, marked)


def _arrow(schema: pa.Schema, marked: Iterable[Marked]) -> Iterator[bytes]:
    file = _Taken()
    with pa.ipc.new_stream(file, schema) as writer:
        for batch, mark in marked:
            writer.write_batch(batch, custom_metadata={MARK: mark} if mark else None)
            yield file.taken()
    yield file.taken()


def _parquet(schema: pa.Schema, marked: Iterable[Marked]) -> Iterator[bytes]:
    file = _Taken()
    with pq.ParquetWriter(file, schema) as writer:
        for table in _portions(schema, (batch for batch, _ in marked)):
            writer.write_table(table)
            yield file.taken()
    yield file.taken()


def _portions(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    some: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        some.append(batch)
        size += batch.nbytes
        if size >= _GROUP_BYTES:
            yield pa.Table.from_batches(some, schema)
            some, size = [], 0
    if some:
        yield pa.Table.from_batches(some, schema)


_Encoder = Callable[[pa.Schema, Iterable[Marked]], Iterator[bytes]]
_ENCODERS: Final[dict[ResultFormat, _Encoder]] = {
    ResultFormat.ARROW: _arrow,
    ResultFormat.PARQUET: _parquet,
}
