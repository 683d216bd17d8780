"""`make fuzz-refresh MINUTES=…`: random walks through changes, refreshes and queries, each judged.

Exit code 1 if a difference was found, with the shortest walk that shows it as a script. Everything
follows from the seed: `--seed S --worlds 1` walks the first world of a run again.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tests.harness.fuzz_refresh import ledger
from tests.harness.fuzz_refresh.bugs import BUGS, NotPlantable, planted
from tests.harness.fuzz_refresh.live import world
from tests.harness.fuzz_refresh.outcomes import Finding, Tally
from tests.harness.fuzz_refresh.shapes import SHAPES
from tests.harness.fuzz_refresh.shrink import shrink
from tests.harness.fuzz_refresh.steps import Change, Manner, Step, Walk, script
from tests.harness.fuzz_refresh.templates import Templates
from tests.harness.fuzz_refresh.walk import Walker, beginning
from tests.processes import ROOT, exit_on_sigterm
from tests.spark_session import spark_session

# More worlds show more than longer ones do.
STEPS: Final = 60
# Most of a run is Spark planning queries over a dozen rows: to optimise that code well takes more
# of the processor than it saves.
_JVM: Final = "-XX:TieredStopAtLevel=1"


@dataclass(frozen=True)
class Options:
    """How to walk.

    Args:
        seed: Of all that is random.
        minutes: When no further step is taken.
        worlds: The most worlds; None for as many as the time allows.
        first: The number of the first world.
        steps: The most steps of a world.
        shrink_seconds: How long to shorten a failure.
        findings: After how many differences to stop.
        manner: How the steps of all worlds are drawn; None for each manner in turn.
        among: Shapes of which each world has one, where it can.
    """

    seed: int
    minutes: float
    worlds: int | None = None
    first: int = 0
    steps: int = STEPS
    shrink_seconds: float = 150
    findings: int = 1
    manner: Manner | None = None
    among: tuple[str, ...] = ()


@dataclass
class Run:
    """What a run did.

    Args:
        tally: Counts of its worlds.
        changes: Steps by kind.
        layouts: Worlds by layout.
        found: For each difference, what is wrong and a script.
    """

    tally: Tally = field(default_factory=Tally)
    changes: Counter[str] = field(default_factory=Counter)
    layouts: Counter[str] = field(default_factory=Counter)
    steps: int = 0
    worlds: int = 0
    seconds: float = 0
    found: list[tuple[str, str]] = field(default_factory=list)


def fuzz(spark: Any, folder: Path, options: Options) -> Run:
    """Walk until the time is over or enough was found.

    Args:
        spark: The Spark of the run.
        folder: Where worlds are made.
        options: How.
    """
    run, templates = Run(), Templates(spark, folder)
    started = time.monotonic()
    until = started + 60 * options.minutes
    while time.monotonic() < until and len(run.found) < options.findings:
        number = options.first + run.worlds
        if options.worlds is not None and run.worlds >= options.worlds:
            break
        walk, finding = _world(templates, options, number, run, until)
        run.seconds = time.monotonic() - started
        pace = 60 * run.steps / run.seconds
        sys.stdout.write(
            f"world {number}: {walk.layout}, {', '.join(c.shape for c in walk.caches)}: "
            f"{run.steps} steps so far, {pace:.0f} a minute\n"
        )
        sys.stdout.flush()
        if finding is not None:
            run.found.append(_told(templates, options, number, walk, finding))
    return run


def _world(
    templates: Templates, options: Options, number: int, run: Run, until: float
) -> tuple[Walk, Finding | None]:
    """One world, up to its first difference."""
    rng = random.Random(f"{options.seed}:{number}")
    walk = beginning(rng, options.manner, options.among)
    run.worlds += 1
    run.layouts[walk.layout] += 1
    taken: list[Step] = []
    try:
        with world(templates, walk, run.tally) as made:
            walker = Walker(rng, made)
            while len(taken) < options.steps and time.monotonic() < until:
                step = walker.step()
                taken.append(step)
                done = made.do(step)
                _count(run, step, done.applied)
                if done.finding is not None:
                    return replace(walk, steps=tuple(taken)), done.finding
    except Exception as error:
        error.add_note(f"world {number} of seed {options.seed} broke off: {walk}, {taken[-1:]}")
        raise
    return walk, None


def _count(run: Run, step: Step, applied: bool) -> None:
    run.steps += 1
    if isinstance(step, Change):
        name = step.kind if step.table == "sales" else f"dimension: {step.kind}"
        run.changes[name if applied else f"{name} (not applied)"] += 1
    else:
        run.changes[type(step).__name__.lower()] += 1
    if not applied:
        run.tally.counts["skipped"] += 1


def _told(
    templates: Templates, options: Options, number: int, walk: Walk, finding: Finding
) -> tuple[str, str]:
    head = f"world {number} of seed {options.seed}, step {len(walk.steps)}"
    sys.stdout.write(f"{head}: {finding.kind}: {finding.told}\n")
    sys.stdout.flush()
    short, shown = shrink(templates, walk, finding, options.shrink_seconds)
    if shown is None:
        head += "; not shown again by the same steps alone"
    told = f"{head}: {(shown or finding).told}"
    return told, script(short)


def entry(run: Run, options: Options) -> dict[str, Any]:
    """A run as the ledger keeps it."""
    git = ("git", "rev-parse", "--short=10", "HEAD")
    commit = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=False)
    return {
        "commit": commit.stdout.strip(),
        "date": datetime.now(UTC).date().isoformat(),
        "seed": options.seed,
        **({} if options.manner is None else {"manner": options.manner.value}),
        "seconds": round(run.seconds),
        "worlds": run.worlds,
        "steps": run.steps,
        "counts": dict(run.tally.counts),
        "changes": dict(run.changes),
        "ways": dict(run.tally.ways),
        "shapes": dict(run.tally.shapes),
        "layouts": dict(run.layouts),
        "found": [told.splitlines()[0] for told, _ in run.found],
    }


def main() -> int:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 10**6)
    parser.add_argument("--worlds", type=int, help="the most worlds")
    parser.add_argument("--first", type=int, default=0, help="number of the first world")
    parser.add_argument("--steps", type=int, default=STEPS, help="the most steps of a world")
    parser.add_argument("--shrink-seconds", type=float, default=150)
    parser.add_argument("--findings", type=int, default=1, help="stop after so many differences")
    parser.add_argument("--manner", choices=Manner, type=Manner, help="of all walks")
    parser.add_argument(
        "--among", nargs="+", choices=tuple(SHAPES), default=(), metavar="SHAPE",
        help="each world has a cache of one of these, where it can",
    )  # fmt: skip
    parser.add_argument("--bug", choices=BUGS, default="", help="plant a bug, which is to be found")
    parser.add_argument("--ledger", action="store_true", help="add the run to ledger.json")
    chosen = parser.parse_args()
    exit_on_sigterm()
    os.environ.setdefault("JAVA_TOOL_OPTIONS", _JVM)
    sys.stdout.write(f"seed {chosen.seed}\n")
    sys.stdout.flush()
    options = Options(
        chosen.seed, chosen.minutes, chosen.worlds, chosen.first, chosen.steps,
        chosen.shrink_seconds, chosen.findings, chosen.manner,
        tuple(chosen.among),
    )  # fmt: skip
    try:
        with (
            planted(chosen.bug),
            tempfile.TemporaryDirectory(prefix="fuzz-refresh-") as name,
            spark_session() as spark,
        ):
            run = fuzz(spark, Path(name), options)
    except NotPlantable as error:
        sys.stdout.write(f"{error}\n")
        return 2
    made = entry(run, options)
    sys.stdout.write(ledger.report([made]) + "\n")
    for told, text in run.found:
        sys.stdout.write(f"\n{told}\n\n{text}")
    if chosen.ledger and not chosen.bug:
        ledger.append(made)
    return 1 if run.found else 0


if __name__ == "__main__":
    sys.exit(main())
