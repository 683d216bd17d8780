"""The Java that Spark is started with."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from cachemgr.errors import ConfigurationError, ErrorCode

LEAST: Final = 17
FIX: Final = f"install a JDK {LEAST} or 21, and let JAVA_HOME name it"


class NoJavaError(ConfigurationError):
    """There is no Java that Spark starts with.

    Args:
        why: Where it was looked for, and what is there.
    """

    def __init__(self, why: str) -> None:
        super().__init__(ErrorCode.NO_JAVA, f"Spark needs Java {LEAST} or newer, and {why}: {FIX}")


@dataclass(frozen=True, slots=True)
class Java:
    """A Java.

    Args:
        program: Its path; where it would be, if there is none.
        told: What it says of itself; empty if there is none.
        major: Its version; None if it does not say.
    """

    program: str
    told: str
    major: int | None

    @property
    def problem(self) -> str | None:
        """Why Spark does not start with it, as far as that is known."""
        if not self.told:
            return f"there is no Java at {self.program}"
        if self.major is not None and self.major < LEAST:
            return f"{self.program} is {self.told}"
        return None


def java() -> Java:
    """The one that Spark takes: that of JAVA_HOME, or else the first of PATH."""
    home = os.environ.get("JAVA_HOME")
    program = f"{home}/bin/java" if home else shutil.which("java") or ""
    text = ""
    with suppress(OSError, subprocess.TimeoutExpired):
        command = [program or "java", "-version"]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60)
        text = answer.stderr or answer.stdout
    version = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    major = int(version[2] or 0) if version and version[1] == "1" else None  # 1.8 is 8
    if version and major is None:
        major = int(version[1])
    lines = [line for line in text.splitlines() if "version" in line] or text.splitlines()[:1]
    return Java(program or "any place of PATH", lines[0] if lines else "", major)


def refuse_old() -> None:
    """Refuse a Java that Spark does not start with, before it says so in lines of its own.

    Raises:
        NoJavaError: There is none, or it is too old.
    """
    problem = java().problem
    if problem is not None:
        raise NoJavaError(problem)
