"""Generates the SSB tables as Delta, or takes those that are already there.

A table counts as there only if its marker says so: the marker is written after the rows, with
scale, seed and generator version, so a table that a killed run left half-written is made again.
Spark's default catalog lives in memory: the tables are registered in each session anew.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from cachemgr.demo.errors import DemoError
from cachemgr.demo.ssb_rows import select
from cachemgr.demo.ssb_schema import TABLES, Sizes, create_table, sizes

#: Raise it whenever the rows or the schema change: tables of another version are made again.
GENERATOR_VERSION = 1
_SMALL_FILE_ROWS = 750_000
_MAX_FILE_ROWS = 1_500_000
_HUGE_METHOD = "spark.sql.codegen.hugeMethodLimit"

#: Called with a table's name and row count; what it returns is open while the table is written.
Watch = Callable[[str, int], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class TableState:
    """One SSB table after `prepare`.

    Args:
        name: The table.
        rows: Its row count.
        reused: Whether it was already there.
    """

    name: str
    rows: int
    reused: bool


def prepare(
    spark: SparkSession,
    root: Path,
    scale: float,
    seed: int,
    watch: Watch | None = None,
) -> tuple[TableState, ...]:
    """Makes the five tables, or reuses them, and registers them in the session's schema.

    Args:
        spark: A session with Delta.
        root: Local folder that holds the tables.
        scale: SSB scale factor, above 0; 1 is 6,000,000 lineorder rows.
        seed: Seed; the same seed and scale give the same rows on every machine.
        watch: Called around the writing of each table.

    Returns:
        The tables, dimensions first.

    Raises:
        DemoError: The scale is not above 0, or a name is taken by another table.
    """
    if not (0 < scale < math.inf):
        raise DemoError(f"the scale is {scale}; give a number above 0, for example --scale 0.1")
    counts = sizes(scale)
    return tuple(_prepare_table(spark, root, name, counts, (scale, seed), watch) for name in TABLES)


def table_path(root: Path, name: str) -> Path:
    """Where a table's Delta files are.

    Args:
        root: The folder given to `prepare`.
        name: The table.

    Returns:
        Its folder.
    """
    return root / name


def _prepare_table(
    spark: SparkSession,
    root: Path,
    name: str,
    counts: Sizes,
    identity: tuple[float, int],
    watch: Watch | None,
) -> TableState:
    path, marker = table_path(root, name), root / f"{name}.made.json"
    wanted = {
        "scale": identity[0],
        "seed": identity[1],
        "generator": GENERATOR_VERSION,
        "rows": counts.of(name),
        "sizes": asdict(counts),
    }
    reused = path.is_dir() and _read(marker) == wanted
    _free_name(spark, name, path, drop=not reused)
    if not reused:
        marker.unlink(missing_ok=True)
        shutil.rmtree(path, ignore_errors=True)
        _forget_delta_logs(spark)
        path.mkdir(parents=True)
    spark.sql(create_table(name, str(path.resolve())))
    if not reused:
        opened = watch(name, counts.of(name)) if watch else nullcontext()
        with opened, _small_methods(spark):
            rows = spark.sql(select(name, counts, identity[1], _files(counts.of(name))))
            rows.write.format("delta").mode("append").save(str(path.resolve()))
        marker.write_text(json.dumps(wanted, indent=1), encoding="utf-8")
    return TableState(name, counts.of(name), reused)


def _files(rows: int) -> int:
    return max(1, min(8, math.ceil(rows / _SMALL_FILE_ROWS)), math.ceil(rows / _MAX_FILE_ROWS))


def _read(marker: Path) -> object:
    try:
        return json.loads(marker.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _free_name(spark: SparkSession, name: str, path: Path, *, drop: bool) -> None:
    """Refuses a name that another table has; forgets ours when its files are to be replaced."""
    if not spark.catalog.tableExists(name):
        return
    described = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    places = [row["data_type"] for row in described if row["col_name"] == "Location"]
    if not places or Path(places[0].removeprefix("file:")).resolve() != path.resolve():
        raise DemoError(
            f"table {name} already exists in this session at {places or 'no location'}; "
            "use another schema (CREATE SCHEMA ssb; USE ssb) for the SSB tables"
        )
    if drop:
        spark.sql(f"DROP TABLE {name}")


def _forget_delta_logs(spark: SparkSession) -> None:
    # Delta remembers the log of a path: without this it would go on from the removed table.
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


@contextmanager
def _small_methods(spark: SparkSession) -> Iterator[None]:
    """Keeps the generated code below what the JVM compiles.

    The JVM never compiles a method above 8,000 bytes; lineorder's is 12,700, and interpreting
    it took eight times as long as splitting it.
    """
    before = spark.conf.get(_HUGE_METHOD)
    spark.conf.set(_HUGE_METHOD, "8000")
    try:
        yield
    finally:
        spark.conf.set(_HUGE_METHOD, str(before))
