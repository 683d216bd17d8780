"""What the JVM logs, kept back while it ends what a person has cancelled.

Spark and Delta log a cancelled write as an error, with its trace of a hundred lines, and each of
its tasks as lost. Whoever pressed Ctrl-C is told in one line what became of the statement.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from pyspark.sql import SparkSession

from cachemgr.jvm.classes import class_on_path

_LOG4J: Final = "org.apache.logging.log4j"
_TASKS_END_SECONDS: Final = 30


class JvmLog:
    """The log of a session's JVM, by the level of its root.

    Args:
        spark: The session.
        clock: Monotonic seconds.
    """

    def __init__(self, spark: SparkSession, clock: Callable[[], float] = time.monotonic) -> None:
        self._jvm: Any = spark._jvm
        self._clock = clock
        self._level: Any = None  # what it was, while it is silent
        self._since = 0.0

    def fall_silent(self) -> None:
        """Let nothing be logged, until `speak`. Nothing happens where Spark logs by another library
        than its own."""
        self._since = self._clock()
        with suppress(Exception):
            if self._level is None:
                level = class_on_path(self._jvm, f"{_LOG4J}.LogManager").getRootLogger().getLevel()
                self._set(class_on_path(self._jvm, f"{_LOG4J}.Level").toLevel("OFF"))
                self._level = level

    def speak(self) -> None:
        """Log again as before, if the last cancelled statement is long enough ago: its tasks end
        after it, and Spark forgets at once that they run."""
        if self._level is not None and self._clock() - self._since > _TASKS_END_SECONDS:
            with suppress(Exception):
                self._set(self._level)
                self._level = None

    def _set(self, level: Any) -> None:
        # not SparkContext.setLogLevel, which would show what PySpark hides at any level
        class_on_path(self._jvm, f"{_LOG4J}.core.config.Configurator").setRootLevel(level)
