"""The Java that Spark is started with."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from typing import Final

from cachemgr.errors import ConfigurationError, ErrorCode

LEAST: Final = 17
FIX: Final = f"install a JDK {LEAST} or 21, and point JAVA_HOME to it"
_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')  # 1.8 is 8


class NoJavaError(ConfigurationError):
    """There is no Java that Spark starts with.

    Args:
        why: Where it was looked for, and what is there.
    """

    def __init__(self, why: str) -> None:
        super().__init__(ErrorCode.NO_JAVA, f"Spark needs Java {LEAST} or newer, and {why}: {FIX}")


@dataclass(frozen=True, slots=True)
class Java:
    """What is known of a Java.

    Args:
        program: Its path.
        told: What it says of its version; empty if it says nothing.
        major: Its version; None if it is not known.
        problem: Why Spark does not start with it; None if it does, or if nobody knows.
    """

    program: str
    told: str = ""
    major: int | None = None
    problem: str | None = None


def java() -> Java:
    """The one that Spark takes: that of JAVA_HOME, or else the first of PATH."""
    home = os.environ.get("JAVA_HOME")
    program = f"{home}/bin/java" if home else shutil.which("java")
    if program is None:
        return Java("java", problem="there is none on PATH")
    try:
        answer = subprocess.run(
            [program, "-version"], capture_output=True, text=True, errors="replace", timeout=60
        )
    except (FileNotFoundError, PermissionError):
        return Java(program, problem=f"there is none at {program}")
    except (OSError, subprocess.TimeoutExpired):  # a machine that is out of breath
        return Java(program)
    lines = (answer.stderr or answer.stdout).splitlines()
    found = ((line, version) for line in lines if (version := _VERSION.search(line)))
    told, version = next(found, (lines[0] if lines else "", None))
    major = int(version[1]) if version else None
    too_old = major is not None and major < LEAST
    return Java(program, told, major, f"{program} is {told}" if too_old else None)


def refuse_old() -> None:
    """Refuse a Java that Spark does not start with, before it says so in lines of its own.

    Raises:
        NoJavaError: There is none, or it is too old.
    """
    problem = java().problem
    if problem is not None:
        raise NoJavaError(problem)
