"""Environments outside of this tree, each with a Spark of its own or none, into which pip puts the
wheel: what runs in them sees nothing of the checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cachemgr.sparks import MINORS
from tests.processes import ROOT

# The newest patches that Delta's package can be installed with.
SPARKS = dict(zip(MINORS, ("4.0.5", "4.1.4", "4.2.0"), strict=True))
_PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "-q")


@dataclass(frozen=True)
class Installed:
    """An environment.

    Args:
        folder: Its own.
        spark: The version of Spark in it; empty if it has none.
    """

    folder: Path
    spark: str

    @property
    def programs(self) -> Path:
        """The folder of `python` and `cachemgr`."""
        return self.folder / "bin"

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """That of a process in it, which knows nothing of the checkout."""
        ours = ("CACHEMGR_", "PYTHON", "PYSPARK_", "SPARK_")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
        path = f"{self.programs}{os.pathsep}{kept['PATH']}"
        return {**kept, "PATH": path, "COLUMNS": "200", "NO_PROXY": "127.0.0.1", **(more or {})}

    def run(
        self, *words: str, folder: Path, more: Mapping[str, str] | None = None, code: int = 0
    ) -> str:
        """Run a program of it.

        Args:
            words: The program's name and what follows.
            folder: Where.
            more: More for its environment.
            code: How it is to end.

        Returns:
            What it wrote, to stdout first.
        """
        done = subprocess.run(
            [str(self.programs / words[0]), *words[1:]],
            cwd=folder,
            env=self.environment(more),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == code, (words, done.stdout[-3000:], done.stderr[-3000:])
        return done.stdout + done.stderr


def install(wheel: Path, folder: Path, *extras: str, spark: str = "") -> None:
    """A new environment with the wheel and what it needs.

    Args:
        wheel: The wheel.
        folder: A new folder.
        extras: Those to install.
        spark: A version; empty if the extras bring none.
    """
    venv.create(folder, with_pip=False, symlinks=True)
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [pin for pin in pins if not re.match("pyspark==", pin)]
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join([*pins, f"pyspark=={spark}" if spark else "", ""]))
    wanted = f"{wheel}[{','.join(extras)}]" if extras else str(wheel)
    python = str(folder / "bin" / "python")
    command = [*_PIP, "--python", python, "install", "-c", str(constraints), wanted]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
