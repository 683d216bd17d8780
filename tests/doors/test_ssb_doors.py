"""The 13 queries of the Star Schema Benchmark hit through each door, with the rows that they have
without us; the cube is made through the Thrift server."""

from __future__ import annotations

import csv
import io
import os
import subprocess
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow.parquet as pq
import pyspark.sql.functions
import pytest
from pyspark.sql import SparkSession

import cachemgr
from cachemgr.demo.ssb_cube import CUBE_NAME, RECORD_PRESERVING_JOINS, cube_ddl
from cachemgr.demo.ssb_data import prepare, table_path
from cachemgr.demo.ssb_queries import QUERIES
from cachemgr.demo.ssb_schema import TABLES
from cachemgr.metastore import open_metastore
from cachemgr.roles import Role
from tests.doors.spark_server import Server, reads_cache, server, server_conf, spark_sql
from tests.doors.ssb_frames import ssb_frame
from tests.processes import CACHEMGR, ROOT, Replica, replica_settings, replicas, until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_SCALE = 0.005
_SEED = 7
_OFF = "SET spark.cachemgr.enabled=false"
# the cube has too many rows to interpret what is done with each
_COMPILED = {"spark.sql.codegen.factoryMode": "FALLBACK"}
_reads_cube = partial(reads_cache, cache=f"{CUBE_NAME}@v")
_TEXTS = [" ".join(query.sql().split()) for query in QUERIES]


def test_the_queries_hit_through_each_door(spark: SparkSession, tmp_path: Path) -> None:
    prepare(spark, tmp_path / "ssb", _SCALE, _SEED)
    for name in TABLES:  # the files stay; other tests have tables of these names
        spark.sql(f"DROP TABLE {name}")
    tables = [
        f"CREATE TABLE {name} USING delta LOCATION '{table_path(tmp_path / 'ssb', name)}'"
        for name in TABLES
    ]
    conf = server_conf(tmp_path) | _COMPILED
    with server(tmp_path, conf, tables) as made:
        made.sql(*RECORD_PRESERVING_JOINS, cube_ddl(), f"REFRESH RELATIONAL CACHE {CUBE_NAME}")
        expected = [_rows(found) for found in made.sql(_OFF, *_TEXTS)[1:]]
        assert [_rows(found) for found in made.sql(*_TEXTS)] == expected
        told = made.sql(*(f"EXPLAIN REWRITE {text}" for text in _TEXTS))
        assert [("result", "hit") in rows for rows in told] == [True] * len(_TEXTS)
        _by_connect(made, expected)
        _by_beeline(made, expected)
    _in_process(spark, tables, conf, expected)
    _by_spark_sql(tmp_path, conf, tables, expected)
    _by_service(tmp_path, conf, tables, expected)


def _by_connect(made: Server, expected: list[list[str]]) -> None:
    from pyspark.sql.connect import functions
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    remote = RemoteSession.builder.remote(f"sc://127.0.0.1:{made.connect}").create()
    try:
        _by_text_and_frame(remote, functions, expected)
    finally:
        remote.stop()


def _in_process(
    spark: SparkSession, tables: list[str], conf: dict[str, str], expected: list[list[str]]
) -> None:
    session = spark.newSession()
    for name in ("metastore.url", "location"):
        session.conf.set(f"spark.cachemgr.{name}", conf[f"spark.cachemgr.{name}"])
    session.sql("CREATE SCHEMA ssb_doors")
    session.sql("USE ssb_doors")
    for text in tables:
        session.sql(text)
    cachemgr.enable(session)
    try:
        _by_text_and_frame(session, pyspark.sql.functions, expected)
    finally:
        cachemgr.disable(session)
        session.sql("DROP SCHEMA ssb_doors CASCADE")


def _by_text_and_frame(spark: Any, functions: ModuleType, expected: list[list[str]]) -> None:
    for query, text, rows in zip(QUERIES, _TEXTS, expected, strict=True):
        for frame in (spark.sql(text), ssb_frame(spark, functions, query.name)):
            assert _rows(frame.collect()) == rows, query.name
            assert _reads_cube(_plan(frame)), query.name


def _plan(frame: Any) -> str:
    if hasattr(frame, "_jdf"):
        return str(frame._jdf.queryExecution().executedPlan())
    return str(frame._explain_string())


def _by_beeline(made: Server, expected: list[list[str]]) -> None:
    texts = [each for text in _TEXTS for each in ("SELECT 'begin' AS begin", text)]
    parts = made.beeline(*texts).stdout.split("begin\nbegin\n")[1:]
    # each with a line of names
    assert [_rows(list(csv.reader(io.StringIO(part)))[1:]) for part in parts] == expected
    told = made.beeline(*(f"EXPLAIN {text}" for text in _TEXTS)).stdout
    plans = told.split("== Physical Plan ==")[1:]
    assert [_reads_cube(plan) for plan in plans] == [True] * len(_TEXTS)


def _by_spark_sql(
    folder: Path, conf: dict[str, str], tables: list[str], expected: list[list[str]]
) -> None:
    texts = [each for text in _TEXTS for each in ("SELECT 'begin'", text, f"EXPLAIN {text}")]
    # the first query finds the sidecar that the first statement of ours waits for
    done = spark_sql(folder, conf, [*tables, "SHOW RELATIONAL CACHES", *texts])
    assert done.returncode == 0, done.stderr[-3000:]
    parts = [part.split("== Physical Plan ==") for part in done.stdout.split("begin\n")[1:]]
    rows = [[line.split("\t") for line in part[0].splitlines()] for part in parts]
    assert [_rows(found) for found in rows] == expected
    assert [_reads_cube(part[1]) for part in parts] == [True] * len(_TEXTS)


def _by_service(
    folder: Path, conf: dict[str, str], tables: list[str], expected: list[list[str]]
) -> None:
    url = conf["spark.cachemgr.metastore.url"]
    with open_metastore(url) as store:
        token = store.tokens.create("ann", Role.VIEWER)[1]
        for name in TABLES:
            store.select_grants.add(f"file:{table_path(folder / 'ssb', name)}", "ann", name)
    given = replica_settings(
        url, folder, tables, conf=_COMPILED, results_location=str(folder / "results")
    )
    given["CACHEMGR_LOCATION"] = conf["spark.cachemgr.location"]
    serve = Replica("serve", folder, given, token, ("serve", "--no-scheduler"))
    worker = Replica("worker", folder, given, "", ("worker", "--statements"))
    with replicas(serve, worker):
        until(serve.ready, 120, "the service is ready")
        asked = {"CACHEMGR_SERVER": serve.address, "CACHEMGR_TOKEN": token}
        for query, text, rows in zip(QUERIES, _TEXTS, expected, strict=True):
            out = folder / f"{query.name}.parquet"
            done = subprocess.run(
                [*CACHEMGR, "query", text, "-o", str(out)],
                env={**os.environ, "PYTHONPATH": str(ROOT), **asked},
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, done.stderr
            assert _rows(row.values() for row in pq.read_table(out).to_pylist()) == rows, query.name
            assert f"{CUBE_NAME}\n" in done.stderr and ", hit " in done.stderr, done.stderr


def _rows(found: Iterable[Iterable[object]]) -> list[str]:
    """Rows in an order of their own, as texts that all doors give alike."""
    return sorted("|".join("" if v in (None, "NULL") else str(v) for v in row) for row in found)
