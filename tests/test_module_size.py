"""No module is longer than a reader keeps in mind: 500 lines, product, tests and tools alike.

A longer one is split by its jobs. Java is not held to it yet: `cachemgr/jvm/java/Hook.java` has
619 lines.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

ROOT = Path(__file__).parent.parent
TREES: Final = ("matcher", "cachemgr", "scheduler", "migrations", "bench", "tests", ".ci")
MOST_LINES: Final = 500


def test_no_module_is_longer_than_500_lines() -> None:
    modules = [path for tree in TREES for path in (ROOT / tree).rglob("*.py")]
    assert len(modules) > 1000
    lines = {str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in modules}
    assert {name: n for name, n in sorted(lines.items()) if n > MOST_LINES} == {}


def test_no_two_test_modules_have_one_name() -> None:
    """pytest takes the second for the first, in whichever process meets both."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, n in names.items() if n > 1] == []
