"""`SPARK_ANSI_SQL_MODE=false` makes a session not ANSI though nobody set anything in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from cachemgr.config.result_settings import ANSI
from cachemgr.text.settings import service_defaults
from tests.processes import ROOT, SMALL_SPARK

PROGRAM = f"""
import json, sys
from pyspark.sql import SparkSession
import cachemgr
from cachemgr.delta.own_session import own_session
from cachemgr.jvm.session_conf import explicit_settings
builder = SparkSession.builder.master("local[1]")
for key, value in json.loads(sys.argv[1]).items():
    builder = builder.config(key, value)
spark = cachemgr.configure_spark_with_cachemgr(builder).getOrCreate()
plain = spark.newSession()
cachemgr.enable(spark)
spark.sql("CREATE TABLE t (k INT, v BIGINT) USING delta")
spark.sql("INSERT INTO t VALUES (1, 9223372036854775807), (1, 1), (2, 5)")
spark.sql("CREATE RELATIONAL CACHE c AS SELECT k, SUM(v) AS s FROM t GROUP BY k")
spark.sql("REFRESH RELATIONAL CACHE c")
def rows(session, query):
    return sorted(map(list, session.sql(query).collect()))
sums, tries = (f"SELECT k, {{f}}(v) AS s FROM t GROUP BY k" for f in ("SUM", "TRY_SUM"))
found = {{"told": explicit_settings(spark).get("{ANSI}")}}
found["sums"], found["plain sums"] = rows(spark, sums), rows(plain, sums)
found["hits"] = cachemgr.counters(spark)["hits"]
found["tries"], found["plain tries"] = rows(spark, tries), rows(plain, tries)
# by the settings that a refresh has from the metastore, in any application
stored = ({{}}, {{"{ANSI}": "false"}})
found["own"] = [own_session(spark, each).conf.get("{ANSI}") for each in stored]
spark.conf.set("{ANSI}", "true")
found["told when set"] = explicit_settings(spark).get("{ANSI}")
found["reasons"] = [each.code.value for each in cachemgr.explain(spark, sums).reasons]
print(json.dumps(found))
"""


@pytest.mark.spark
@pytest.mark.slow
def test_a_session_that_the_environment_makes_not_ansi(tmp_path):
    settings = {
        **SMALL_SPARK,
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
        "spark.cachemgr.metastore.url": f"sqlite:///{tmp_path / 'm.db'}",
        "spark.cachemgr.location": str(tmp_path / "caches"),
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(settings)],
        env=os.environ | {"SPARK_ANSI_SQL_MODE": "false"},
        capture_output=True, text=True, cwd=ROOT, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["told"] == "false"
    assert found["sums"] == found["plain sums"] == [[1, -(2**63)], [2, 5]]
    assert found["hits"] == 1
    assert found["tries"] == found["plain tries"] == [[1, None], [2, 5]]
    assert found["own"] == ["true", "false"]
    assert found["told when set"] == "true" and found["reasons"] == ["SETTINGS_DIFFER"]


@pytest.mark.parametrize(("value", "told"), [("false", "false"), ("true", None), (None, None)])
def test_texts_at_a_service_are_read_as_its_own_spark_would(monkeypatch, value, told):
    monkeypatch.delenv("SPARK_ANSI_SQL_MODE", raising=False)
    if value is not None:
        monkeypatch.setenv("SPARK_ANSI_SQL_MODE", value)
    assert service_defaults({}).get(ANSI) == told
    assert service_defaults({ANSI: "TRUE"})[ANSI] == "TRUE"


def test_texts_at_a_service_have_what_its_own_spark_sets_of_delta():
    rows, effort = "checkLatestSchemaOnRead", "snapshotPartitions"
    conf = {f"spark.databricks.delta.{name}": "false" for name in (rows, effort)}
    found = service_defaults(conf | {"spark.hadoop.parquet.read.filter": "x"})
    assert f"spark.databricks.delta.{rows}" in found and "spark.hadoop.parquet.read.filter" in found
    assert f"spark.databricks.delta.{effort}" not in found
