"""The base tables of a full refresh, read with as few jobs as may be, and in even shares.

Delta looks up the files of a table by several jobs for each query. Those of a table of few files
are listed once instead, which tells their rows too: how many there are, and whether one file, which
one task reads, holds most of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cachemgr.delta.log import size_in_bytes
from cachemgr.delta.tables import TableRead, run_select
from cachemgr.refresh.file_stats import files_listed, of_few_files
from matcher.render.placeholders import TABLE, tables_of
from matcher.render.select import quote

# A file of this many times a core's share keeps one core at work when the others are done.
UNEVEN: Final = 1.5
# Several, since a core that groups a part fills a hash table: the smaller, the faster.
PARTS_OF_A_CORE: Final = 4
# What Spark gives one task to read (`spark.sql.files.maxPartitionBytes`), unless that is set.
BYTES_OF_A_TASK: Final = 128 * 1024**2


@dataclass(frozen=True)
class Base:
    """What the relations of a plan read.

    Args:
        relations: A Delta table at a version, or a plan of the JVM that reads one, by the name that
            stands for it in the texts.
        largest: The name of the one with the most bytes.
        bytes: Those that it has.
        rows: The rows of the largest, deleted ones among them; None where the log does not say.
        is_uneven: Whether one file of the largest holds much more than a core's share.
    """

    relations: Mapping[str, object]
    largest: str
    bytes: int
    rows: int | None
    is_uneven: bool

    def count(self, session: SparkSession) -> int:
        """The rows of the largest, by a job where the log does not say."""
        if self.rows is not None:
            return self.rows
        counted = run_select(
            session, f"SELECT COUNT(*) FROM {TABLE}", {TABLE: self.relations[self.largest]}
        )
        return int(counted.collect()[0][0])

    def tasks(self, cores: int) -> int:
        """How many tasks read the largest, about.

        Args:
            cores: How many tasks run at once.
        """
        return max(cores, self.bytes // BYTES_OF_A_TASK + 1)

    def dealt_out(self, session: SparkSession, column: str | None) -> Mapping[str, object]:
        """The relations, the largest dealt out to all cores.

        Args:
            session: Any session.
            column: A column of the largest, by whose hash; None for by turns.
        """
        rows = run_select(session, f"SELECT * FROM {TABLE}", {TABLE: self.relations[self.largest]})
        return {**self.relations, self.largest: deal_out(session, rows, column)}


def deal_out(session: SparkSession, rows: DataFrame, column: str | None = None) -> DataFrame:
    """Rows in parts for all cores.

    Args:
        session: Any session.
        rows: The rows.
        column: By the hash of this one; None for by turns.
    """
    by = () if column is None else (F.col(quote(column)),)
    return rows.repartition(PARTS_OF_A_CORE * cores(session), *by)


def base_of(session: SparkSession, reads: Sequence[TableRead]) -> Base:
    """The base tables of a full refresh.

    Args:
        session: A session of ours.
        reads: What each of the plan's relations reads, in its order.
    """
    relations: dict[str, Any] = {}
    rows: dict[str, list[int | None]] = {}
    sizes: dict[str, int] = {}
    for name, table in zip(tables_of(len(reads)), reads, strict=True):
        files = files_listed(session, table)
        if files is None:
            relations[name] = table
            sizes[name] = size_in_bytes(session, table.location)
            continue
        relations[name] = of_few_files(session, table)
        sizes[name] = sum(file.bytes for file in files)
        rows[name] = [file.rows for file in files]
    largest = max(sizes, key=lambda name: sizes[name])
    told = [n for n in rows.get(largest, ()) if n is not None]
    if largest not in rows or len(told) < len(rows[largest]):
        return Base(relations, largest, sizes[largest], None, is_uneven=False)
    uneven = max(told, default=0) * cores(session) > UNEVEN * sum(told)
    return Base(relations, largest, sizes[largest], sum(told), uneven)


def cores(session: SparkSession) -> int:
    """How many tasks run at once."""
    return session.sparkContext.defaultParallelism
