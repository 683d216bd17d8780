"""What a query opened and ran, by Spark's own count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from pyspark.sql import DataFrame

ONE_FILE_A_TASK: Final = ("spark.sql.files.maxPartitionBytes", "4194304")
_numbers = count()


@dataclass(frozen=True, slots=True)
class Read:
    """An answer, and what it cost.

    Attributes:
        rows: What the query was asked for.
        files: Files that its scans of a table opened.
        tasks: Tasks that ran, those over Delta's log left out.
    """

    rows: Any
    files: int
    tasks: int


def read(
    frame: DataFrame,
    ask: Callable[[DataFrame], Any] = DataFrame.collect,
    but: tuple[str, ...] = (),
) -> Read:
    """Ask a query for its rows.

    Args:
        frame: The query.
        ask: How, as `DataFrame.collect` or `DataFrame.isEmpty`.
        but: How the folders of tables end whose files do not count.
    """
    context: Any = frame.sparkSession.sparkContext
    plan: Any = frame._jdf.queryExecution().executedPlan()  # Delta's own jobs are for this
    group = f"read{next(_numbers)}"
    context.setJobGroup(group, group)
    try:
        rows = ask(frame)
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
        context.setLocalProperty("spark.job.description", None)
    files = sum(
        scan.metrics().apply("numFiles").value()
        for scan in scans(plan)
        if not _place(scan).endswith(but)
    )
    return Read(rows, int(files), _tasks(context, group))


def iterated(frame: DataFrame) -> list[Any]:
    """The rows as Python's iterator over partitions gives them.

    Args:
        frame: The query.
    """
    return list(frame.toLocalIterator())


def scans(plan: Any) -> list[Any]:
    """The scans of files in a plan that has run, those of subqueries among them.

    Args:
        plan: A physical plan.
    """
    name = plan.getClass().getSimpleName()
    if name == "AdaptiveSparkPlanExec":
        return scans(plan.executedPlan())
    if name.endswith("QueryStageExec"):
        return scans(plan.plan())
    if name == "ReusedExchangeExec":
        return []
    found = [plan] if name == "FileSourceScanExec" else []
    for below in (plan.children(), plan.subqueries()):
        found += [scan for n in range(below.size()) for scan in scans(below.apply(n))]
    return found


def _place(scan: Any) -> str:
    return str(scan.relation().location().rootPaths().head().toString())


def _tasks(context: Any, group: str) -> int:
    context._jsc.sc().listenerBus().waitUntilEmpty()  # by which tasks are counted
    store = context._jsc.sc().statusStore()
    tracker = context.statusTracker()
    ran: Counter[int] = Counter()
    for number in tracker.getJobIdsForGroup(group):
        described = store.job(number).description()
        if described.isDefined() and described.get().startswith("Delta"):
            continue
        for stage in tracker.getJobInfo(number).stageIds:
            told = tracker.getStageInfo(stage)
            ran[stage] = told.numCompletedTasks if told else 0
    return ran.total()


def is_part(rows: list[Any], whole: list[Any]) -> bool:
    """Whether rows are among others, each as often at most.

    Args:
        rows: Some.
        whole: The others.
    """
    return not Counter(map(_exact, rows)) - Counter(map(_exact, whole))


def _exact(row: Any) -> tuple[str, ...]:
    return tuple(map(repr, row))
