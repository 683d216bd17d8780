"""Gestures on a table's folder that no SQL has: what operators and other programs do to it.

`!remove T`, `!copy T`, `!put back T` (of the last copy), `!vacuum T` (what the newest version does
not read is gone; Delta's own VACUUM takes half a minute), `!checkpoint T`.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any


def carry_out(gesture: str, tables: Path, spark: Any) -> None:
    """Do one gesture.

    Args:
        gesture: Its text.
        tables: The folder in which the tables lie, each under its name.
        spark: A session.
    """
    what, table = gesture.removeprefix("!").rsplit(" ", 1)
    place, copy = tables / table, tables.parent / f"copy of {table}"
    if what == "remove":
        shutil.rmtree(place, ignore_errors=True)
    elif what == "copy":
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(place, copy)
    elif what == "put back":
        if not copy.exists():
            raise NotApplicable("there is no copy")
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(copy, place)
        spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    elif what == "vacuum":
        _vacuum(place, spark.table(table))
    elif what == "checkpoint":
        logs = spark._jvm.org.apache.spark.sql.delta.DeltaLog
        logs.forTable(spark._jsparkSession, str(place)).checkpoint()
    else:
        raise ValueError(f"unknown gesture {gesture}")


class NotApplicable(Exception):
    """The gesture has nothing to work on, as a step of a shortened walk may have."""


def _vacuum(place: Path, frame: Any) -> None:
    """Data files only: a vector that is left over does no harm."""
    read = {Path(_path(uri)).name for uri in frame.inputFiles()}
    for file in place.rglob("*.parquet"):
        inside = file.relative_to(place).parts[0]
        if inside not in ("_delta_log", "_change_data") and file.name not in read:
            file.unlink()


def _path(uri: str) -> str:
    from urllib.parse import unquote, urlparse

    return unquote(urlparse(uri).path)
