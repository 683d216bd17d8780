"""README as a new user follows it: its blocks as they stand, in a folder that holds nothing."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.readme import follow


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """All that the commands wrote."""
    return follow(Path(sys.executable).parent, tmp_path_factory.mktemp("user"))


pytestmark = [pytest.mark.spark, pytest.mark.slow]

# `show()` of a roll-up is one more as soon as it is answered from a cache, too
HITS = 2


def test_the_cache_answers_in_the_script_and_in_another_process(followed: str):
    assert re.search(r"^\|result +\|hit +\|$", followed, re.MULTILINE), followed
    assert re.search(r"^\|cache +\|sales_by_day +\|$", followed, re.MULTILINE)
    assert "hit sales_by_day; 5 rows" in followed, followed
    hits = re.search(r"^(\d+) hits?, (\d+) miss", followed, re.MULTILINE)
    assert hits is not None and int(hits[1]) >= HITS, followed


def test_the_commands_show_the_cache(followed: str):
    assert re.search(r"^default +sales_by_day +HEALTHY +ON DEMAND AUTO +STRICT", followed, re.M)
    assert "Starting Spark" in followed


def test_nothing_of_ours_warns_and_maven_keeps_quiet(followed: str):
    assert ":: resolution report ::" not in followed and "Ivy Default Cache" not in followed
    warnings = [line for line in followed.splitlines() if " WARN " in line]
    sparks = ("Utils: ", "NativeCodeLoader: ")  # of the machine's names and libraries
    assert [w for w in warnings if not any(s in w for s in sparks)] == []
    assert "deprecated" not in followed and "Traceback" not in followed
