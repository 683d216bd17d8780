"""What a benchmark reports: figures with their budgets, as a table and as bench/results.json."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value. `budget` is the greatest value allowed, None where there is no budget."""

    name: str
    value: float
    unit: str
    budget: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the budget is kept; None without one."""
        return None if self.budget is None else self.value <= self.budget


def machine() -> dict[str, object]:
    """What the figures were measured on, as far as it matters for them."""
    return {
        "cpus": os.cpu_count(),
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "system": platform.system(),
        "load_1min": round(os.getloadavg()[0], 2),
    }


def write(figures: Iterable[Figure], target: Path) -> None:
    """Store the figures with the machine's description as JSON."""
    rows = [{**asdict(f), "value": round(f.value, 4), "met": f.met} for f in figures]
    target.write_text(json.dumps({"machine": machine(), "figures": rows}, indent=2) + "\n")


def table(figures: Iterable[Figure]) -> str:
    """The figures as aligned text."""
    rows = [("name", "value", "unit", "budget", "met")]
    for f in figures:
        budget = "-" if f.budget is None else f"{f.budget:g}"
        met = "-" if f.met is None else ("yes" if f.met else "NO")
        rows.append((f.name, f"{f.value:.3f}", f.unit, budget, met))
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) for r in rows)


def percentile(values: list[float], share: float) -> float:
    """The value below which `share` (0 to 1) of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
