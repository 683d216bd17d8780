"""What the demo says while it works: steps with the time left, and a bar for Spark jobs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

_POLL_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the demo.

    Args:
        title: What it does.
        seconds: How long it is expected to take.
    """

    title: str
    seconds: float


@dataclass
class Steps:
    """Announces each step with the time left, corrected by how fast this machine was so far.

    Args:
        console: Where to print.
        plan: The steps, in order.
    """

    console: Console
    plan: Sequence[Step]
    _done: float = 0.0
    _spent: float = 0.0
    _number: int = 0
    timings: list[tuple[str, float]] = field(default_factory=list)

    @contextmanager
    def step(self) -> Iterator[None]:
        """Announces the next step, and says how long it took when it is done.

        Yields:
            Nothing; the step runs inside.
        """
        step = self.plan[self._number]
        self._number += 1
        self.console.print(
            f"\n[bold cyan]Step {self._number} of {len(self.plan)}[/] [bold]{step.title}[/]  "
            f"[dim](about {duration(self.left())} left)[/]"
        )
        started = time.perf_counter()
        yield
        seconds = time.perf_counter() - started
        self._done += step.seconds
        self._spent += seconds
        self.timings.append((step.title, seconds))
        self.console.print(f"  [green]done[/] in {duration(seconds)}")

    def left(self) -> float:
        """Seconds that the steps from here on are expected to take.

        Returns:
            The estimate.
        """
        planned = sum(step.seconds for step in self.plan[self._number - 1 :])
        # A short first step says little of the machine: its pace counts by its share.
        total = sum(step.seconds for step in self.plan)
        trust = self._done / total if total else 0.0
        pace = self._spent / self._done if self._done else 1.0
        return planned * (1 - trust + trust * pace)


def duration(seconds: float) -> str:
    """A duration as people say it.

    Args:
        seconds: How long.

    Returns:
        Text such as `3 min 05 s` or `0.8 s`.
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


@contextmanager
def job_bar(spark: SparkSession, console: Console, label: str) -> Iterator[None]:
    """A bar that follows the tasks of the Spark jobs that run inside.

    Args:
        spark: The session whose jobs are followed.
        console: Where to draw; nothing moves when it is no terminal.
        label: What is being done.

    Yields:
        Nothing; the jobs run inside.
    """
    columns = (TextColumn("  {task.description:<28}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(label, total=1.0)
        stop = threading.Event()
        args = (spark, bar, task, stop)
        watcher = threading.Thread(target=_follow, args=args, daemon=True)
        watcher.start()
        try:
            yield
            bar.update(task, completed=1.0)
        finally:
            stop.set()
            watcher.join()


def _follow(spark: SparkSession, bar: Progress, task: TaskID, stop: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    best = 0.0
    while not stop.wait(_POLL_SECONDS):
        for stage in tracker.getActiveStageIds():
            info = tracker.getStageInfo(stage)
            if info is not None and info.numTasks:
                # Tasks that run count half: with few large files the bar would stand still.
                done = info.numCompletedTasks + 0.5 * info.numActiveTasks
                best = max(best, 0.98 * done / info.numTasks)
        bar.update(task, completed=best)
