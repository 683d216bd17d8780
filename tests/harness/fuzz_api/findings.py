"""What a run has found: each once, with what makes it again."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Finding:
    """Something that must not be.

    Args:
        kind: Which part of the run found it.
        number: The number of its input there; it follows from seed, kind and number.
        wrong: What must not be.
        given: The input, or as much of it as helps.
    """

    kind: str
    number: int
    wrong: str
    given: str

    @property
    def sort(self) -> str:
        """Equal for findings that are likely one bug."""
        return self.kind + ":" + re.sub(r"\d+|'[^']*'", "…", self.wrong.split(": ")[0])


@dataclass
class Findings:
    """All of a run.

    Args:
        folder: Where inputs are kept; None keeps them in memory alone.
    """

    folder: Path | None = None
    first: dict[str, Finding] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, finding: Finding) -> None:
        """Remember one; the first of its sort with its input."""
        self.counts[finding.sort] += 1
        if finding.sort in self.first:
            return
        self.first[finding.sort] = finding
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / f"{finding.kind}-{finding.number}.txt"
            path.write_text(f"{finding.wrong}\n\n{finding.given}\n", errors="backslashreplace")

    def text(self) -> str:
        """The findings for people."""
        lines = []
        for sort, found in self.first.items():
            lines.append(f"{found.kind} {found.number} ({self.counts[sort]} times): {found.wrong}")
            lines.append(f"    {found.given[:300]}")
        return "\n".join(lines)
