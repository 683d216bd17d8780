"""Match latency by the number of caches: first sight, shape seen before, cannot hit.

What is timed is all that Python does for a query in the Catalyst hook: the plan document is read,
cut into blocks, decided on, and the rewrite's SQL text written. See `bench.population` for the
caches.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

from bench.population import plan_document, registry_of
from bench.results import Figure, percentile
from matcher.catalyst.reader import LocatedBlock
from matcher.catalyst.templates import PlanShapes
from matcher.index.registry import Registry
from matcher.render.select import render_rewrite

SIZES = (1, 10, 100, 1_000, 10_000)
_LARGEST = SIZES[-1]
_REPEATS = 400
# so short that a p99 needs more of them
_SEEN_REPEATS = 2_000


def timed(action: Callable[[int], None], repeats: int) -> list[float]:
    """Milliseconds of each call, the garbage collector held off as a real session's is mostly
    idle.

    Args:
        action: Called with 0, 1, …
        repeats: How often.
    """
    times = []
    gc.collect()
    gc.freeze()
    for i in range(repeats):
        start = time.perf_counter_ns()
        action(i)
        times.append((time.perf_counter_ns() - start) / 1e6)
    gc.unfreeze()
    return times


def answer(registry: Registry, shapes: PlanShapes, text: str, hit: bool) -> None:
    """What the hook's decider does with a query, without the checks of its session.

    Args:
        registry: The caches.
        shapes: The documents that came before.
        text: The plan document.
        hit: What must come out.

    Raises:
        AssertionError: The other came out: what was timed is not what was meant.
    """
    hits = 0

    def visit(located: LocatedBlock) -> bool:
        nonlocal hits
        found = None if located.block is None else registry.decide(located.block).rewrite
        if found is not None:
            render_rewrite(found, "`__c`", positional=True)
            hits += 1
        return found is not None

    shapes.read(text).walk(visit, tails=registry.keeps_first_rows)
    if bool(hits) != hit:
        raise AssertionError(f"expected {'a hit' if hit else 'a miss'} and got the other")


def run() -> list[Figure]:
    """All figures of this module."""
    figures: list[Figure] = []
    first_p50: dict[int, float] = {}
    hits = [plan_document("AMERICA", 1992 + i % 7) for i in range(_REPEATS)]
    # a measure that no cache stores
    misses = [text.replace("lo_supplycost", "lo_tax") for text in hits]
    for count in SIZES:
        registry, shapes = registry_of(count), PlanShapes()

        def first(i: int, registry: Registry = registry) -> None:
            registry.forget_decisions()
            answer(registry, PlanShapes(), hits[i], hit=True)

        def again(i: int, registry: Registry = registry, shapes: PlanShapes = shapes) -> None:
            answer(registry, shapes, hits[i % _REPEATS], hit=True)

        def never(i: int, registry: Registry = registry) -> None:
            registry.forget_decisions()
            answer(registry, PlanShapes(), misses[i], hit=False)

        sight = timed(first, _REPEATS)
        seen = timed(again, _SEEN_REPEATS)
        missed = timed(never, _REPEATS)
        first_p50[count] = percentile(sight, 0.5)
        largest = count == _LARGEST
        figures += [
            Figure(
                f"first sight p50, {count} caches", first_p50[count], "ms", 5.0 if largest else None
            ),
            Figure(
                f"first sight p99, {count} caches",
                percentile(sight, 0.99),
                "ms",
                15.0 if largest else None,
            ),
            Figure(f"seen before p50, {count} caches", percentile(seen, 0.5), "ms"),
            Figure(f"seen before p99, {count} caches", percentile(seen, 0.99), "ms", 0.3),
            Figure(f"cannot hit p99, {count} caches", percentile(missed, 0.99), "ms", 5.0),
        ]
    ratio = first_p50[_LARGEST] / first_p50[100]
    figures.append(Figure("first sight p50, 10,000 caches against 100", ratio, "x", 1.3))
    return figures
