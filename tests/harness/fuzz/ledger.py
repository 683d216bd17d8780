"""The ledger of runs: what was generated, accepted and found, one entry a run, committed.

`python -m tests.harness.fuzz.ledger` prints the sum. Shapes are kept beside it as hashes, so that a
pair counts once over all runs.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import zlib
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from tests.harness.fuzz.capabilities import TAGS

LEDGER: Final = Path(__file__).parent / "ledger.json"
SHAPES: Final = Path(__file__).parent / "shapes.txt"
FIELDS: Final = {
    "commit": str, "date": str, "seeds": list, "judge": str, "generated": int, "accepted": int,
    "executed": int, "skipped": int, "distinct": int, "two_or_more": int, "wrong": int,
    "templates": int, "doors": int, "seconds": int, "capabilities": dict, "oracle": dict,
    "found": list,
}  # fmt: skip
_WIDTH: Final = 5  # bytes of a shape's hash: one clash is expected in some hundred thousand pairs


def read() -> list[dict[str, Any]]:
    """All entries, oldest first."""
    if not LEDGER.exists():
        return []
    entries = json.loads(LEDGER.read_text())
    assert isinstance(entries, list)
    return entries


@dataclass(frozen=True)
class Pair:
    """An executed and equal pair: the digest of its shape, and what it exercises."""

    shape: bytes
    tags: frozenset[str]
    compensations: int


def append(entry: dict[str, Any], pairs: Iterable[Pair]) -> dict[str, Any]:
    """Add one run. What it counts for each capability are the pairs that no run had before.

    Args:
        entry: the run's other fields.
        pairs: every pair that was executed and found equal.

    Returns:
        The entry as written.

    Raises:
        ValueError: the entry is not well formed.
    """
    folder = os.open(LEDGER.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)  # two runs may end at the same time
        return _append(entry, pairs)
    finally:
        os.close(folder)


def _append(entry: dict[str, Any], pairs: Iterable[Pair]) -> dict[str, Any]:
    known = seen()
    new = {p.shape: p for p in pairs if p.shape not in known}
    capabilities = Counter(tag for p in new.values() for tag in p.tags)
    counted = {
        "distinct": len(new),
        "two_or_more": sum(p.compensations >= 2 for p in new.values()),
        "capabilities": dict(sorted(capabilities.items())),
    }
    full = entry | counted
    problems = check(full)
    if problems:
        raise ValueError("; ".join(problems))
    lines = ",\n".join(json.dumps(e, sort_keys=True, ensure_ascii=False) for e in [*read(), full])
    LEDGER.write_text(f"[\n{lines}\n]\n")
    packed = zlib.compress(b"".join(sorted(known | set(new))), 9)
    SHAPES.write_text(b64encode(packed).decode() + "\n")
    return full


def digest(shape: str) -> bytes:
    """A short hash of a pair with its literals lifted."""
    return blake2b(shape.encode(), digest_size=_WIDTH).digest()


def seen() -> set[bytes]:
    """The hashes of all pairs that were executed and equal in some run."""
    if not SHAPES.exists():
        return set()
    packed = zlib.decompress(b64decode(SHAPES.read_text()))
    return {packed[i : i + _WIDTH] for i in range(0, len(packed), _WIDTH)}


def check(entry: dict[str, Any]) -> list[str]:
    """What is not well formed in an entry."""
    problems = [f"{name} is missing" for name in FIELDS if name not in entry]
    problems += [f"{name} is unknown" for name in entry if name not in FIELDS]
    problems += [
        f"{name} is no {kind.__name__}"
        for name, kind in FIELDS.items()
        if name in entry and not isinstance(entry[name], kind)
    ]
    if problems:
        return problems
    unknown = set(entry["capabilities"]) - set(TAGS)
    if unknown:
        problems.append(f"unknown capabilities {sorted(unknown)}")
    if entry["executed"] + entry["skipped"] > entry["accepted"]:
        problems.append("more pairs were executed than accepted")
    if entry["distinct"] > entry["executed"]:
        problems.append("more pairs are distinct than were executed")
    return problems


def total(entries: list[dict[str, Any]]) -> dict[str, Any]:
    """The sum over all runs."""
    numbers = Counter({
        name: sum(e[name] for e in entries) for name, kind in FIELDS.items() if kind is int
    })  # fmt: skip
    capabilities = Counter({tag: 0 for tag in TAGS})
    oracle: Counter[str] = Counter()
    for entry in entries:
        capabilities.update(entry["capabilities"])
        oracle.update({k: sum(v.values()) for k, v in entry["oracle"].items()})
    return {
        **numbers, "runs": len(entries), "capabilities": capabilities,
        "oracle": oracle, "found": [f for e in entries for f in e["found"]],
    }  # fmt: skip


def report(entries: list[dict[str, Any]]) -> str:
    """The sum in lines for people."""
    if not entries:
        return "no run yet"
    found = total(entries)
    share = 100 * found["two_or_more"] / max(1, found["distinct"])
    lines = [
        f"{found['runs']} runs, {found['generated']:,} pairs generated, "
        f"{found['accepted']:,} accepted, {found['executed']:,} executed on the judge",
        f"{found['distinct']:,} distinct after lifting literals, {share:.0f} % of them with two or "
        f"more compensations, {found['templates']:,} more by remembered shapes",
        f"wrong: {found['wrong']}",
    ]
    for tag in TAGS:
        mark = "" if found["capabilities"][tag] >= 300 else "   (below 300)"
        lines.append(f"  {tag:36}{found['capabilities'][tag]:8,}{mark}")
    lines += [f"found: {text}" for text in found["found"]]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(report(read()) + "\n")
