"""Work that Ctrl-C can cancel.

A thread talks to the JVM over one connection. Were the main thread in the middle of a call, the
cancellation would wait behind it, and the next call would read its answer. So the work is done in a
thread of its own, and the main one waits.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

from pyspark.sql import SparkSession

_CANCEL_SECONDS = 0.3
_Result = TypeVar("_Result")


class Cancellable:
    """Does one piece of work after the other in a thread of its own.

    Args:
        spark: Whose jobs are cancelled.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._thread = ThreadPoolExecutor(1)

    def run(
        self, work: Callable[[], _Result], cancelled: Callable[[], object] = lambda: None
    ) -> _Result:
        """Do some work. Called in the main thread.

        Args:
            work: What to do.
            cancelled: Called once Ctrl-C was pressed, before each attempt to cancel the jobs.

        Raises:
            KeyboardInterrupt: It was cancelled by Ctrl-C, and has ended.
        """
        running = self._thread.submit(work)
        is_cancelled = False
        while not running.done():
            try:  # which a further Ctrl-C does not get out of either
                if is_cancelled:
                    cancelled()
                    # again and again, since it may only have been planned until now
                    self._spark.sparkContext.cancelAllJobs()
                wait([running], _CANCEL_SECONDS if is_cancelled else None)
            except KeyboardInterrupt:
                is_cancelled = True
        if is_cancelled:
            raise KeyboardInterrupt
        return running.result()
