"""`make layout`: does `cache layout` name the best of five layouts? For each of N workloads a cache
answers queries, is advised by their log, and is rebuilt in five layouts, over each of which the
queries' conditions run again: files and bytes that Spark opened, by its own metrics.

The layout that is named is right if it costs no more than 1.03 times the cheapest of the five; a
file counts as it does in the reckoning. The run fails if fewer than eight in ten are right.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from cachemgr.metastore.records import CacheRecord
from cachemgr.metastore.store import Metastore
from cachemgr.refresh.stored_values import stored_values
from cachemgr.spark import api
from cachemgr.statements.layout_advice import Advice, advise
from cachemgr.statements.layouts import NO_LAYOUT, OPEN_BYTES, WRITE_BYTES, Layout, Reckoned
from tests.harness.layout.workload import CACHE, Workload, workload
from tests.spark_session import compiled, spark_session
from tests.worlds.lab_star import Lab, make_lab

QUERIES: Final = 24
TIE: Final = 1.03
# Files of a few hundred kB, so that tables of some MB have as many as large ones have of 64 MB.
_SETTINGS: Final = {
    "spark.sql.shuffle.partitions": "64",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "512k",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
}


@dataclass(frozen=True)
class Run:
    """What a rebuilt layout cost a query, on average."""

    layout: Layout
    files: int
    files_opened: float
    bytes_opened: float

    def cost(self, refreshes_a_hit: float) -> float:
        """In the reckoning's terms."""
        opened = self.bytes_opened + self.files_opened * OPEN_BYTES
        return opened + refreshes_a_hit * self.files * WRITE_BYTES


@dataclass(frozen=True)
class Judged:
    """One workload: what was reckoned and what was measured, by layout, the best reckoned first."""

    advice: Advice
    runs: tuple[tuple[Reckoned, Run], ...]

    @property
    def is_right(self) -> bool:
        """Whether the one that is named is the cheapest that was measured, or as good."""
        costs = [run.cost(1 / QUERIES) for _, run in self.runs]
        return costs[0] <= TIE * min(costs)


def judge(spark: SparkSession, folder: Path, drawn: Workload) -> Judged:
    """Ask, be advised, rebuild and run.

    Args:
        spark: The application's session.
        folder: For tables, caches and the metastore.
        drawn: What to do.
    """
    labs = make_lab(spark, folder, f"sqlite:///{folder / 'metastore.db'}")
    lab = next(labs)
    try:
        lab.plain.sql(drawn.table)
        lab.cache(f"facts_cache AS {CACHE}")
        for condition in drawn.conditions:
            lab.sql(f"SELECT SUM(s) AS s, SUM(n) AS n FROM ({CACHE}) WHERE {condition}")
        api._of(lab.spark).session.feed.flush_log()
        with lab.metastore() as store:
            advice = advise(store, _cache(store), _look(spark))
            five = _five(advice)
            runs = {r.layout: _run(lab, store, r.layout, drawn.conditions) for r in five}
        return Judged(advice, tuple((r, runs[r.layout]) for r in five))
    finally:
        labs.close()


def _look(spark: SparkSession) -> Any:
    return lambda cache, published, columns: stored_values(spark, cache, published, columns)


def _cache(store: Metastore) -> CacheRecord:
    return next(c for c in store.caches.all() if c.name == "facts_cache")


def _five(advice: Advice) -> list[Reckoned]:
    """None, two of PARTITIONED BY and two of CLUSTER BY, or more of the one if there are fewer of
    the other: by the columns' use, not by what was reckoned."""
    used = list(advice.used or {})
    assert advice.layouts, advice.note

    def rank(layout: Layout) -> tuple[int, list[int]]:
        names = layout.partitioned_by or layout.cluster_by
        return len(names), [used.index(name) for name in names]

    others = [r for r in advice.layouts if r.layout != NO_LAYOUT]
    parts = sorted((r for r in others if r.layout.partitioned_by), key=lambda r: rank(r.layout))
    sorts = sorted((r for r in others if r.layout.cluster_by), key=lambda r: rank(r.layout))
    chosen = [*parts[:2], *sorts[:2], *parts[2:], *sorts[2:]][:4]
    found = [r for r in advice.layouts if r.layout == NO_LAYOUT or r in chosen]
    assert len(found) == 5, "a workload of too few columns"
    return found


def _run(lab: Lab, store: Metastore, layout: Layout, conditions: Sequence[str]) -> Run:
    clause = "" if layout == NO_LAYOUT else layout.clause
    lab.sql(f"CREATE OR REPLACE RELATIONAL CACHE facts_cache {clause} AS {CACHE}")
    lab.sql("REFRESH RELATIONAL CACHE facts_cache")
    place = _cache(store).location
    rows = lab.plain.read.format("delta").load(place)
    opened = [_opened(rows.where(condition).select("s", "n")) for condition in conditions[::2]]
    files, size = (sum(each) / len(opened) for each in zip(*opened, strict=True))
    return Run(layout, len(rows.inputFiles()), files, size)


def _opened(query: Any) -> tuple[int, int]:
    """Files and bytes that a query's scan opened, by its own metrics."""
    execution = query._jdf.queryExecution()
    execution.toRdd().count()
    scan = execution.executedPlan().collectLeaves().head()
    return tuple(scan.metrics().apply(name).value() for name in ("numFiles", "filesSize"))  # type: ignore[return-value]


def run(spark: SparkSession, seeds: Sequence[int], rows: int) -> list[Judged]:
    """Judge workloads.

    Args:
        spark: The application's session.
        seeds: Their numbers.
        rows: About how many rows each table has.
    """
    found = []
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            found.append(judge(spark, Path(folder), workload(seed, rows, QUERIES)))
    return found


def _tell(seed: int, judged: Judged) -> None:
    used = ", ".join(f"{name} {hits}" for name, hits in (judged.advice.used or {}).items())
    print(f"{seed} {'right' if judged.is_right else 'WRONG'} ({used})")
    for reckoned, measured in judged.runs:
        print(
            f"  {measured.layout.clause:32} files {reckoned.files:4}/{measured.files:4} "
            f"opened {reckoned.files_opened:6.1f}/{measured.files_opened:6.1f} "
            f"kB {reckoned.bytes_opened / 1e3:7.0f}/{measured.bytes_opened / 1e3:7.0f} "
            f"cost {reckoned.cost / 1e3:7.0f}/{measured.cost(1 / QUERIES) / 1e3:7.0f}",
            flush=True,
        )


def main() -> int:
    """Exit status 1 where fewer than eight in ten are right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1, help="of the first workload")
    parser.add_argument("--rows", type=int, default=200_000)
    asked = parser.parse_args()
    right = 0
    with spark_session(_SETTINGS) as application, compiled(application) as spark:
        for seed in range(asked.seed, asked.seed + asked.n):
            (judged,) = run(spark, [seed], asked.rows)
            _tell(seed, judged)
            right += judged.is_right
    print(f"{right} of {asked.n} right")
    return 0 if right >= 0.8 * asked.n else 1


if __name__ == "__main__":
    sys.exit(main())
