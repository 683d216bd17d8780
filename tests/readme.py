"""README as a new user follows it: its blocks as they stand, in a folder that holds nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from tests.processes import ROOT, SMALL_JVM, Started

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# what a small machine of tests needs, said where Spark's users say it
DEFAULTS = {
    "spark.driver.memory": "700m",
    "spark.driver.extraJavaOptions": SMALL_JVM,
    "spark.ui.enabled": "false",
}


def blocks(kind: str) -> list[str]:
    """The blocks of README in a language."""
    found = _BLOCK.findall((ROOT / "README.md").read_text())
    return [text for language, text in found if language == kind]


def defaults(folder: Path, **more: str) -> dict[str, str]:
    """An environment in which Spark finds what a small machine of tests needs.

    Args:
        folder: Where Spark's configuration may be written.
        more: More settings of Spark.
    """
    lines = "".join(f"{key} {value}\n" for key, value in {**DEFAULTS, **more}.items())
    (folder / "spark-defaults.conf").write_text(lines)
    return {"SPARK_CONF_DIR": str(folder)}


def follow(programs: Path, place: Path, inherited: Mapping[str, str] | None = None) -> str:
    """Do what README says after the installation.

    Args:
        programs: The folder of `python` and `cachemgr`.
        place: An empty folder.
        inherited: The environment to start from; this process's, if None.

    Returns:
        All that the commands wrote.
    """
    folder, conf = place / "user", place / "conf"
    folder.mkdir()
    conf.mkdir()
    for text in blocks("python"):
        (folder / text.split(maxsplit=2)[1]).write_text(text)
    setup, *commands = blocks("sh")
    assert "make setup" in setup  # which made the environment that this runs in
    script = "\n".join(["unset ${!CACHEMGR_@}", *commands])
    running = Started.run(
        ["bash", "-euc", script],
        place / "log",
        folder,
        {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": "200",
            **defaults(conf),
        },
        inherited,
    )
    try:
        assert running.process.wait(900) == 0, running.text()
    finally:
        running.kill()
    return running.text()
