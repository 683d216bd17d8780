"""At a Connect server nobody passes for another, or for the server's own user."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from tests.doors.spark_server import connect_server, server_conf
from tests.processes import until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_TABLE = "CREATE TABLE pay USING delta AS SELECT id, id % 3 AS k FROM range(300)"
_CREATE = "CREATE RELATIONAL CACHE c AS SELECT k, COUNT(*) AS n FROM pay GROUP BY k"
_QUERY = "SELECT k, COUNT(*) FROM pay GROUP BY k"
_TAG = "SparkConnect_OperationTag_User_{}_Session_1_Operation_2"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Connect server without a Thrift server in its JVM, with a cache that all may use."""
    folder = tmp_path_factory.mktemp("connect")
    conf = server_conf(folder, pin_enabled="false", admins="root")
    with connect_server(folder, conf) as found:
        with _session(found, "maker") as spark:
            for text in (_TABLE, _CREATE, "REFRESH RELATIONAL CACHE c"):
                spark.sql(text).collect()
            assert "relational_cache.c@v" in spark.sql(_QUERY)._explain_string()
            _narrow(folder)
            until(lambda: "NOT_" in str(spark.sql(f"EXPLAIN REWRITE {_QUERY}").collect()), 60, "it")
        yield found


@pytest.mark.parametrize(
    "user", ["eve", "root", "a\nb", "", " ", "eve_Session_1_Operation_User_root"]
)
@pytest.mark.parametrize("tags", [None, "x", _TAG.format("root"), _TAG.format("ann"), ""])
def test_no_name_opens_a_cache_or_makes_an_admin(address: str, user: str, tags: str | None) -> None:
    with _session(address, user) as spark:
        if tags is not None:
            spark.sql(f"SET spark.job.tags={tags}").collect()
        for text in ("GRANT USE ON RELATIONAL CACHE c TO eve", "RESTRICT BASE TABLE pay"):
            with pytest.raises(PySparkException, match="FORBIDDEN"):
                spark.sql(text).collect()
        plans = [
            spark.sql(f"EXPLAIN {_QUERY}").collect()[0][0],
            spark.sql(_QUERY)._explain_string(),
            str(spark.sql(_QUERY).inputFiles()),
            str(spark.sql(f"EXPLAIN REWRITE {_QUERY}").collect()),
        ]
        assert not any("relational_cache." in plan or "/caches/" in plan for plan in plans), plans


def test_a_name_is_known_whatever_is_set(address: str) -> None:
    with _session(address, "ann") as spark:
        spark.sql(f"SET spark.job.tags={_TAG.format('eve')}").collect()
        told = str(spark.sql(f"EXPLAIN REWRITE {_QUERY}").collect())
    assert "NOT_AUTHENTICATED" in told and "granted to ann" in told


def _narrow(folder: Path) -> None:
    """As an admin does: to somebody who never asks here, and to the server's own user."""
    import getpass

    from cachemgr.metastore import open_metastore

    with open_metastore(f"sqlite:///{folder}/metastore.db") as metastore:
        cache = metastore.caches.named("default", "c")
        assert cache is not None
        for name in ("ann", getpass.getuser()):
            metastore.grants.add(cache.id, name)


@contextlib.contextmanager
def _session(address: str, user: str) -> Iterator[Any]:
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.connect.session import SparkSession

    channel = DefaultChannelBuilder(f"sc://{address}")
    channel._params["user_id"] = user
    spark = SparkSession(connection=channel)
    try:
        yield spark
    finally:
        with contextlib.suppress(Exception):
            spark.stop()
