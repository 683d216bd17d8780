"""Thrift and Connect servers that have our extension in their configuration, and nothing else."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, inspect, text

import cachemgr
from cachemgr.errors import ConfigurationError
from cachemgr.metastore import open_metastore
from tests.doors.spark_server import Server, reads_cache, server, server_conf
from tests.processes import until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_TABLE = (
    "CREATE TABLE sales USING delta AS "
    "SELECT id, id % 7 AS shop, id % 3 AS kind, id * 2 AS amount FROM range(1000)"
)
_QUERY = "SELECT shop, SUM(amount), COUNT(*) FROM sales GROUP BY shop ORDER BY shop"
_SELECT = "SELECT shop, kind, SUM(amount) AS amount, COUNT(*) AS n FROM sales GROUP BY shop, kind"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("servers")
    conf = server_conf(folder, admins="root", sidecar_timeout="5s")
    with server(folder, conf, [_TABLE, f"CREATE RELATIONAL CACHE by_shop AS {_SELECT}"]) as made:
        made.sql("REFRESH RELATIONAL CACHE by_shop")
        yield made


def _expected() -> list[tuple[int, int, int]]:
    shops = {shop: [i for i in range(1000) if i % 7 == shop] for shop in range(7)}
    return [(shop, sum(2 * i for i in ids), len(ids)) for shop, ids in shops.items()]


def test_a_dbapi_client_hits_with_the_right_rows(servers: Server) -> None:
    rows, plan = servers.sql(_QUERY, f"EXPLAIN {_QUERY}")
    assert [tuple(row) for row in rows] == _expected()
    assert reads_cache(plan[0][0])
    (told,) = servers.sql(f"EXPLAIN REWRITE {_QUERY}")
    assert ("result", "hit") in told and ("cache", "by_shop") in told
    off, plan = servers.sql("SET spark.cachemgr.enabled=false", f"EXPLAIN {_QUERY}")
    assert off and not reads_cache(plan[0][0])


def test_a_dashboards_sqlalchemy_url_hits(servers: Server) -> None:
    """What a dashboard does with a database by PyHive's dialect: columns, a query, its plan."""
    engine = create_engine(f"hive://ann@127.0.0.1:{servers.thrift}/default")
    try:
        columns = inspect(engine).get_columns("sales")
        assert [column["name"] for column in columns] == ["id", "shop", "kind", "amount"]
        with engine.connect() as connection:
            rows = connection.execute(text(_QUERY)).all()
            (plan,) = connection.execute(text(f"EXPLAIN {_QUERY}")).one()
        assert [tuple(row) for row in rows] == _expected() and reads_cache(plan)
    finally:
        engine.dispose()


def test_beeline_carries_statements_out_and_hits(servers: Server) -> None:
    done = servers.beeline(
        "CREATE RELATIONAL CACHE by_kind AS SELECT kind, MAX(amount) AS most FROM sales "
        "GROUP BY kind",
        "REFRESH RELATIONAL CACHE by_kind",
        "SHOW RELATIONAL CACHES",
        "DESCRIBE RELATIONAL CACHE by_kind",
        "EXPLAIN SELECT kind, MAX(amount) FROM sales GROUP BY kind",
        "SELECT kind, MAX(amount) FROM sales GROUP BY kind ORDER BY kind",
        "DROP RELATIONAL CACHE by_kind",
    )
    assert done.returncode == 0, done.stderr
    assert "default.by_kind,created" in done.stdout
    assert "default.by_kind,PUBLISHED" in done.stdout
    assert reads_cache(done.stdout)
    assert "0,1998\n1,1994\n2,1996\n" in done.stdout
    assert "default.by_kind,dropped" in done.stdout


def test_a_statement_that_is_wrong_says_where(servers: Server) -> None:
    with pytest.raises(Exception) as wrong:
        servers.sql("CREATE RELATIONAL CACHE c AS\nSELECT shop FROM no_such_table GROUP BY shop")
    assert "TABLE_OR_VIEW_NOT_FOUND" in str(wrong.value)
    with pytest.raises(Exception) as wrong:
        servers.sql("REFRESH RELATIONAL CACHE\nby_shop SOMEHOW")
    assert "SYNTAX_ERROR" in str(wrong.value) and "line 2" in str(wrong.value)
    # nothing that is Spark's own is taken
    (rows,) = servers.sql("SHOW TABLES LIKE 'sales'")
    assert rows[0][1] == "sales"


def test_statements_are_carried_out_in_the_session_that_asks(servers: Server) -> None:
    found = servers.sql(
        "CREATE DATABASE other",
        "USE other",
        "CREATE TABLE sales USING delta AS SELECT 1 AS shop, 5 AS amount",
        "CREATE RELATIONAL CACHE by_shop AS SELECT shop, SUM(amount) AS a FROM sales GROUP BY shop",
        "REFRESH RELATIONAL CACHE by_shop",
        "SELECT shop, SUM(amount) FROM sales GROUP BY shop",
        "EXPLAIN SELECT shop, SUM(amount) FROM sales GROUP BY shop",
    )
    assert [tuple(row) for row in found[3]] == [("other.by_shop", "created")]
    assert [tuple(row) for row in found[5]] == [(1, 5)] and reads_cache(found[6][0][0])
    assert [tuple(row) for row in servers.sql(_QUERY)[0]] == _expected()


def test_connect_hits_by_sql_and_by_dataframes(servers: Server) -> None:
    spark = _remote(servers)
    try:
        assert [tuple(row) for row in spark.sql(_QUERY).collect()] == _expected()
        plan = spark.sql(f"EXPLAIN {_QUERY}").collect()[0][0]
        assert reads_cache(plan)
        frame = spark.table("sales").groupBy("shop").agg({"amount": "sum"}).orderBy("shop")
        found = [tuple(row) for row in frame.collect()]
        assert found == [(shop, amount) for shop, amount, _ in _expected()]
        rows = spark.sql("SHOW RELATIONAL CACHES LIKE 'by_shop'").collect()
        assert {row["name"] for row in rows} == {"by_shop"}
        assert rows[0]["status"] == "HEALTHY"
        once = spark.sql("CREATE RELATIONAL CACHE once AS SELECT kind FROM sales GROUP BY kind")
        assert [row["result"] for row in once.collect()] == ["created"]
        assert once.count() == 1  # it is not carried out again
        with pytest.raises(Exception, match="CACHE_NOT_FOUND"):
            spark.sql("DROP RELATIONAL CACHE no_such_cache").collect()
        spark.sql("DROP RELATIONAL CACHE once").collect()
    finally:
        spark.stop()


def test_a_connect_client_need_not_enable_anything(servers: Server) -> None:
    spark = _remote(servers)
    try:
        cachemgr.enable(spark)
        assert reads_cache(spark.sql(f"EXPLAIN {_QUERY}").collect()[0][0])
        with pytest.raises(ConfigurationError, match="EXPLAIN REWRITE"):
            cachemgr.counters(spark)
    finally:
        spark.stop()


def _remote(servers: Server) -> Any:
    from pyspark.sql.connect.session import SparkSession

    return SparkSession.builder.remote(f"sc://127.0.0.1:{servers.connect}").create()


def test_what_is_the_servers_to_set_is_not_a_clients(servers: Server) -> None:
    _, plan = servers.sql("SET spark.cachemgr.mode=off", f"EXPLAIN {_QUERY}")
    assert reads_cache(plan[0][0])


def test_a_setting_that_is_not_accepted_is_told_without_a_trace(servers: Server) -> None:
    _, rows, plan = servers.sql("SET spark.cachemgr.freshHits=flase", _QUERY, f"EXPLAIN {_QUERY}")
    assert [tuple(row) for row in rows] == _expected() and not reads_cache(plan[0][0])
    told = servers.started.text()
    assert "spark.cachemgr.freshHits is 'flase'" in told and "at relationalcache.Hook" not in told


def test_a_name_that_nobody_authenticated_opens_nothing(servers: Server) -> None:
    for user in ("ann", "root"):
        with pytest.raises(Exception, match="FORBIDDEN"):
            servers.sql("GRANT USE ON RELATIONAL CACHE by_shop TO ann", user=user)
        with pytest.raises(Exception, match="FORBIDDEN"):
            servers.sql("RESTRICT BASE TABLE sales", user=user)


def test_a_granted_cache_answers_no_name_that_is_only_claimed(servers: Server) -> None:
    query = "SELECT kind, MIN(amount) FROM sales GROUP BY kind"
    servers.sql(
        "CREATE RELATIONAL CACHE granted AS SELECT kind, MIN(amount) AS a FROM sales GROUP BY kind",
        "REFRESH RELATIONAL CACHE granted",
    )
    with open_metastore(f"sqlite:///{servers.folder}/metastore.db") as store:
        cache = store.caches.named("default", "granted")
        assert cache is not None
        store.grants.add(cache.id, "root")

    def told(user: str) -> str:
        return str(servers.sql(f"EXPLAIN REWRITE {query}", user=user)[0])

    until(lambda: "NOT_AUTHENTICATED" in told("root"), 30, "the grant is known", every=1)
    assert "NOT_GRANTED" in told("ann")
    for user in ("ann", "root"):
        plan, rows = servers.sql(f"EXPLAIN {query}", f"{query} ORDER BY kind", user=user)
        assert not reads_cache(plan[0][0])
        assert [tuple(row) for row in rows] == [(0, 0), (1, 2), (2, 4)]
    spark = _remote(servers)
    try:
        assert not reads_cache(spark.sql(f"EXPLAIN {query}").collect()[0][0])
    finally:
        spark.stop()


def test_a_query_that_fails_on_a_damaged_file_is_not_followed_by_another(servers: Server) -> None:
    query = "SELECT kind, MIN(amount) FROM sales GROUP BY kind ORDER BY kind"
    select = "SELECT kind, MIN(amount) AS least FROM sales GROUP BY kind"
    unpinned = "SET spark.cachemgr.pin.enabled=false"
    servers.sql(f"CREATE RELATIONAL CACHE harmed AS {select}", "REFRESH RELATIONAL CACHE harmed")
    with open_metastore(f"sqlite:///{servers.folder}/metastore.db") as metastore:
        place = Path(metastore.caches.named("default", "harmed").location)  # type: ignore[union-attr]
        _, before = servers.sql(unpinned, query)
        for file in place.glob("*.parquet"):
            file.write_bytes(bytes(file.stat().st_size))  # a look at the folder does not show it
        with pytest.raises(Exception, match="FAILED_READ_FILE"):
            servers.sql(unpinned, query)
        until(lambda: _answered(servers, query) == before, 30, "the base tables are read")
        harmed = metastore.caches.named("default", "harmed")
        assert harmed is not None and harmed.damaged


def _answered(servers: Server, query: str) -> object:
    try:
        return servers.sql("SET spark.cachemgr.pin.enabled=false", query)[1]
    except Exception:
        return None


def test_no_query_waits_for_a_sidecar_that_is_gone_or_stopped(servers: Server) -> None:
    (before,) = servers.sql(_QUERY)
    old = servers.python()
    os.kill(old, signal.SIGSTOP)
    start = time.monotonic()
    assert servers.sql(_QUERY, _QUERY) == [before, before]
    assert time.monotonic() - start < 5 + 20  # its time-out once, and its own run
    os.kill(old, signal.SIGKILL)
    assert servers.sql(_QUERY) == [before]
    until(lambda: servers.python() not in (0, old), 60, "another sidecar")
    until(lambda: reads_cache(servers.sql(f"EXPLAIN {_QUERY}")[0][0][0]), 60, "hits again", every=1)


def test_the_sidecar_ends_with_its_server(tmp_path: Path) -> None:
    with server(tmp_path, server_conf(tmp_path), [_TABLE]) as made:
        until(made.python, 60, "a sidecar")
        python = made.python()
        os.kill(made.jvm(), signal.SIGKILL)
        until(lambda: not Path(f"/proc/{python}").exists(), 20, "the sidecar ended")


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ({"metastore_url": "postgresql://u:secret@127.0.0.1:1/x"}, "holds a password"),
        ({"sidecar_python": "/no/such/python"}, "sidecar.python"),
    ],
)
def test_a_sidecar_that_cannot_serve_says_why_and_queries_run(
    tmp_path: Path, setting: dict[str, str], told: str
) -> None:
    with server(tmp_path, server_conf(tmp_path, **setting), [_TABLE]) as made:
        until(lambda: told in made.started.text(), 60, told)
        assert [tuple(row) for row in made.sql(_QUERY)[0]] == _expected()
        with pytest.raises(Exception, match="SIDECAR_LOST"):
            made.sql("SHOW RELATIONAL CACHES")
        assert "secret" not in made.started.text()
