"""Delta's jars, which Maven is asked for once and not at each start.

Spark resolves `spark.jars.packages` anew each time: that takes seconds, and a hundred lines on
stderr before anything of the user's. Here it happens once for each version, in a process whose
output nobody sees; what was found is written down, and later starts name the jars themselves.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from cachemgr.sparks import DELTA

_SECONDS: Final = 600
_MARK: Final = "jars: "
# As Ivy names its files: organisation, module, version.
_NOT_IN_SPARK: Final = ("io.delta_", "io.unitycatalog_")


def jars_of(coordinates: str) -> str | None:
    """The jars of some Maven coordinates and of all that these need.

    Args:
        coordinates: As in `spark.jars.packages`.

    Returns:
        A value for `spark.jars`; None if they cannot be had so: then let Spark ask Maven, which
        says what is wrong.
    """
    record = _record(coordinates)
    if record is None:
        return None
    known = _known(record)
    if known:
        return known
    print("Fetching Delta's jars (90 MB, once for each version)", file=sys.stderr, flush=True)
    found = _fetched(coordinates, record.parent / "ivy")
    if found is not None:
        with suppress(OSError):
            record.parent.mkdir(parents=True, exist_ok=True)
            part = record.with_suffix(f".{os.getpid()}")
            part.write_text(found)
            part.replace(record)
    return found


def jars_for_a_server(coordinates: str) -> tuple[Path, ...]:
    """Those of the jars that a Spark of one's own lacks, as far as they were fetched once.

    The others that Maven names (Jackson, Hadoop, Parquet) Spark has itself, in other versions: put
    on its class path they would keep it from starting.

    Args:
        coordinates: Delta's, for the Spark and the Delta that are meant.
    """
    record = _record(coordinates)
    paths = _paths(_known(record)) if record is not None else []
    return tuple(path for path in paths if path.name.startswith(_NOT_IN_SPARK))


def installed_spark() -> str:
    """The version of the PySpark that is installed here; empty if there is none. Pip may not know
    it: a notebook brings its own."""
    try:
        from pyspark import __version__
    except ImportError:
        return ""
    return str(__version__)


def delta_coordinates(minor: str) -> str:
    """Maven coordinates of the Delta that this release is built for.

    Args:
        minor: Of the Spark that is meant.
    """
    return f"io.delta:delta-spark_{minor}_2.13:{DELTA}"


def _record(coordinates: str) -> Path | None:
    """Where it is written down; nowhere for a user without a home, as some containers have them."""
    name = f"{re.sub('[^A-Za-z0-9.]+', '_', coordinates)}.jars"
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    except RuntimeError:
        return None
    return home / "relational-cache" / name


def _known(record: Path) -> str:
    """What was found before, if it is still there; else empty."""
    with suppress(OSError):
        jars = record.read_text().strip()
        if _are_there(jars):
            return jars
    return ""


def _paths(jars: str) -> list[Path]:
    return [Path(unquote(urlsplit(jar).path)) for jar in jars.split(",")]


def _are_there(jars: str) -> bool:
    return all(path.is_file() for path in _paths(jars))


def _fetched(coordinates: str, ivy: Path) -> str | None:
    """Asked with the user's own repositories first, and then as if there were none: Maven leaves
    the descriptions of modules in its repository without their jars; Ivy then looks for the jars
    nowhere else, and keeps in mind that it is to look there.

    Args:
        ivy: Where Ivy keeps the jars of the second attempt.
    """
    found = _resolved(coordinates, "")
    if found is not None:
        return found
    with tempfile.TemporaryDirectory() as empty:
        return _resolved(coordinates, f"-Duser.home={empty} -Divy.home={ivy}")


def _resolved(coordinates: str, options: str) -> str | None:
    given = f"{os.environ.get('SPARK_SUBMIT_OPTS', '')} {options}".strip()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "cachemgr.spark.delta_jars", coordinates],
            env={**os.environ, "SPARK_SUBMIT_OPTS": given},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = [line for line in done.stdout.splitlines() if line.startswith(_MARK)]
    found = lines[0].removeprefix(_MARK) if lines else ""
    return found if found and _are_there(found) else None


def _main(coordinates: str) -> None:
    """Have a JVM resolve them, and print what it found; no Spark is started."""
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    conf = SparkConf().set("spark.jars.packages", coordinates)
    gateway = launch_gateway(conf)  # type: ignore[no-untyped-call]
    print(_MARK + gateway.jvm.java.lang.System.getProperty("spark.jars"))


if __name__ == "__main__":
    _main(sys.argv[1])
