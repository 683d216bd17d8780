"""Reads a result piece by piece, in memory that does not grow with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from cachemgr.results.manifest import MANIFEST, Manifest, ResultFile, damaged
from cachemgr.results.positions import FIRST, Position
from cachemgr.results.types import as_told, told_schema

# Without these two pyarrow holds a whole row group before it gives a row of it.
_BUFFER_BYTES: Final = 1 << 20
_BATCH_BYTES: Final = 1 << 20
_MOST: Final = 65_536
# what a value takes at least, though the file has next to nothing of it
_VALUE_BYTES: Final = 8


class ResultFolder(Protocol):
    """Where the files of a result are."""

    def open(self, name: str) -> pa.NativeFile:
        """A file of it, to be read at any place; raises OSError."""
        ...


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows of a result.

    Args:
        batch: The rows.
        after: Where the next ones begin; None at the end of the result.
    """

    batch: pa.RecordBatch
    after: Position | None


class Result:
    """A result that is written whole.

    Args:
        folder: Where its files are.
        manifest: What they are.
    """

    def __init__(self, folder: ResultFolder, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest

    @classmethod
    def at(cls, folder: ResultFolder) -> Result:
        """The result in a folder.

        Args:
            folder: The folder.

        Raises:
            CacheManagerError: There is none, or it is not what was written.
        """
        try:
            with folder.open(MANIFEST) as file:
                text = file.read().decode("utf-8", "replace")
        except OSError as error:
            raise damaged(f"its manifest is not there ({error.strerror or error})") from None
        return cls(folder, Manifest.from_json(text))

    @classmethod
    def without_rows(cls, folder: ResultFolder) -> Result:
        """The result of a statement that gives no rows, of which there are no files.

        Args:
            folder: Where they would be.
        """
        return cls(folder, Manifest((), ()))

    def schema(self) -> pa.Schema:
        """The schema of its rows.

        Raises:
            CacheManagerError: A file is not what was written.
        """
        if not self.manifest.files:
            return pa.schema([])
        with _opened(self.folder, self.manifest.files[0]) as file:
            return told_schema(file.schema_arrow, self.manifest.columns)

    def pieces(self, start: Position = FIRST, most_rows: int | None = None) -> Iterator[Piece]:
        """Its rows in their order, a batch of about a megabyte at a time.

        Args:
            start: Where to begin.
            most_rows: End after so many; None for no bound.

        Raises:
            CacheManagerError: A file is not what was written, or `start` is no row of it.
        """
        left = most_rows
        for at, read in self._from(start):
            batch = read if left is None else read.slice(0, left)
            yield Piece(batch, self._next(Position(at.file, at.group, at.row + batch.num_rows)))
            if left is not None:
                left -= batch.num_rows
                if left == 0:
                    return

    def _from(self, start: Position) -> Iterator[tuple[Position, pa.RecordBatch]]:
        """Batches, each with the place of its first row."""
        for number in range(start.file, len(self.manifest.files)):
            with _opened(self.folder, self.manifest.files[number]) as file:
                yield from self._of_file(file, number, start)
            start = Position(number + 1)

    def _of_file(
        self, file: pq.ParquetFile, number: int, start: Position
    ) -> Iterator[tuple[Position, pa.RecordBatch]]:
        stored = self.manifest.files[number]
        for group in range(start.group, len(stored.groups)):
            done = 0
            for read in _batches(file, stored, group):
                skipped = max(0, min(read.num_rows, start.row - done))
                if skipped < read.num_rows:
                    batch = as_told(read.slice(skipped), self.manifest.columns)
                    yield Position(number, group, done + skipped), batch
                done += read.num_rows
            if done != stored.groups[group]:
                raise damaged(f"{stored.name} has another number of rows")
            start = Position(number, group + 1)

    def _next(self, at: Position) -> Position | None:
        """The row at a place, or the first one after it."""
        files = self.manifest.files
        while at.file < len(files):
            groups = files[at.file].groups
            if at.group >= len(groups):
                at = Position(at.file + 1)
            elif at.row >= groups[at.group]:
                at = Position(at.file, at.group + 1)
            else:
                return at
        return None


def batches_of(folder: ResultFolder, files: Sequence[ResultFile]) -> Iterator[pa.RecordBatch]:
    """The rows of some files as they are stored, one file after the other.

    Args:
        folder: Where they are.
        files: The files.

    Raises:
        CacheManagerError: One of them is not what was written.
    """
    for stored in files:
        with _opened(folder, stored) as file:
            for group in range(len(stored.groups)):
                yield from _batches(file, stored, group)


def _batches(file: pq.ParquetFile, stored: ResultFile, group: int) -> Iterator[pa.RecordBatch]:
    # the writer makes no dictionaries, so that a row group has about the size that it has here
    footer = file.metadata.row_group(group)
    a_row = footer.total_byte_size / max(1, footer.num_rows) + _VALUE_BYTES * footer.num_columns
    size = int(max(1, min(_MOST, _BATCH_BYTES / a_row)))
    try:
        yield from file.iter_batches(size, row_groups=[group])
    except (OSError, pa.ArrowException) as error:
        raise damaged(f"{stored.name} cannot be read ({str(error)[:200]})") from None


@contextmanager
def _opened(folder: ResultFolder, stored: ResultFile) -> Iterator[pq.ParquetFile]:
    with ExitStack() as stack:
        try:
            opened = stack.enter_context(folder.open(stored.name))
            file = pq.ParquetFile(
                opened,
                pre_buffer=False,
                buffer_size=_BUFFER_BYTES,
                # each page has one, by Spark's writer and by ours
                page_checksum_verification=True,
            )
        except (OSError, pa.ArrowException) as error:
            raise damaged(f"{stored.name} cannot be opened ({str(error)[:200]})") from None
        groups = tuple(file.metadata.row_group(i).num_rows for i in range(file.num_row_groups))
        if groups != stored.groups:
            raise damaged(f"{stored.name} is another file than was written")
        yield file
