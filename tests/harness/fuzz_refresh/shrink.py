"""Makes a walk that shows a difference short: leaves out steps, and caches, while it shows one.

Only the last step of a shorter walk is judged, so those before it cost little.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from tests.harness.fuzz_refresh.live import world
from tests.harness.fuzz_refresh.outcomes import Finding, Tally
from tests.harness.fuzz_refresh.steps import Query, Refresh, Settings, Step, Walk
from tests.harness.fuzz_refresh.templates import Templates


def ends_in(templates: Templates, walk: Walk) -> Finding | None:
    """What the last step of a walk shows, in a world of its own."""
    with world(templates, walk, Tally()) as made:
        for step in walk.steps[:-1]:
            made.do(step, check=False)
        return made.do(walk.steps[-1]).finding


def shrink(
    templates: Templates, walk: Walk, finding: Finding, seconds: float
) -> tuple[Walk, Finding | None]:
    """The shortest walk found in a time.

    Args:
        templates: Where worlds come from.
        walk: The walk up to the step that showed the difference.
        finding: What it showed.
        seconds: When to be content.

    Returns:
        The walk and what it shows; None where not even the whole walk shows it again, which is then
        a matter of what was asked in between, or of time.
    """
    until = time.monotonic() + seconds
    shown: Finding | None = None

    def fails(candidate: Walk) -> bool:
        nonlocal shown
        try:
            found = ends_in(templates, candidate)
        except Exception:  # a world that cannot be made is no shorter proof
            return False
        if found is None or found.kind != finding.kind:
            return False
        shown = found
        return True

    bare = replace(walk, steps=tuple(s for s in walk.steps[:-1] if not isinstance(s, Query)))
    for candidate in (replace(bare, steps=(*bare.steps, walk.steps[-1])), walk):
        if fails(candidate):
            walk = candidate
            break
    else:
        return walk, None
    size = max(1, (len(walk.steps) - 1) // 2)
    while time.monotonic() < until:
        found = next((c for c in _shorter(walk, size, until) if fails(c)), None)
        if found is not None:
            walk = found
        elif size > 1:
            size //= 2
        else:
            break
    for candidate in _with_fewer_caches(walk):
        if time.monotonic() < until and fails(candidate):
            walk = candidate
    return walk, shown


def _shorter(walk: Walk, size: int, until: float) -> Iterator[Walk]:
    """Walks without some steps in a row; the last step stays."""
    steps = walk.steps[:-1]
    for start in range(len(steps) - size, -size, -size):
        first = max(0, start)
        if time.monotonic() < until and first < len(steps):
            left = (*steps[:first], *steps[first + size :])
            yield replace(walk, steps=(*left, walk.steps[-1]))


def _with_fewer_caches(walk: Walk) -> Iterator[Walk]:
    last = walk.steps[-1]
    for spec in walk.caches:
        if len(walk.caches) > 1 and _about(last) != spec.shape:
            kept = tuple(c for c in walk.caches if c != spec)
            steps = tuple(s for s in walk.steps if _about(s) != spec.shape)
            yield replace(walk, caches=kept, steps=steps)


def _about(step: Step) -> str:
    return step.cache if isinstance(step, Refresh | Settings) else ""
