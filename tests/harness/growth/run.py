"""Doubles random queries, and fails where the steps of a decision grow more than with the square of
the size; and doubles the caches beside them, and fails where they grow more than as these do: `make
fuzz-growth MINUTES=…`."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from itertools import count, pairwise

from matcher.model.budget import DECISION_STEPS
from tests.harness.growth.families import Family, Outcome, decide, registry_of
from tests.harness.growth.random_families import random_caches, random_family

# Twice the size may take four times the steps (a quarter more, for what is added to small squares),
# twice the caches twice the steps, and an eighth of what a decision may take does not matter.
SQUARE = 5.0
LINEAR = 2.5
_FLOOR = DECISION_STEPS // 8
SIZES = (4, 8, 16)


@dataclass(frozen=True, slots=True)
class Measured:
    """The steps of one size of a family."""

    n: int
    steps: int
    seconds: float


def measured(family: Family, n: int) -> Measured:
    """Read and decide one member of a family, with no bound but those of the searches."""
    grown = family(n)
    registry = registry_of(grown.definitions)
    started = time.thread_time()
    found: Outcome = decide(registry, grown.query)
    return Measured(n, found.read.steps + found.decided.steps, time.thread_time() - started)


def why_too_steep(rows: list[Measured], factor: float = SQUARE) -> str | None:
    """What grows more than with the square, or by another factor; None if nothing does."""
    for small, large in pairwise(rows):
        most = factor * small.steps + _FLOOR
        if large.steps > most:
            return f"{small.steps} steps for n = {small.n}, {large.steps} for n = {large.n}"
    return None


def main(argv: list[str] | None = None) -> int:
    """Run until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    end = time.monotonic() + 60 * args.minutes
    failed = tried = 0
    slowest = (0.0, "")
    for number in count(args.seed):
        if time.monotonic() > end:
            break
        tried += 1
        for what, family, factor in (
            ("query", random_family(number), SQUARE),
            ("caches", random_caches(number), LINEAR),
        ):
            rows = [measured(family, n) for n in SIZES]
            slowest = max(slowest, (max(row.seconds for row in rows), f"seed {number}, {what}"))
            why = why_too_steep(rows, factor)
            if why is not None:
                failed += 1
                print(f"seed {number}, {what}: {why}", flush=True)
    print(
        f"{tried} random families doubled, {failed} grew more than they may; the slowest decision "
        f"took {slowest[0]:.2f} s of processor time ({slowest[1]})"
    )
    return 1 if failed or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
