"""The sum over all base rows of each stored count: seen by the write that stores them, or asked of
the stored version.

Each set of a cube holds every row, so one of them tells.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from cachemgr.delta.commits import Commit
from cachemgr.delta.tables import TableRead, run_select
from matcher.model.ir import GROUPING_ID_COLUMN, CachePlan
from matcher.render.select import quote

_ROWS = "rows"
# Spark tells what it observed in the background, soon after the write.
_PATIENCE_SECONDS = 2.0


def _counts(plan: CachePlan) -> list[str]:
    return [m.name for m in plan.measures if m.agg.func == "count" and not m.agg.distinct]


class Watched:
    """Rows on their way to be written, whose counts are summed as they pass: no query is needed.

    Args:
        rows: All rows to write.
        plan: The cache.
        number: The grouping id of the set whose counts are summed, if it is a cube; the first one
            unless given.
    """

    def __init__(self, rows: DataFrame, plan: CachePlan, number: int | None = None) -> None:
        self._counts = _counts(plan)
        self._seen = Observation()
        self.rows = rows
        if self._counts:
            number = (
                plan.grouping_sets[0].grouping_id if plan.is_cube and number is None else number
            )
            sums = [_sum(plan, name, number).alias(f"c{i}") for i, name in enumerate(self._counts)]
            self.rows = rows.observe(self._seen, F.count(F.lit(1)).alias(_ROWS), *sums)

    def totals(self, commit: Commit) -> Mapping[str, int] | None:
        """What was seen; None where it is not known to be of just the rows that were written.

        Args:
            commit: What the write has put into the log.
        """
        if not self._counts:
            return {}
        found = self._found()
        # A part that was written twice, after a failure, would have been counted twice.
        if found is None or commit.rows is None or found.get(_ROWS) != commit.rows:
            return None
        return {name: int(found.get(f"c{i}") or 0) for i, name in enumerate(self._counts)}

    def _found(self) -> Mapping[str, Any] | None:
        """Not Python's `get`, which waits for ever if nothing comes."""
        seen: Any = self._seen._jo
        told = seen.future()
        end = time.monotonic() + _PATIENCE_SECONDS
        while not told.isCompleted():
            if time.monotonic() > end:
                return None
            time.sleep(0.005)
        if told.value().get().isFailure():
            return None
        return dict(
            seen.getAsJava()
        )  # what the future holds is a row in some Sparks, a map in others


def _sum(plan: CachePlan, name: str, number: int | None) -> Column:
    column = F.col(quote(name))
    if not plan.is_cube:
        return F.sum(column)
    of_one = F.col(GROUPING_ID_COLUMN) == F.lit(number)
    return F.sum(F.when(of_one, column))


def asked_totals(session: SparkSession, plan: CachePlan, written: TableRead) -> dict[str, int]:
    """The same, asked of a stored version.

    Args:
        session: A session of ours.
        plan: The cache, its sets with their sizes: the smallest is asked.
        written: The version.
    """
    counts = _counts(plan)
    if not counts:
        return {}
    items = ", ".join(f"COALESCE(SUM({quote(c)}), 0L)" for c in counts)
    text = f"SELECT {items} FROM __c"
    if plan.is_cube:
        smallest = min(plan.grouping_sets, key=lambda s: (s.rows is None, s.rows or 0))
        text += f" WHERE {quote(GROUPING_ID_COLUMN)} = {smallest.grouping_id}L"
    row = run_select(session, text, {"__c": written}).collect()[0]
    return {name: int(row[i]) for i, name in enumerate(counts)}
