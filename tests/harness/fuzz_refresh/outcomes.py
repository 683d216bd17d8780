"""What comes of a walk: its steps, what was counted, and differences."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Tally:
    """What was counted over all worlds of a run.

    Args:
        counts: Steps by kind, queries, hits and the like.
        ways: `way after kind of change` to how often.
        shapes: Shape to queries answered from it or drawn near it.
    """

    counts: Counter[str] = field(default_factory=Counter)
    ways: Counter[str] = field(default_factory=Counter)
    shapes: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Finding:
    """A difference.

    Args:
        kind: `query`, `refresh`, `told` or `settings`: what a shorter walk must show again.
        told: What is wrong.
    """

    kind: str
    told: str


@dataclass(frozen=True)
class Done:
    """What came of a step.

    Args:
        applied: It did something; a step that does not apply is skipped.
        finding: A difference, if it showed one.
        note: Why it did not apply.
    """

    applied: bool = True
    finding: Finding | None = None
    note: str = ""
