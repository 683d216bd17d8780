"""What registering, replacing or dropping one cache costs, by how many there are.

Each touches its own plan and the shard of its tables, so the cost may not grow with the number of
caches.
"""

from __future__ import annotations

from dataclasses import replace

from bench.match_latency import timed
from bench.population import plans
from bench.results import Figure, percentile
from matcher.index.registry import Registry
from matcher.model.ir import CachePlan

_REPEATS = 300


def run() -> list[Figure]:
    """All figures of this module."""
    figures = []
    medians: dict[int, float] = {}
    for count in (100, 1_000, 10_000):
        # The same caches on the query's tables each time, so that only the number differs.
        population = list(plans(count))
        registry = Registry()
        for plan in population:
            registry.put(plan)
        mine = population[-1]

        def register(i: int, registry: Registry = registry, mine: CachePlan = mine) -> None:
            registry.put(replace(mine, name=f"new_{i}"))

        def again(i: int, registry: Registry = registry, mine: CachePlan = mine) -> None:
            registry.put(replace(mine, name=f"new_{i}", rows=i))

        def drop(i: int, registry: Registry = registry) -> None:
            registry.drop(f"new_{i}")

        for what, action in (("register", register), ("replace", again), ("drop", drop)):
            median = percentile(timed(action, _REPEATS), 0.5)
            figures.append(Figure(f"{what} one cache p50, {count} caches", median, "ms"))
            if what == "register":
                medians[count] = median
    ratio = medians[10_000] / medians[1_000]
    figures.append(Figure("register one, 10,000 caches against 1,000", ratio, "x", 1.5))
    return figures
