"""The extension in spark-sql, and in a JVM that a Python program drives."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.doors.spark_server import server_conf, spark_sql
from tests.processes import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_TABLE = "CREATE TABLE t USING delta AS SELECT id, id % 3 AS k FROM range(3000)"
_CREATE = "CREATE RELATIONAL CACHE c AS SELECT k, COUNT(*) AS n FROM t GROUP BY k"
_REFRESH = "REFRESH RELATIONAL CACHE c"
_QUERY = "SELECT k, COUNT(*) FROM t GROUP BY k"


def test_spark_sql_hits_and_takes_statements(tmp_path: Path) -> None:
    texts = [_TABLE, _CREATE, _REFRESH, f"EXPLAIN {_QUERY}", f"{_QUERY} ORDER BY k"]
    texts += ["SET statement=SHOW", "${statement} RELATIONAL CACHES", "DROP RELATIONAL CACHE c"]
    done = spark_sql(tmp_path, server_conf(tmp_path), texts)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "default.c\tcreated" in done.stdout and "default.c\tPUBLISHED" in done.stdout
    assert "/caches/" in done.stdout
    assert "0\t1000\n1\t1000\n2\t1000\n" in done.stdout
    assert "default.c\tdropped" in done.stdout
    for failure in ("Traceback", "INTERNAL_ERROR", "SIDECAR_LOST"):
        assert failure not in done.stderr


_PROGRAM = """
import sys, time
from pyspark.sql import SparkSession
import cachemgr

builder = SparkSession.builder.master("local[2]")
for key, value in {conf!r}.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
if sys.argv[1] == "enabled":
    cachemgr.enable(spark)
    for text in {texts!r}:
        spark.sql(text).collect()
else:
    spark.table("t").count()  # nobody of ours is called: the extension sees it

end = time.monotonic() + 90
java = spark._jvm.java.lang.Thread.getAllStackTraces
def sidecar():
    threads = java().keySet().toArray()
    return any(t.getName() == "relational-cache-sidecar" for t in threads)
while time.monotonic() < end:
    found = spark.sql("EXPLAIN {query}").collect()[0][0]
    if "/caches/" in found:
        break
    time.sleep(0.5)
rows = sorted(tuple(r) for r in spark.sql("{query}").collect())
print("RESULT", "/caches/" in found, sidecar(), rows)
"""


def test_in_a_python_driver_it_serves_where_nobody_of_ours_is_called(tmp_path: Path) -> None:
    conf = server_conf(tmp_path)
    place = tmp_path / "warehouse" / "t"
    table = f"CREATE TABLE IF NOT EXISTS t USING delta LOCATION '{place}'"
    first = _TABLE.replace("USING delta", f"USING delta LOCATION '{place}'")
    enabled = _run(tmp_path, conf, "enabled", [first, _CREATE, _REFRESH])
    assert enabled == "True False [(0, 1000), (1, 1000), (2, 1000)]"  # by Python itself
    program = _PROGRAM.replace('spark.table("t")', f'spark.sql({table!r}); spark.table("t")')
    served = _run(tmp_path, conf, "served", [], program)
    assert served == "True True [(0, 1000), (1, 1000), (2, 1000)]"


def _run(
    folder: Path, conf: dict[str, str], how: str, texts: list[str], program: str = _PROGRAM
) -> str:
    script = folder / f"{how}.py"
    filled = program.replace("{conf!r}", repr(conf)).replace("{texts!r}", repr(texts))
    script.write_text(filled.replace("{query}", _QUERY))
    done = subprocess.run(
        [sys.executable, str(script), how],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    found = [line for line in done.stdout.splitlines() if line.startswith("RESULT")]
    assert found, done.stderr[-3000:]
    return found[0].removeprefix("RESULT ")
