"""Does the steps of a walk again and tells what came of each: what a failure's script calls."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.harness.fuzz_refresh.live import world
from tests.harness.fuzz_refresh.outcomes import Tally
from tests.harness.fuzz_refresh.steps import Walk
from tests.harness.fuzz_refresh.templates import Templates
from tests.spark_session import spark_session


def replay(walk: Walk) -> None:
    """Run a walk in a Spark of its own; exits 1 if a step shows a difference."""
    found = False
    with tempfile.TemporaryDirectory(prefix="fuzz-refresh-") as name, spark_session() as spark:
        with world(Templates(spark, Path(name)), walk, Tally()) as made:
            for step in walk.steps:
                done = made.do(step)
                told = "done" if done.applied else f"does not apply: {done.note}"
                if done.finding is not None:
                    found, told = True, f"DIFFERENCE, {done.finding.kind}: {done.finding.told}"
                sys.stdout.write(f"{step}\n    {told}\n")
    sys.exit(1 if found else 0)
