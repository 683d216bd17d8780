"""Caches that one minor makes, another one refreshes, and each reads: `make sparks-between`.

For each pair of minors: the first makes caches over a table of every type, by the expressions of
`cases`; the second appends rows and refreshes them; after each of the two, every minor asks each
query with the caches and without. An answer that differs is a wrong row. What is known to be alike
has to hit everywhere, and what is no hit has to say `OTHER_SPARK`.

    python -m tests.harness.sparks.between [--pairs 4.2:4.0,…]

It needs the environments of all minors, as `make jar` makes them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from cachemgr.serving.other_spark import ALIKE
from cachemgr.sparks import MINORS
from tests.harness.sparks.cases import AGGREGATES, EDGES, SCALARS

ROOT: Final = Path(__file__).parents[3]
_OF_A_CACHE: Final = 8
# Values that depend on the order of rows, or are computed with aggregates.
_LEFT_OUT: Final = frozenset(
    {"FIRST(i)", "LAST(i)", *(t for t in AGGREGATES["collect_set"]), "MEDIAN(i)"}
)
_KEYS: Final = ("upper(s)", "lower(s)", "initcap(s)", "date_format(day, 'MMM d, y')", "hash(s, i)")
_MEASURES: Final = ("APPROX_COUNT_DISTINCT(i)", "HLL_SKETCH_AGG(i)", "MAX(upper(s))")
_FIRST_ROWS: Final = 60


def definitions() -> dict[str, str]:
    """The SELECTs of the caches by name: those of what is alike, some of each operator, and those
    of what is not."""
    found = {}
    for kind, table in (("keys", SCALARS), ("measures", AGGREGATES)):
        texts = [text for op, all_ in table.items() if op in ALIKE for text in all_[:2]]
        texts = [text for text in texts if text not in _LEFT_OUT]
        for start in range(0, len(texts), _OF_A_CACHE):
            name = f"alike_{kind}_{start // _OF_A_CACHE}"
            found[name] = _select(kind, texts[start : start + _OF_A_CACHE])
    for kind, text in (*(("keys", k) for k in _KEYS), *(("measures", m) for m in _MEASURES)):
        found[f"unlike_{len(found)}"] = _select(kind, [text])
    return found


def _select(kind: str, texts: list[str]) -> str:
    shown = ", ".join(f"{text} AS c{i}" for i, text in enumerate(texts))
    if kind == "keys":
        return f"SELECT {shown}, COUNT(*) AS n FROM edge_rows GROUP BY {', '.join(texts)}"
    return f"SELECT {shown}, id % 3 AS g FROM edge_rows GROUP BY id % 3"


# -- in a process of each Spark ---------------------------------------------------------------


def _session(folder: str) -> Any:
    from pyspark.sql import SparkSession

    import cachemgr
    from tests.processes import SMALL_SPARK

    builder = SparkSession.builder.master("local[2]")
    for key, value in {
        **SMALL_SPARK,
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "false",
        "spark.cachemgr.metastore.url": f"sqlite:///{folder}/metastore.db",
        "spark.cachemgr.location": f"{folder}/caches",
    }.items():
        builder = builder.config(key, value)
    spark = cachemgr.configure_spark_with_cachemgr(builder).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    spark.sql(EDGES)
    place = f"{folder}/rows"
    if not Path(place).exists():
        first = spark.table("edges").where(f"id < {_FIRST_ROWS}")
        first.coalesce(1).write.format("delta").save(place)
    spark.sql(f"CREATE TABLE edge_rows USING delta LOCATION '{place}'")
    cachemgr.enable(spark)
    return spark


def _refreshed(spark: Any, names: list[str]) -> dict[str, str]:
    """Refresh caches; why some could not be."""
    from pyspark.errors import PySparkException

    from cachemgr.errors import CacheManagerError

    failed = {}
    for name in names:
        try:
            spark.sql(f"REFRESH RELATIONAL CACHE {name}")
        except (CacheManagerError, PySparkException) as error:
            failed[name] = str(error).splitlines()[0]
    return failed


def make(folder: str) -> dict[str, Any]:
    """Make the caches and refresh them."""
    from pyspark.errors import PySparkException

    from cachemgr.errors import CacheManagerError

    spark, refused = _session(folder), {}
    for name, select in definitions().items():
        try:
            spark.sql(f"CREATE RELATIONAL CACHE {name} AS {select}")
        except (CacheManagerError, PySparkException) as error:
            refused[name] = str(error).splitlines()[0]
    made = [name for name in definitions() if name not in refused]
    return {"refused": refused, "failed": _refreshed(spark, made)}


def append(folder: str) -> dict[str, Any]:
    """Append rows and refresh what there is."""
    spark = _session(folder)
    rows = spark.table("edges").where(f"id >= {_FIRST_ROWS}")
    rows.coalesce(1).write.format("delta").mode("append").save(f"{folder}/rows")
    shown = spark.sql("SHOW RELATIONAL CACHES").collect()
    failed = _refreshed(spark, [row["name"] for row in shown])
    ways = Counter(row["last_mode"] for row in shown if "last_mode" in row)
    return {"refused": {}, "failed": failed, "ways": dict(ways)}


def ask(folder: str) -> dict[str, Any]:
    """What becomes of each query."""
    import cachemgr

    spark, outcomes, wrong = _session(folder), {}, []
    for name, select in definitions().items():
        spark.conf.set("spark.cachemgr.enabled", "false")
        without = sorted(map(repr, _shown(spark, select).collect()))
        spark.conf.set("spark.cachemgr.enabled", "true")
        frame = _shown(spark, select)
        before = cachemgr.counters(spark)["hits"]
        found = sorted(map(repr, frame.collect()))
        hit = cachemgr.counters(spark)["hits"] > before
        if found != without:
            wrong.append([name, [r for r in found if r not in without][:3], without[:3]])
        outcomes[name] = "HIT" if hit else _why(spark, select)
    return {"outcomes": outcomes, "wrong": wrong}


def _shown(spark: Any, select: str) -> Any:
    """All columns as texts: some days and moments are outside of Python's."""
    frame = spark.sql(select)
    kinds = {field.name: field.dataType.simpleString() for field in frame.schema}
    return frame.selectExpr(
        *(
            f"hex({n}) AS {n}" if k == "binary" else f"CAST({n} AS STRING) AS {n}"
            for n, k in kinds.items()
        )
    )


def _why(spark: Any, select: str) -> str:
    import cachemgr

    told = cachemgr.explain(spark, select)
    return ", ".join(sorted({reason.code.value for reason in told.reasons})) or "MISS"


# -- the pairs --------------------------------------------------------------------------------


def _python(minor: str) -> str:
    folder = ".venv" if minor == MINORS[-1] else f".venv-{minor}"
    return str(ROOT / folder / "bin" / "python")


def _step(minor: str, step: str, folder: str) -> dict[str, Any]:
    words = [_python(minor), "-m", __spec__.name, "--step", step, "--folder", folder]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=1800)
    if done.returncode != 0:
        raise RuntimeError(f"Spark {minor} could not {step}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def pair(maker: str, other: str) -> Iterator[str]:
    """All that is wrong with caches that one minor makes and another one refreshes."""
    with tempfile.TemporaryDirectory() as folder:
        for by, step in ((maker, "make"), (other, "append")):
            told = _step(by, step, folder)
            print(f"{maker} makes, {other} refreshes: {step} by {by}: {told}", flush=True)
            yield from (f"{by} {step}: {name}: {why}" for name, why in told["failed"].items())
            for reader in MINORS:
                found = _step(reader, "ask", folder)
                count = Counter(found["outcomes"].values())
                print(f"  read by {reader}: {dict(count)}", flush=True)
                yield from (f"{reader} after {step} by {by}: {row}" for row in found["wrong"])
                for name, outcome in found["outcomes"].items():
                    fair = outcome == "HIT" or name in told["refused"]
                    if not fair and (name.startswith("alike") or "OTHER_SPARK" not in outcome):
                        yield f"{reader} after {step} by {by}: {name} is {outcome}"


def main() -> int:
    """One step in this Spark, or all pairs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--step", choices=("make", "append", "ask"))
    parser.add_argument("--folder")
    parser.add_argument("--pairs", default=",".join(f"{a}:{b}" for a in MINORS for b in MINORS))
    args = parser.parse_args()
    if args.step:
        steps = {"make": make, "append": append, "ask": ask}
        print(json.dumps(steps[args.step](args.folder)), flush=True)
        os._exit(0)  # nothing is to be told by a Spark that ends
    trouble = [t for each in args.pairs.split(",") for t in pair(*each.split(":"))]
    print("\n".join(trouble) or "no row differs, and all that is alike hits")
    return 1 if trouble else 0


if __name__ == "__main__":
    sys.exit(main())
