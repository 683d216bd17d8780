"""Builds `cachemgr/jvm/relational-cache.jar` from the Java sources beside it: `make jar`.

The same sources and compiler give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Final

from cachemgr.jvm.jar import BUILD, JAR, Build
from tests import spark_start

SOURCES: Final = JAR.with_name("java")
# The oldest time that a zip file knows: that of the build would differ each time.
_NO_TIME: Final = (1980, 1, 1, 0, 0, 0)
# The oldest Java that Spark runs on.
_RELEASE: Final = "17"


def sources() -> list[Path]:
    """The Java sources."""
    return sorted(SOURCES.glob("*.java"))


def digest(files: Iterable[Path]) -> str:
    """SHA-256 of names and contents.

    Args:
        files: In the order in which they count.
    """
    found = hashlib.sha256()
    for file in files:
        found.update(f"{file.name}\0{file.read_text('utf-8')}\0".encode())
    return found.hexdigest()


def compiler() -> str | None:
    """What the compiler of Java calls itself; None if there is none."""
    try:
        done = subprocess.run(["javac", "-version"], capture_output=True, text=True)
    except OSError:
        return None
    return (done.stdout or done.stderr).strip()


def write(jar: Path) -> None:
    """Build the jar.

    Args:
        jar: Where to.

    Raises:
        subprocess.CalledProcessError: The sources do not compile, which the compiler has told.
    """
    from pyspark.find_spark_home import _find_spark_home

    path = f"{Path(_find_spark_home(), 'jars', '*')}:{spark_start.class_path()}"
    with tempfile.TemporaryDirectory() as folder:
        command = ["javac", "-nowarn", "-Xlint:-options", "--release", _RELEASE]
        command += ["-cp", path, "-d", folder, *map(str, sources())]
        subprocess.run(command, check=True, capture_output=True, text=True)
        made = {
            str(file.relative_to(folder)): file.read_bytes()
            for file in Path(folder).rglob("*.class")
        }
    told = Build(
        sources=digest(sources()),
        spark=version("pyspark"),
        delta=version("delta-spark"),
        javac=compiler() or "",
    )
    made[BUILD] = (json.dumps(asdict(told), indent=1) + "\n").encode()
    with zipfile.ZipFile(jar, "w") as files:
        for name in sorted(made):
            # not compressed: that would depend on the library
            files.writestr(zipfile.ZipInfo(name, _NO_TIME), made[name])


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
