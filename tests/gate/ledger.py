"""When each share of the tests passed last: `tests/passed.txt`.

All tests are in 24 shards. A line says of one at which commit it passed whole, when, how many
tests it had then, and how long they took. The runs write it (`tests/gate/plugin.py`), and people
commit it.
"""

from __future__ import annotations

import re
import sys
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from tests.gate.history import History
from tests.gate.recording import ROOT

SHARDS = 24
PATH = ROOT / "tests" / "passed.txt"
MOST_DAYS = 7
MOST_COMMITS = 500
_HEAD = (
    "# shard, newest commit at which it passed whole, day, tests, seconds; see docs/testing.md\n"
)
_LINE = re.compile(r" *(\d+) ([0-9a-f]{40}) (\d{4}-\d\d-\d\d) +(\d+) +(\d+)")


@dataclass(frozen=True)
class Passed:
    """A shard's last run that passed whole.

    Attributes:
        shard: 1 to 24.
        commit: What was checked out.
        day: When, in UTC.
        tests: How many they were.
        seconds: How long they took, all together.
    """

    shard: int
    commit: str
    day: date
    tests: int
    seconds: int


Ledger = dict[int, Passed]


def shard_of(name: str) -> int:
    """The shard of a test, by the name that it is dealt out by."""
    return zlib.crc32(name.encode()) % SHARDS + 1


def read(path: Path = PATH) -> Ledger:
    """The ledger. Lines that are none (of a merge, say) do not count; of two the newer does."""
    try:
        text = path.read_text()
    except OSError:
        return {}
    made: Ledger = {}
    for line in text.splitlines():
        found = _LINE.fullmatch(line)
        if found is None or not 1 <= int(found[1]) <= SHARDS:
            continue
        shard, commit, day, tests, seconds = found.groups()
        try:
            passed = Passed(int(shard), commit, date.fromisoformat(day), int(tests), int(seconds))
        except ValueError:  # the 31st of February
            continue
        if passed.shard not in made or made[passed.shard].day <= passed.day:
            made[passed.shard] = passed
    return made


def write(passed: Iterable[Passed], path: Path = PATH) -> None:
    """Put shards' new lines in place of their old ones."""
    ledger = read(path) | {each.shard: each for each in passed}
    lines = [
        f"{p.shard:2} {p.commit} {p.day} {p.tests:5} {p.seconds:5}\n"
        for _, p in sorted(ledger.items())
    ]
    path.write_text(_HEAD + "".join(lines))


def oldest_first(ledger: Mapping[int, Passed], history: History) -> list[int]:
    """The shards, in the order in which they want to run: those that never passed as far as this
    history knows, then those that did at the oldest commits."""
    ages = {shard: history.commits_since(passed.commit) for shard, passed in ledger.items()}

    def order(shard: int) -> tuple[int, int]:
        age = ages.get(shard)
        return (0, shard) if age is None else (1, -age)

    return sorted(range(1, SHARDS + 1), key=order)


def complaint(ledger: Mapping[int, Passed], history: History, now: datetime | None = None) -> str:
    """What is wrong with a ledger: shards that never passed or did long ago; empty if nothing is.

    Args:
        ledger: When each shard passed.
        history: The checkout's.
        now: The moment; the clock's unless given.
    """
    today = (now or datetime.now(UTC)).date()
    never, old = [], []
    for shard in range(1, SHARDS + 1):
        passed = ledger.get(shard)
        commits = passed and history.commits_since(passed.commit)
        if passed is None or commits is None:
            never.append(shard)
        elif commits > MOST_COMMITS or (today - passed.day).days > MOST_DAYS:
            old.append(shard)
    parts = []
    if never:
        parts.append(f"{_shards(never)} never passed at a commit that is known here")
    if old:
        parts.append(
            f"{_shards(old)} passed more than {MOST_DAYS} days or {MOST_COMMITS} commits ago"
        )
    return f"{'; '.join(parts)}: run make test-long" if parts else ""


def _shards(numbers: list[int]) -> str:
    if len(numbers) == SHARDS:
        return "all shards of the tests"
    named = ", ".join(map(str, numbers))
    return f"shard{'s' if len(numbers) > 1 else ''} {named} of the tests"


def main() -> int:
    """End with an error where the ledger has a complaint: what `make dist` asks first."""
    told = complaint(read(), History(ROOT))
    if told:
        print(f"nothing is built: {told}", file=sys.stderr)
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
