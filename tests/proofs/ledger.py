"""The ledger of proofs: one line each, `<hash of all that went in> <what came out>`.

Lines come in any order and twice when branches were merged; a hash with two outcomes is a
contradiction, and proves nothing. Outcomes that tests read again are kept whole in a second file,
under their digest.
"""

from __future__ import annotations

import base64
import fcntl
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.proofs.digests import digest

FOLDER = Path(__file__).parents[1]
LEDGER = "proofs.txt"
TEXTS = "proofs_texts.txt"
# Texts are packed as what tells them from this one: a third of the size.
_TYPICAL = Path(__file__).with_name("typical_plans.json").read_bytes()


@dataclass
class Proofs:
    """Outcomes by the hash of what went in, and packed texts of outcomes by their digest."""

    outcomes: dict[str, str] = field(default_factory=dict)
    packed: dict[str, str] = field(default_factory=dict)

    def text(self, outcome: str) -> str | None:
        """The text of an outcome; None where it is not there, or is another one's."""
        found = _unpacked(self.packed.get(outcome, ""))
        return found if digest(found) == outcome else None

    def put_text(self, text: str) -> str:
        """Keep a text; its digest."""
        outcome = digest(text)
        self.packed[outcome] = _packed(text)
        return outcome


def read(folder: Path = FOLDER) -> Proofs:
    """All proofs that are known in a folder."""
    found: dict[str, set[str]] = {}
    for key, outcome in _lines(folder / LEDGER):
        found.setdefault(key, set()).add(outcome)
    outcomes = {key: of.pop() for key, of in found.items() if len(of) == 1}
    return Proofs(outcomes, dict(_lines(folder / TEXTS)))


def add(new: Proofs, keep: set[str] | None = None, folder: Path = FOLDER) -> None:
    """Write what a run has proved.

    Args:
        new: The run's proofs; they replace what is known of the same hashes.
        keep: The only hashes of which proofs are kept; None keeps all.
        folder: Where the ledger is.
    """
    with _locked(folder):
        known = read(folder)
        outcomes = known.outcomes | new.outcomes
        if keep is not None:
            outcomes = {key: outcome for key, outcome in outcomes.items() if key in keep}
        used = set(outcomes.values())
        packed = known.packed | new.packed
        _write(folder / LEDGER, outcomes)
        _write(folder / TEXTS, {key: text for key, text in packed.items() if key in used})


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    if not path.exists():
        return
    for line in path.read_text("ascii").splitlines():
        parts = line.split()
        if len(parts) == 2:  # and not what a merge left behind
            yield parts[0], parts[1]


def _write(path: Path, lines: Mapping[str, str]) -> None:
    made = path.with_suffix(".new")
    made.write_text("".join(f"{key} {lines[key]}\n" for key in sorted(lines)), "ascii")
    made.replace(path)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    opened = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


def _packed(text: str) -> str:
    packer = zlib.compressobj(9, zdict=_TYPICAL)
    return base64.b85encode(packer.compress(text.encode()) + packer.flush()).decode()


def _unpacked(packed: str) -> str:
    try:
        return zlib.decompressobj(zdict=_TYPICAL).decompress(base64.b85decode(packed)).decode()
    except (ValueError, zlib.error):  # damaged: as good as not there
        return ""
