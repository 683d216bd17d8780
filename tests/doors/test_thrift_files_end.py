"""When the files of a Thrift client's rows are written, what they spare the server, and when they
go: with the operation, the session, a client that leaves, an error, the application."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import pytest

from tests.doors.spark_server import CLASS_PATH, Server, server, server_conf
from tests.doors.thrift_results import (
    ON,
    fetched,
    heap_mb,
    results_in,
    statements_in,
)
from tests.processes import until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_ROWS: Final = 3_000_000
_LARGE: Final = (
    f"SELECT id, CAST(id % 1000 AS INT) AS k, concat('name ', id) AS s FROM range(0, {_ROWS}, 1, 8)"
)
_SOME: Final = "SELECT id FROM range(0, 50000, 1, 3)"
# Ten billion rows, of which each passes the filter.
_ENDLESS: Final = (
    "SELECT a.id + b.id AS s FROM range(0, 100000, 1, 4) a CROSS JOIN range(100000) b "
    "WHERE a.id * b.id >= 0"
)
_UNDER_WAY: Final = (0, 1, 6, 7)
_FINISHED, _CANCELED, _TIMED_OUT = 2, 3, 8


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


def _conf(folder: Path, location: Path) -> dict[str, str]:
    return {
        **server_conf(folder, results_location=str(location), results_toFiles="true"),
        "spark.driver.memory": "1g",
    }


@pytest.fixture(scope="module")
def thrift(tmp_path_factory: pytest.TempPathFactory, location: Path) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("thrift_files_end")
    with server(folder, _conf(folder, location)) as made:
        yield made


def _connected(thrift: Server) -> Any:
    from pyhive import hive

    return hive.connect("127.0.0.1", thrift.thrift, username="ann")


def _state(cursor: Any) -> int:
    state: int = cursor.poll().operationState
    return state


def _ended(cursor: Any, seconds: float = 60) -> int:
    until(lambda: _state(cursor) not in _UNDER_WAY, seconds, "the statement ends", every=0.02)
    return _state(cursor)


def test_the_heap_stays_flat(thrift: Server, location: Path) -> None:
    """Three million rows, of which the server would hold more than half of its heap."""
    with thrift.session() as cursor:
        cursor.execute("SET spark.cachemgr.results.toFiles=false")
        cursor.execute(_SOME)
        cursor.fetchall()
        start = heap_mb(thrift.jvm())
        cursor.execute(_LARGE)
        without = heap_mb(thrift.jvm()) - start
    until(lambda: heap_mb(thrift.jvm()) < start + 50, 30, "rows of a closed operation are gone")
    with thrift.session() as cursor:
        cursor.execute(_LARGE)
        most, rows = heap_mb(thrift.jvm()) - start, 0
        while found := cursor.fetchmany(10_000):
            rows += len(found)
            if rows % 1_000_000 == 0:
                most = max(most, heap_mb(thrift.jvm()) - start)
    assert rows == _ROWS
    assert without > 250, "the rows are no load, so that nothing is shown"
    assert most < 60


def test_large_values(thrift: Server, location: Path) -> None:
    """Three gigabytes, of which a reader holds a few rows, though they could be made small."""
    wide = "SELECT id, repeat(uuid(), 8000) AS s FROM range(0, 12000, 1, 4)"
    with thrift.session() as cursor:
        cursor.arraysize = 20
        start = heap_mb(thrift.jvm())
        cursor.execute(wide)
        assert results_in(location)
        for number in range(200):
            assert len(cursor.fetchone()[1]) == 36 * 8000, number
        assert heap_mb(thrift.jvm()) - start < 60


def test_it_is_not_finished_before_all_is_written(thrift: Server, location: Path) -> None:
    connection = _connected(thrift)
    try:
        cursor = connection.cursor()
        cursor.execute(_LARGE, async_=True)
        assert _ended(cursor) == _FINISHED
        files = results_in(location)
        assert sum(pq.ParquetFile(file).metadata.num_rows for file in files) == _ROWS
        assert cursor.fetchmany(3) == [(n, n, f"name {n}") for n in range(3)]
        groups = [pq.ParquetFile(file).metadata for file in files]
        most = max(g.row_group(i).total_byte_size for g in groups for i in range(g.num_row_groups))
        assert most < 3 * 4 * 1024 * 1024
    finally:
        connection.close()


def test_files_are_their_owners_alone(thrift: Server, location: Path) -> None:
    with thrift.session() as cursor:
        cursor.execute(_SOME)
        files = results_in(location)
        assert files
        for file in files:
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
            assert stat.S_IMODE(file.parent.parent.stat().st_mode) == 0o700


def test_rows_are_read_again_from_the_first(thrift: Server, location: Path) -> None:
    """Which JDBC does for a result that can be scrolled."""
    from TCLIService import ttypes

    connection = _connected(thrift)
    try:
        cursor = connection.cursor()
        for query in (_SOME, "SELECT id % 9 AS k, COUNT(*) FROM range(30000) GROUP BY k"):
            cursor.execute(query)
            first = cursor.fetchmany(7)
            again = connection.client.FetchResults(
                ttypes.TFetchResultsReq(
                    operationHandle=cursor._operationHandle,
                    orientation=ttypes.TFetchOrientation.FETCH_FIRST,
                    maxRows=7,
                )
            )
            assert list(again.results.columns[0].i64Val.values) == [row[0] for row in first]
    finally:
        connection.close()


@pytest.mark.parametrize("how", ["operation", "session", "client", "next statement"])
def test_files_go_with_whom_they_are_for(thrift: Server, location: Path, how: str) -> None:
    connection = _connected(thrift)
    cursor = connection.cursor()
    cursor.execute(_SOME)
    cursor.fetchmany(10)
    assert len(statements_in(location)) == 1
    if how == "operation":
        cursor.close()
    elif how == "session":
        connection.close()
    elif how == "client":
        connection._transport.close()
    else:
        cursor.execute("SELECT 1")
    until(lambda: not statements_in(location), 20, f"its files go with the {how}")


@pytest.mark.parametrize("how", ["cancel", "time-out"])
def test_a_statement_that_is_ended(thrift: Server, location: Path, how: str) -> None:
    connection = _connected(thrift)
    try:
        cursor = connection.cursor()
        if how == "time-out":
            cursor.execute("SET spark.sql.thriftServer.queryTimeout=15")
        cursor.execute(_ENDLESS, async_=True)
        until(lambda: statements_in(location), 30, "it writes")
        assert _state(cursor) in _UNDER_WAY
        if how == "cancel":
            cursor.cancel()
        assert _ended(cursor, 30) == (_CANCELED if how == "cancel" else _TIMED_OUT)
        other = connection.cursor()
        began = time.monotonic()
        other.execute("SELECT COUNT(*) FROM range(0, 1000, 1, 2)")
        assert other.fetchall() == [(1000,)] and time.monotonic() - began < 10
    finally:
        connection.close()
    until(lambda: not statements_in(location), 20, "what was written is gone")
    with thrift.session() as cursor:
        assert len(fetched(cursor, _SOME, location).rows) == 50_000


def test_a_file_that_is_gone(thrift: Server, location: Path) -> None:
    with thrift.session() as cursor:
        cursor.execute(_SOME)
        for file in results_in(location):
            file.unlink()
        with pytest.raises(Exception, match=r"RESULT_FILES_LOST.*run it again"):
            cursor.fetchall()


def test_a_place_that_cannot_be_written(thrift: Server, location: Path) -> None:
    """The rows come as ever, and the log says why."""
    (own,) = location.glob("relational-cache-results-*")
    aside = own.rename(location / "aside")
    own.write_text("")
    try:
        with thrift.session() as cursor:
            found = fetched(cursor, _SOME, location)
            assert found.files == 0 and sorted(found.rows) == [(n,) for n in range(50_000)]
            cursor.execute("SET spark.sql.thriftServer.incrementalCollect")
            assert cursor.fetchall()[0][1] != "true"
    finally:
        own.unlink()
        aside.rename(own)
    assert "it runs without files" in thrift.started.text()


def test_what_applications_leave(tmp_path: Path, location: Path, thrift: Server) -> None:
    """One that ends leaves nothing; the folder of one that was killed is deleted by another."""
    (others,) = location.glob("relational-cache-results-*")
    folder = tmp_path / "first"
    folder.mkdir()
    with server(folder, _conf(folder, location)) as killed:
        connection = _connected(killed)
        connection.cursor().execute(_SOME)
        (left,) = set(location.glob("relational-cache-results-*")) - {others}
        os.kill(killed.jvm(), 9)
    assert list(left.glob("*/*.parquet"))
    folder = tmp_path / "second"
    folder.mkdir()
    with server(folder, _conf(folder, location)) as made:
        made.sql(_SOME)
        time.sleep(1)
        assert left.exists(), "its application may be alive"
        made.started.stop()
    assert set(location.glob("relational-cache-results-*")) == {others, left}
    long_ago = time.time() - 3600
    os.utime(left / "_alive", (long_ago, long_ago))
    folder = tmp_path / "third"
    folder.mkdir()
    with server(folder, _conf(folder, location)) as made:
        made.sql(_SOME)
        until(lambda: not left.exists(), 20, "the folder of the killed one is gone")
        assert others.exists()
        made.started.stop()


def test_a_client_cannot_say_where(thrift: Server, location: Path, tmp_path: Path) -> None:
    with thrift.session() as cursor:
        cursor.execute(f"SET spark.cachemgr.results.location={tmp_path}")
        cursor.execute("SET spark.cachemgr.results.partitionBytes=much")
        assert fetched(cursor, _SOME, location).files > 0
    assert not list(tmp_path.iterdir())


def test_without_a_place_of_its_own(tmp_path: Path) -> None:
    """A local master has one below its folder for such files."""
    local = tmp_path / "local"
    local.mkdir()
    conf = {**server_conf(tmp_path), "spark.local.dir": str(local)}
    with server(tmp_path, conf) as made, made.session() as cursor:
        cursor.execute(ON)
        cursor.execute(_SOME)
        assert results_in(local)
        assert len(cursor.fetchall()) == 50_000


@pytest.mark.parametrize("located", [True, False])
def test_executors_have_no_class_of_ours(tmp_path: Path, located: bool) -> None:
    """They write with Delta's jar alone; where no place is known that they reach, not at all."""
    conf = server_conf(tmp_path, results_toFiles="true")
    jars = [jar for jar in conf[CLASS_PATH].split(":") if "relational-cache" not in jar]
    conf |= {
        "spark.master": "local-cluster[2,1,900]",
        "spark.executor.memory": "700m",
        "spark.executor.extraClassPath": ":".join(jars),
    }
    if located:
        conf["spark.cachemgr.results.location"] = str(tmp_path / "results")
    variables = {"SPARK_SCALA_VERSION": "2.13"}
    with server(tmp_path, conf, variables=variables) as made, made.session() as cursor:
        for _ in range(2):
            found = fetched(cursor, f"{_SOME} ORDER BY id DESC", tmp_path / "results")
            assert found.rows == tuple((n,) for n in reversed(range(50_000)))
            assert (found.files > 0) == located
        told = made.started.text().count("set spark.cachemgr.results.location")
        assert told == (0 if located else 1)
