"""README as a new user follows it: its blocks as they stand, in a folder that holds nothing."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.processes import ROOT, SMALL_JVM, Started

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# what a small machine of tests needs, said where Spark's users say it
_DEFAULTS = {
    "spark.driver.memory": "700m",
    "spark.driver.extraJavaOptions": SMALL_JVM,
    "spark.ui.enabled": "false",
}


def _blocks(kind: str) -> list[str]:
    found = _BLOCK.findall((ROOT / "README.md").read_text())
    return [text for language, text in found if language == kind]


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """All that the commands wrote."""
    folder, conf = tmp_path_factory.mktemp("user"), tmp_path_factory.mktemp("conf")
    lines = "".join(f"{key} {value}\n" for key, value in _DEFAULTS.items())
    (conf / "spark-defaults.conf").write_text(lines)
    for text in _blocks("python"):
        (folder / text.split(maxsplit=2)[1]).write_text(text)
    setup, *commands = _blocks("sh")
    assert "make setup" in setup  # which made the environment that this test runs in
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    script = "\n".join(["unset ${!CACHEMGR_@}", *commands])
    running = Started.run(
        ["bash", "-euc", script],
        tmp_path_factory.mktemp("log") / "log",
        folder,
        {"PATH": path, "SPARK_CONF_DIR": str(conf), "COLUMNS": "200"},
    )
    try:
        assert running.process.wait(900) == 0, running.text()
    finally:
        running.kill()
    return running.text()


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
