"""The jars with our Java classes, one for each minor of Spark, which `make jar` (tests/jar.py)
builds from `java/` and `shims/`.

They are committed, so that nobody who installs us needs a compiler of Java. Each is whole: sources
that are the same compile to other bytecode where Spark has turned a class into an interface.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cachemgr.sparks import MINORS

BUILD: Final = "relationalcache/build.json"


@dataclass(frozen=True, slots=True)
class Build:
    """What a jar was built from.

    Args:
        sources: SHA-256 of the Java sources, those of other minors among them.
        spark: The minor of Spark whose classes it was compiled against.
        delta: The version of Delta.
        javac: The compiler.
        minors: Those that this release has a jar for.
    """

    sources: str
    spark: str
    delta: str
    javac: str
    minors: tuple[str, ...] = MINORS


def jar_for(minor: str) -> Path:
    """The jar for a minor of Spark.

    Args:
        minor: One of `MINORS`.
    """
    return Path(__file__).with_name(f"relational-cache-{minor}.jar")


def build_of(jar: Path) -> Build:
    """What a jar was built from.

    Args:
        jar: The jar.

    Raises:
        OSError: There is none.
    """
    with zipfile.ZipFile(jar) as files:
        return decode_build(files.read(BUILD).decode("utf-8"))


def decode_build(text: str) -> Build:
    """What `BUILD` says, as far as this release knows it.

    Args:
        text: Its content.
    """
    told = json.loads(text)
    sources, spark, delta, javac = (
        str(told.get(name, "")) for name in ("sources", "spark", "delta", "javac")
    )
    return Build(sources, spark, delta, javac, tuple(told.get("minors", ())))
