"""What each test covers and how long it takes, as its last recorded run found: `tests/covered.txt`.

A line is too much for each test and a merge of two records helps nobody, so it is packed. One that
cannot be read, as after a merge with a conflict, counts as none: the import graph stands in.
"""

from __future__ import annotations

import base64
import json
import lzma
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.gate.recording import ROOT

PATH = ROOT / "tests" / "covered.txt"
_COLUMNS = 100
_HEAD = "# what each test covers, packed; written by make test-long, see docs/testing.md\n"


@dataclass(frozen=True)
class Covered:
    """A test function's last recorded run; or what a module of the tests opens, by its path.

    Attributes:
        seconds: All of its cases together, fixtures included.
        cases: So many they were.
        covers: The names of functions, `path:function`; of a module the paths of files.
    """

    seconds: float
    cases: int
    covers: frozenset[str]


Record = dict[str, Covered]


def read(path: Path = PATH) -> Record:
    """The record, by tests' functions; empty where there is none or it cannot be read."""
    try:
        packed = "".join(path.read_text().splitlines()[1:])
        data = json.loads(lzma.decompress(base64.b85decode(packed)))
        names: list[str] = data["names"]
        return {
            test: Covered(seconds, cases, _unpacked(bits, names))
            for test, (seconds, cases, bits) in data["tests"].items()
        }
    except (OSError, ValueError, KeyError, lzma.LZMAError):
        return {}


def write(record: Mapping[str, Covered], path: Path = PATH) -> None:
    """Write a record; the same one always gives the same text."""
    names = sorted({name for each in record.values() for name in each.covers})
    numbers = {name: number for number, name in enumerate(names)}
    tests = {
        test: (each.seconds, each.cases, _packed(each.covers, numbers))
        for test, each in sorted(record.items())
    }
    data = json.dumps({"names": names, "tests": tests}, separators=(",", ":")).encode()
    text = base64.b85encode(lzma.compress(data, preset=9)).decode()
    lines = [text[i : i + _COLUMNS] for i in range(0, len(text), _COLUMNS)]
    path.write_text(_HEAD + "\n".join(lines) + "\n")


def merged(old: Mapping[str, Covered], noted: Iterable[tuple[str, dict[str, Any]]]) -> Record:
    """A record with what new runs have noted in place of what it said of these tests."""
    made = dict(old)
    for test, each in noted:
        made[test] = Covered(each["seconds"], each["cases"], frozenset(each["covers"]))
    return made


def _packed(covers: Iterable[str], numbers: Mapping[str, int]) -> str:
    bits = 0
    for name in covers:
        bits |= 1 << numbers[name]
    return f"{bits:x}"


def _unpacked(bits: str, names: list[str]) -> frozenset[str]:
    return frozenset(names[n] for n, bit in enumerate(reversed(f"{int(bits, 16):b}")) if bit == "1")
