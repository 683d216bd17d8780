"""What is off with an older Spark is there at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from cachemgr.sparks import MINORS
from tests.older_sparks import SINCE, why_off

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("beginning", SINCE)
def test_each_is_a_test_of_ours(beginning: str) -> None:
    file, _, test = beginning.partition("::")
    name, _, case = test.partition("[")
    assert f"def {name}" in (ROOT / file).read_text()
    file_of_cases, _, title = case.partition(": ")
    if file.endswith("test_fixtures.py"):
        (found,) = (ROOT / "tests").rglob(f"{file_of_cases}.sql")
        assert title in found.read_text()


def test_nothing_is_off_with_the_newest() -> None:
    assert [each for each in SINCE if why_off(each, f"{MINORS[-1]}.0")] == []
