"""Refreshes of little data: one task reads, joins and groups all of it.

Each exchange between tasks is a job of its own under adaptive execution, and so is each table that
is sent round for a join. Over a few megabytes they cost more than they save, and one task needs
none.

Not for what depends on the order in which rows are added up, such as a SUM of DOUBLE: the stored
value is to be the one that Spark's own query gives, which adds by its tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from cachemgr.delta.tables import TableRead, run_select
from cachemgr.refresh.by_change.incremental import Delta
from cachemgr.refresh.file_stats import ListedFile, bounds_listed, files_listed, of_few_files
from matcher.model.expr import Agg, Col, Expr, columns
from matcher.model.integer_bounds import Bounds, is_exact
from matcher.model.ir import CachePlan, reads_groups
from matcher.model.types import INTEGRAL, is_blurred
from matcher.render.placeholders import TABLE

# All base tables together, as stored; rows of one value take next to no bytes.
SMALL_BYTES: Final = 2 << 20
SMALL_ROWS: Final = 100_000
# Their value is the same in whatever order rows come.
_UNORDERED: Final = frozenset(
    "count sum try_sum avg try_avg min max bit_and bit_or bit_xor bool_and bool_or".split()
)
# None of them can change a row.
_SETTINGS: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "1",
}


def is_small(session: SparkSession, tables: Iterable[TableRead]) -> bool:
    """Whether the tables are so little that one task is enough. A size that the log does not tell
    counts as large.

    Args:
        session: A session of ours.
        tables: The tables.
    """
    return _few(session, tables) is not None


def suits_one_task(session: SparkSession, plan: CachePlan, reads: Sequence[TableRead]) -> bool:
    """Whether one task is enough for a cache, and gives what more of them would.

    Args:
        session: A session of ours.
        plan: The cache.
        reads: What each of its relations reads.
    """
    files = _few(session, reads)
    return files is not None and not depends_on_order(plan, files)


def delta_suits_one_task(
    session: SparkSession, plan: CachePlan, reads: Sequence[TableRead], delta: Delta
) -> bool:
    """The same of a refresh that adds a delta. Of what is stored it reads the sets that are written
    anew, which are small or as large as the delta.

    Args:
        session: A session of ours.
        plan: The cache.
        reads: What each of its relations reads.
        delta: What changed of one of them.
    """
    rows, changes = delta.changes.rows_added, delta.changes
    size = changes.bytes_added + changes.bytes_removed
    if rows is None or rows > SMALL_ROWS or size + delta.rewritten_bytes > SMALL_BYTES:
        return False
    grown = delta.table.location
    others = [r for r, relation in zip(reads, plan.tables, strict=True) if relation.key != grown]
    return _few(session, others) is not None


def _few(session: SparkSession, tables: Iterable[TableRead]) -> list[tuple[ListedFile, ...]] | None:
    """The files of each table; None where they are too many, too long, or not known."""
    found: list[tuple[ListedFile, ...]] = []
    for table in tables:
        files = files_listed(session, table, SMALL_BYTES)
        if files is None or any(file.rows is None for file in files):
            return None
        found.append(files)
    size = sum(file.bytes for files in found for file in files)
    rows = sum(file.rows or 0 for files in found for file in files)
    return found if size <= SMALL_BYTES and rows <= SMALL_ROWS else None


def depends_on_order(plan: CachePlan, files: Sequence[Sequence[ListedFile]]) -> bool:
    """Whether some stored value may be another one if rows come in another order.

    Args:
        plan: The cache.
        files: Those of each of its base tables.
    """
    if reads_groups(plan):  # of which no file tells what they are
        return True
    return any(_is_ordered(measure.agg, files) for measure in plan.measures)


def _is_ordered(agg: Agg, files: Sequence[Sequence[ListedFile]]) -> bool:
    if agg.func not in _UNORDERED or any(is_blurred(arg.type) for arg in agg.args):
        return True
    # an average of whole numbers is added up in DOUBLE
    averaged = agg.func in ("avg", "try_avg") and agg.args[0].type in INTEGRAL
    return averaged and not _adds_exactly(agg.args[0], files)


def _adds_exactly(arg: Expr, files: Sequence[Sequence[ListedFile]]) -> bool:
    """`is_exact` of an average's argument, whatever the joins multiply."""
    known: dict[Col, Bounds] = {}
    for column in columns(arg):
        found = bounds_listed(files[column.rel], [column.name])
        if found is None:
            return False
        known[column] = found[column.name]
    return is_exact(arg, known, prod(sum(file.rows or 0 for file in of_one) for of_one in files))


def plan_for_one_task(session: SparkSession) -> None:
    """Have a session of ours plan without exchanges where it can.

    Args:
        session: The session.
    """
    for key, value in _SETTINGS.items():
        session.conf.set(key, value)


def in_one_task(session: SparkSession, table: TableRead) -> DataFrame:
    """A table's rows as one partition, so that nothing above has to bring them together.

    Args:
        session: A session of ours.
        table: The table.
    """
    plan = of_few_files(session, table)
    return run_select(session, f"SELECT * FROM {TABLE}", {TABLE: plan}).coalesce(1)
