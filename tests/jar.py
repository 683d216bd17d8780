"""Builds `cachemgr/jvm/relational-cache.jar` from the Java sources beside it: `make jar`.

The same sources and compiler give the same bytes.
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
from cachemgr.jvm.jar import BUILD, JAR, Build
from tests import spark_start
from tests.javac import compiled, compiler, write_jar

SOURCES: Final = JAR.with_name("java")
# What the classes read beside them.
RESOURCES: Final = {"relationalcache/recognise.txt": EXPRESSION.encode()}


def sources() -> list[Path]:
    """The Java sources."""
    return sorted(SOURCES.rglob("*.java"))


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


def write(jar: Path) -> None:
    """Build the jar.

    Args:
        jar: Where to.

    Raises:
        OSError: There is no compiler of Java.
        subprocess.CalledProcessError: The sources do not compile; its stderr says why.
    """
    files = compiled(sources(), spark_start.class_path())
    told = Build(
        sources=digest(sources()),
        spark=version("pyspark"),
        delta=version("delta-spark"),
        javac=compiler() or "",
    )
    files |= RESOURCES
    files[BUILD] = (json.dumps(asdict(told), indent=1) + "\n").encode()
    write_jar(jar, files)


def main() -> int:
    """Build ours anew."""
    try:
        write(JAR)
    except OSError:
        sys.stderr.write("there is no javac: install a JDK 17 or later\n")
        return 1
    except subprocess.CalledProcessError as error:
        sys.stderr.write(error.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
