"""Where the Spark of a process is, in the words of `/readyz`; no Spark is needed to say it."""

from __future__ import annotations

from typing import Literal

SparkState = Literal["notStarted", "starting", "running", "failed", "ended"]
