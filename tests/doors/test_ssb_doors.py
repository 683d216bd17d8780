"""The 13 queries of the Star Schema Benchmark, as SQL, hit through the Thrift server and through
Connect, with the rows that they have without us; the cube is made through the former."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cachemgr.demo.ssb_cube import CUBE_NAME, RECORD_PRESERVING_JOINS, cube_ddl
from cachemgr.demo.ssb_data import prepare, table_path
from cachemgr.demo.ssb_queries import QUERIES
from cachemgr.demo.ssb_schema import TABLES
from tests.doors.spark_server import server, server_conf

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_SCALE = 0.005
_SEED = 7
_OFF = "SET spark.cachemgr.enabled=false"


def test_the_queries_hit_through_each_door(spark: SparkSession, tmp_path: Path) -> None:
    prepare(spark, tmp_path / "ssb", _SCALE, _SEED)
    for name in TABLES:  # the files stay; other tests have tables of these names
        spark.sql(f"DROP TABLE {name}")
    tables = [
        f"CREATE TABLE {name} USING delta LOCATION '{table_path(tmp_path / 'ssb', name)}'"
        for name in TABLES
    ]
    texts = [query.sql() for query in QUERIES]
    with server(tmp_path, server_conf(tmp_path), tables) as made:
        made.sql(*RECORD_PRESERVING_JOINS, cube_ddl(), f"REFRESH RELATIONAL CACHE {CUBE_NAME}")
        expected = [_rows(found) for found in made.sql(_OFF, *texts)[1:]]
        assert [_rows(found) for found in made.sql(*texts)] == expected
        told = made.sql(*(f"EXPLAIN REWRITE {text}" for text in texts))
        assert [("result", "hit") in rows for rows in told] == [True] * len(texts)
        from pyspark.sql.connect.session import SparkSession as RemoteSession

        remote = RemoteSession.builder.remote(f"sc://127.0.0.1:{made.connect}").create()
        try:
            assert [_rows(remote.sql(text).collect()) for text in texts] == expected
            for text in texts:
                plan = remote.sql(text)._explain_string()
                assert f"relational_cache.{CUBE_NAME}@v" in plan, text
        finally:
            remote.stop()


def _rows(found: object) -> list[str]:
    assert isinstance(found, list)
    return sorted(str(tuple(row)) for row in found)
