"""The jar with our Java classes, which `make jar` (tests/jar.py) builds from `java/`.

It is committed, so that nobody who installs us needs a compiler of Java.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

JAR: Final = Path(__file__).with_name("relational-cache.jar")
BUILD: Final = "relationalcache/build.json"


@dataclass(frozen=True, slots=True)
class Build:
    """What a jar was built from.

    Args:
        sources: SHA-256 of the Java sources.
        spark: The version of Spark whose classes it was compiled against.
        delta: The same of Delta.
        javac: The compiler.
    """

    sources: str
    spark: str
    delta: str
    javac: str


def build_of(jar: Path = JAR) -> Build:
    """What a jar was built from.

    Args:
        jar: The jar; ours.

    Raises:
        OSError: There is none.
    """
    with zipfile.ZipFile(jar) as files:
        return decode_build(files.read(BUILD).decode("utf-8"))


def decode_build(text: str) -> Build:
    """What `BUILD` says.

    Args:
        text: Its content.
    """
    return Build(**json.loads(text))
