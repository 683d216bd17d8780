"""The ledger of runs, one entry a run, committed: what the walks did and what came of it.

`python -m tests.harness.fuzz_refresh.ledger` prints the sum.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from tests.harness.fuzz_refresh.shapes import SHAPES

LEDGER: Final = Path(__file__).parent / "ledger.json"
FIELDS: Final = {
    "commit": str, "date": str, "seed": int, "seconds": int, "worlds": int, "steps": int,
    "counts": dict, "changes": dict, "ways": dict, "shapes": dict, "layouts": dict, "found": list,
}  # fmt: skip
# `manner`: of all its walks, where it was asked for. `explained`, of a run that found what was no
# difference of ours: why not, and what was mended in the harness.
OPTIONAL: Final = {"explained": str, "manner": str}
_COUNTERS: Final = ("counts", "changes", "ways", "shapes", "layouts")


def read() -> list[dict[str, Any]]:
    """All entries, oldest first."""
    if not LEDGER.exists():
        return []
    entries = json.loads(LEDGER.read_text())
    assert isinstance(entries, list)
    return entries


def append(entry: dict[str, Any]) -> None:
    """Add one run.

    Args:
        entry: The run's fields.

    Raises:
        ValueError: The entry is not well formed.
    """
    problems = check(entry)
    if problems:
        raise ValueError("; ".join(problems))
    folder = os.open(LEDGER.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)  # two runs may end at the same time
        entries = [json.dumps(e, sort_keys=True, ensure_ascii=False) for e in [*read(), entry]]
        LEDGER.write_text("[\n" + ",\n".join(entries) + "\n]\n")
    finally:
        os.close(folder)


def check(entry: dict[str, Any]) -> list[str]:
    """What is not well formed in an entry."""
    problems = [f"{name} is missing" for name in FIELDS if name not in entry]
    problems += [f"{name} is unknown" for name in entry if name not in FIELDS | OPTIONAL]
    problems += [
        f"{name} is no {kind.__name__}"
        for name, kind in (FIELDS | OPTIONAL).items()
        if name in entry and not isinstance(entry[name], kind)
    ]
    return problems


def unexplained(entries: Iterable[dict[str, Any]]) -> list[str]:
    """Findings for which nobody has shown that they were the harness's own mistake."""
    return [text for e in entries if not e.get("explained") for text in e["found"]]


def total(entries: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The sum over runs."""
    found: dict[str, Any] = {name: Counter() for name in _COUNTERS}
    numbers: Counter[str] = Counter()
    told: list[str] = []
    for entry in entries:
        numbers.update({n: entry[n] for n in ("worlds", "steps", "seconds")})
        for name in _COUNTERS:
            found[name].update(entry[name])
        told += entry["found"]
    return {**numbers, **found, "found": told}


def report(entries: list[dict[str, Any]]) -> str:
    """The sum in lines for people."""
    if not entries:
        return "no run yet"
    found = total(entries)
    counts = found["counts"]
    minutes = max(found["seconds"], 1) / 60
    lines = [
        f"{len(entries)} runs, {minutes:.0f} minutes, {found['worlds']:,} worlds, "
        f"{found['steps']:,} steps ({found['steps'] / minutes:.0f} a minute)",
        f"{counts['queries']:,} queries: {counts['hits']:,} hits, {counts['fresh hits']:,} fresh "
        f"hits, {counts['tail hits']:,} of them by rows in memory, {counts['lagging hits']:,} of "
        f"a stale cache that may lag, {counts['misses']:,} misses",
        f"{counts['skipped']:,} steps did not apply; {counts['states that are gone']:,} "
        "comparisons with states that are gone were left out",
        "",
        *_ways(found["ways"]),
        "",
        *_table("why full", _full(counts)),
        "",
        *_table("changes", found["changes"]),
        "",
        "hits of queries drawn near each shape",
        *_table("", Counter(dict.fromkeys(SHAPES, 0)) + found["shapes"], SHAPES),
        *(f"found: {text}" for text in found["found"]),
    ]
    return "\n".join(lines)


def _table(title: str, counted: Counter[str], names: Iterable[str] = ()) -> list[str]:
    listed = dict.fromkeys([*names, *sorted(counted, key=lambda n: -counted[n])])
    lines = [f"  {name:44}{counted[name]:8,}" for name in listed]
    return [title, *lines] if title else lines


def _full(counts: Counter[str]) -> Counter[str]:
    return Counter(
        {n.removeprefix("full: "): c for n, c in counts.items() if n.startswith("full: ")}
    )


def _ways(ways: Counter[str]) -> list[str]:
    """Refreshes: what changed since the last one, by the way that was taken."""
    pairs = {tuple(name.split(" after ")): number for name, number in ways.items()}
    columns = sorted({way for way, _ in pairs})
    rows = sorted({change for _, change in pairs})
    width = max([len(c) for c in columns] + [9]) + 2
    lines = [f"{'refreshes':44}" + "".join(f"{c:>{width}}" for c in columns)]
    for row in rows:
        numbers = (pairs.get((column, row), 0) for column in columns)
        lines.append(f"  {row:42}" + "".join(f"{n or '':>{width}}" for n in numbers))
    return lines


if __name__ == "__main__":
    sys.stdout.write(report(read()) + "\n")
