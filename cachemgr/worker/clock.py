"""What a process does again and again. APScheduler is only the clock: a look that takes long is not
run twice at once, and looks that were missed count as one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from apscheduler.schedulers.background import BackgroundScheduler

from cachemgr.errors import CacheManagerError, ErrorCode
from cachemgr.telemetry import Telemetry


class Clock:
    """Jobs that are run every so often, each in its own time.

    Args:
        telemetry: Where trouble is counted and logged.
    """

    def __init__(self, telemetry: Telemetry | None = None) -> None:
        self._telemetry = telemetry or Telemetry()
        self._clock: Any = BackgroundScheduler(
            timezone="UTC",
            job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 1},
        )

    def every(self, seconds: float, name: str, job: Callable[[], object]) -> None:
        """Run a job so often.

        Args:
            seconds: From one run's beginning to the next.
            name: Of the job, for messages.
            job: What to do.
        """
        guarded = partial(self.run, name, job)
        self._clock.add_job(guarded, "interval", seconds=seconds, id=name)

    def start(self) -> None:
        """Begin, in the background."""
        self._clock.start()

    def stop(self) -> None:
        """Begin nothing more, and wait for what runs."""
        self._clock.shutdown(wait=True)

    def run(self, name: str, job: Callable[[], object]) -> None:
        """Run a job now; whatever goes wrong is counted, and logged once.

        Args:
            name: Of the job, for messages.
            job: What to do.
        """
        try:
            job()
        except Exception as error:  # the next run must come, whatever became of this one
            self._telemetry.count(f"{name}_errors")
            if isinstance(error, CacheManagerError) and error.code == ErrorCode.SPARK_NOT_STARTED:
                return  # whoever tried to start it has said so, and when it is tried again
            self._telemetry.warn_once(
                f"{name} {type(error).__name__} {error}", f"the {name} job failed: {error}"
            )
