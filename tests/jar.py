"""Builds the jars in `cachemgr/jvm` from the Java sources beside them: `make jar`.

A jar for each minor of Spark, of the common sources (`java/`) and of what differs (`shims/`, whose
folders are named by the minors that they are for), compiled against the jars of that Spark. The
same sources and compiler give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Final

from cachemgr.ddl.recognise import EXPRESSION
from cachemgr.jvm.jar import BUILD, Build, jar_for
from cachemgr.sparks import DELTA, MINORS, minor_of
from tests import spark_start
from tests.javac import compiled, compiler, write_jar

COMMON: Final = jar_for(MINORS[0]).with_name("java")
SHIMS: Final = COMMON.with_name("shims")
# What the classes read beside them.
RESOURCES: Final = {"relationalcache/recognise.txt": EXPRESSION.encode()}


def sources() -> list[Path]:
    """The Java sources, those of all minors of Spark."""
    return sorted([*COMMON.rglob("*.java"), *SHIMS.rglob("*.java")])


def serves(shims: str, minor: str) -> bool:
    """Whether a folder of shims is for a minor of Spark.

    Args:
        shims: A minor, or the first and the last of some.
        minor: The minor.

    >>> [serves("4.1-4.2", minor) for minor in ("4.0", "4.1", "4.2", "4.10")]
    [False, True, True, False]
    """
    first, _, last = shims.partition("-")
    low, high, asked = (tuple(map(int, m.split("."))) for m in (first, last or first, minor))
    return low <= asked <= high


def sources_for(minor: str) -> list[Path]:
    """The Java sources that one jar is made of.

    Args:
        minor: A minor of Spark.
    """
    folders = [folder for folder in sorted(SHIMS.iterdir()) if serves(folder.name, minor)]
    return sorted([*COMMON.rglob("*.java"), *(f for d in folders for f in d.rglob("*.java"))])


def digest(files: Iterable[Path]) -> str:
    """SHA-256 of names and contents, those of the resources among them.

    Args:
        files: In the order in which they count.
    """
    found = hashlib.sha256()
    for name, content in RESOURCES.items():
        found.update(f"{name}\0".encode() + content)
    for file in files:
        found.update(f"{file.name}\0{file.read_text('utf-8')}\0".encode())
    return found.hexdigest()


def write(jar: Path, minor: str) -> None:
    """Build a jar.

    Args:
        jar: Where to.
        minor: That of the Spark which is installed here.

    Raises:
        OSError: There is no compiler of Java.
        subprocess.CalledProcessError: The sources do not compile; its stderr says why.
    """
    files = compiled(sources_for(minor), spark_start.class_path())
    told = Build(sources=digest(sources()), spark=minor, delta=DELTA, javac=compiler() or "")
    files |= RESOURCES
    files[BUILD] = (json.dumps(asdict(told), indent=1) + "\n").encode()
    write_jar(jar, files)


def main() -> int:
    """Build ours anew for the Spark that is installed here."""
    minor = minor_of(version("pyspark"))
    try:
        write(jar_for(minor), minor)
    except OSError:
        sys.stderr.write("there is no javac: install a JDK 17 or later\n")
        return 1
    except subprocess.CalledProcessError as error:
        sys.stderr.write(error.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
