"""The Java that Spark is started with."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cachemgr.errors import ConfigurationError, ErrorCode
from cachemgr.sparks import on_java

if TYPE_CHECKING:  # what commands without Spark import as well
    from pyspark.sql import SparkSession

LEAST: Final = 17
# Java 23 has no `Subject.getSubject` any more, which the Hadoop of these needs to start.
NEWEST: Final[Mapping[str, int]] = {"4.0": 22, "4.1": 22}
FIX: Final = f"install a JDK {LEAST} or 21, and point JAVA_HOME to it"
_JAVA: Final = "java.specification.version"
_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')  # 1.8 is 8


class NoJavaError(ConfigurationError):
    """There is no Java that Spark starts with.

    Args:
        why: Where it was looked for, and what is there.
        spark: The minor of the Spark that is to start; None if there is none.
    """

    def __init__(self, why: str, spark: str | None = None) -> None:
        newest = NEWEST.get(spark or "")
        wanted = f"Java {LEAST} or newer" if newest is None else f"Java {LEAST} to {newest}"
        name = "Spark" if newest is None else f"Spark {spark}"
        super().__init__(ErrorCode.NO_JAVA, f"{name} needs {wanted}, and {why}: {FIX}")


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


def java(spark: str | None = None) -> Java:
    """The one that Spark takes: that of JAVA_HOME, or else the first of PATH.

    Args:
        spark: The minor of the Spark that is to start with it; None if it is not known.
    """
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
    newest = NEWEST.get(spark or "", major)
    fits = major is None or LEAST <= major <= (newest or major)
    return Java(program, told, major, None if fits else f"{program} is {told}")


def refuse_unfit(spark: str | None = None) -> None:
    """Refuse a Java that Spark does not start with, before it says so in lines of its own.

    Args:
        spark: The minor of the Spark that is to start; None if it is not known.

    Raises:
        NoJavaError: There is none, or it is too old or too new.
    """
    problem = java(spark).problem
    if problem is not None:
        raise NoJavaError(problem, spark)


def computing(spark: SparkSession) -> str:
    """What is written down of a running Spark with the rows that it computes.

    Args:
        spark: Any session.
    """
    jvm: Any = spark._jvm
    return on_java(spark.version, str(jvm.System.getProperty(_JAVA)))
