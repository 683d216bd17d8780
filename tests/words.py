"""Words that no name, message or comment of ours may hold: `python -m tests.words`, in make lint.

Each stopped a reader once; what to write instead stands beside it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
INSTEAD = {
    r"\bdelta=(True|False)\b": "may_join_tables, say: delta is Delta Lake here",
    r"\bstrangers?\b": "unknown table",
    r"\bHungTables\b": "OuterJoinKey",
    r"\bveiled\b": "hashed, redacted",
    r"\bmend\b": "fix, remedy",
    r"\b(hung|hangs? on)\b": "joined, outer-joined, depends on",
    r"\bdawdle": "is slow",
    r"\bimpatient": "receive timeout",
    r"\bno sense\b": "cannot be parsed",
    r"\bnone of our statements\b": "not a relational-cache statement",
    r"\bdoes not have so\b": "has no matching",
    r"\bis no (URL|parameter|file|setting)\b": "is not a …, unknown …",
    r"\bfell to full\b": "running FULL, because …",
    r"\bmade true\b": "applied",
}


def findings() -> list[str]:
    """`path:line: word: what to write instead`, for each."""
    found = []
    for package in ("cachemgr", "matcher", "scheduler", "migrations"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                for word, instead in INSTEAD.items():
                    match = re.search(word, line, re.IGNORECASE)
                    if match:
                        place = f"{path.relative_to(ROOT)}:{number}"
                        found.append(f"{place}: {match[0]!r}: write {instead}")
    return found


if __name__ == "__main__":
    lines = findings()
    print("\n".join(lines) or "no words that stop a reader")
    sys.exit(bool(lines))
