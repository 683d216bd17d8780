"""The figures of a run as JSON, beside its report: for those who plot or compare runs."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from cachemgr.demo.growing import Growth
from cachemgr.demo.result import DemoResult


def figures(result: DemoResult) -> dict[str, Any]:
    """What a run measured, and on what machine.

    Args:
        result: What the run found.

    Returns:
        A document that `json` can write; seconds are medians over the sets of parameters.
    """
    return {
        "scale": result.scale,
        "seed": result.seed,
        "querySeed": result.query_seed,
        "machine": _machine(result.load),
        "settings": dict(result.settings),
        "hits": result.hits,
        "equal": result.equals,
        "geometricMean": round(result.mean_ratio, 2),
        "queries": [
            {
                "query": query.name,
                "caches": list(query.caches),
                "groupingSet": query.grouping_set,
                "rows": query.rows,
                "hit": query.hit,
                "equal": query.equal,
                "secondsWithout": round(query.without, 4),
                "secondsWith": round(query.with_hook, 4),
                "ratio": round(query.ratio, 2),
            }
            for query in result.queries
        ],
        "growth": _growth(result.growth),
        "steps": {title: round(seconds, 1) for title, seconds in result.timings},
        "failures": list(result.failures),
    }


def _growth(growth: Growth | None) -> dict[str, Any] | None:
    if growth is None:
        return None
    return {
        "rowsAppended": growth.rows,
        "secondsWithout": round(growth.without, 4),
        "secondsAtOnce": round(growth.at_once, 4),
        "secondsAfterRefresh": round(growth.after, 4),
        "refresh": growth.way,
        "secondsRefresh": round(growth.refresh, 2),
        "secondsFullRefresh": round(growth.full, 2),
    }


def load_now() -> float | None:
    """How many processes wanted to run in the last minute; None where that cannot be told."""
    with suppress(OSError, AttributeError):
        return round(os.getloadavg()[0], 1)
    return None


def _machine(before: float | None) -> dict[str, Any]:
    found: dict[str, Any] = {"cpus": os.cpu_count(), "loadBefore": before}
    with suppress(ValueError, OSError, AttributeError):
        pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        found["memoryGiB"] = round(pages / 2**30)
        # The demo itself keeps all cores busy: what is above their number was others' work.
        found["load5min"] = round(os.getloadavg()[1], 1)
    return found
