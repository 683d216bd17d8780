"""All that one run of the demo found: what the report shows."""

from __future__ import annotations

from dataclasses import dataclass

from cachemgr.demo.growing import Growth
from cachemgr.demo.measure import QueryResult, geometric_mean
from cachemgr.demo.published import Coverage


@dataclass(frozen=True, slots=True)
class DemoResult:
    """One run.

    Args:
        scale: SSB scale factor.
        seed: Seed of the data.
        query_seed: Seed of the queries' parameters.
        load: How many processes wanted to run on the machine in the minute before it; None where
            that cannot be told.
        settings: The session's settings, as (key, value).
        timings: What each step took, as (step, seconds).
        queries: The 13 results.
        coverage: What the published cube would answer.
        failures: What makes the run fail, empty if it succeeds.
        growth: What was seen while the fact grew; None where that failed.
    """

    scale: float
    seed: int
    settings: tuple[tuple[str, str], ...]
    timings: tuple[tuple[str, float], ...]
    queries: tuple[QueryResult, ...]
    coverage: tuple[Coverage, ...]
    failures: tuple[str, ...]
    growth: Growth | None = None
    query_seed: int = 0
    load: float | None = None

    @property
    def mean_ratio(self) -> float:
        """The geometric mean of the ratios of the queries that ran."""
        return geometric_mean([q.ratio for q in self.queries if q.runs])

    @property
    def hits(self) -> int:
        """How many queries were answered from a cache."""
        return sum(q.hit for q in self.queries)

    @property
    def equals(self) -> int:
        """How many queries had equal answers."""
        return sum(q.equal for q in self.queries)

    def budgets(self) -> tuple[tuple[str, str, bool], ...]:
        """The budgets for scale 1, measured in this run.

        Returns:
            (budget, what was measured, whether it is met); none below scale 1, where Spark's
            fixed costs are most of both sides.
        """
        ran = [q for q in self.queries if q.runs]
        if self.scale < 1 or not ran:
            return ()
        least = min(ran, key=lambda q: q.ratio)
        slowest = max(ran, key=lambda q: q.with_hook)
        mean, every = (45.0, 8.0) if self.scale >= 10 else (18.0, 3.0)
        found = [
            (
                f"geometric mean at least {mean:g} times",
                f"{self.mean_ratio:.1f} times",
                self.mean_ratio >= mean,
            ),
            (
                f"every query at least {every:g} times",
                f"{least.name}: {least.ratio:.1f} times",
                least.ratio >= every,
            ),
        ]
        if self.scale < 10:
            text = f"{slowest.name}: {slowest.with_hook:.2f} s"
            found.append(("every hit below 0.5 s", text, slowest.with_hook < 0.5))
        return tuple(found)
