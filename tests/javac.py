"""The compiler of Java, where there is one."""

from __future__ import annotations

import subprocess
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

# The oldest time that a zip file knows: that of the build would differ each time.
_NO_TIME: Final = (1980, 1, 1, 0, 0, 0)
# The oldest Java that Spark runs on.
_RELEASE: Final = "17"


def compiler() -> str | None:
    """What the compiler calls itself; None if there is none."""
    try:
        done = subprocess.run(["javac", "-version"], capture_output=True, text=True)
    except OSError:
        return None
    return (done.stdout or done.stderr).strip()


def compiled(sources: Iterable[Path], class_path: str) -> dict[str, bytes]:
    """The class files of sources, by their names in a jar.

    Args:
        sources: In any order.
        class_path: What they are compiled against, besides the jars of Spark.

    Raises:
        OSError: There is no compiler.
        subprocess.CalledProcessError: They do not compile; its stderr says why.
    """
    from pyspark.find_spark_home import _find_spark_home

    path = f"{Path(_find_spark_home(), 'jars', '*')}:{class_path}"
    with tempfile.TemporaryDirectory() as folder:
        command = ["javac", "-nowarn", "--release", _RELEASE, "-cp", path, "-d", folder]
        command += map(str, sources)
        subprocess.run(command, check=True, capture_output=True, text=True)
        found = Path(folder).rglob("*.class")
        return {str(file.relative_to(folder)): file.read_bytes() for file in found}


def write_jar(jar: Path, files: Mapping[str, bytes]) -> None:
    """Write a jar; the same files give the same bytes.

    Args:
        jar: Where to.
        files: Name to content.
    """
    with zipfile.ZipFile(jar, "w") as made:
        for name in sorted(files):
            # not compressed: that would depend on the library
            made.writestr(zipfile.ZipInfo(name, _NO_TIME), files[name])
