"""Rows that a Thrift server sends from files are those that it sends without: values, types, names,
order and errors; and nothing but the rows of queries comes from files."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.doors.spark_server import Server, reads_cache, server, server_conf
from tests.doors.thrift_results import (
    ON,
    Fetched,
    fetched,
    results_in,
    sessions,
    sorted_rows,
    statements_in,
)
from tests.processes import until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_INCREMENTAL: Final = "spark.sql.thriftServer.incrementalCollect"
# More rows than are collected without files, in an order.
_MANY: Final = "SELECT t.* FROM VALUES {values} CROSS JOIN range({times}) ORDER BY id, n"
_DATES: Final = ("0001-01-01", "1500-03-01", "1582-10-10", "1969-12-31", "2024-02-29", "9999-12-31")
_NOT_NULL: Final = "named_struct('a', 1, 'b', array(named_struct('c', X'00ff')))"
# Some values of each type that files hold.
_HELD: Final[dict[str, tuple[str, ...]]] = {
    "boolean": ("true", "false", "NULL"),
    "tinyint": ("-128Y", "127Y", "NULL"),
    "smallint": ("-32768S", "32767S", "NULL"),
    "int": ("-2147483648", "2147483647", "NULL"),
    "bigint": ("-9223372036854775808L", "9223372036854775807L", "NULL"),
    "float": ("float('NaN')", "float('-Infinity')", "float('-0.0')", "1.17e-38F", "NULL"),
    "double": ("double('NaN')", "double('Infinity')", "double('-0.0')", "4.9e-324D", "NULL"),
    "decimal(38,0)": (f"{'9' * 38}BD", f"-{'9' * 38}BD", "NULL"),
    "decimal(38,38)": (f"0.{'9' * 38}BD", f"-0.{'9' * 38}BD", "NULL"),
    "decimal(7,2)": ("12345.67BD", "-12345.67BD", "NULL"),
    "string": ("''", "'a\\u0000b'", "'ß😀'", "repeat('x', 500)", "NULL"),
    "a collated string": ("'a' COLLATE UTF8_LCASE", "'A' COLLATE UTF8_LCASE", "NULL"),
    "binary": ("X''", "X'00ff10'", "NULL"),
    "date": tuple(f"DATE'{day}'" for day in _DATES),
    "timestamp": tuple(f"TIMESTAMP'{day} 23:59:59.999999'" for day in _DATES),
    "timestamp_ntz": tuple(f"TIMESTAMP_NTZ'{day} 23:59:59.999999'" for day in _DATES),
    "interval day to second": (
        "INTERVAL '106751991 04:00:54.775807' DAY TO SECOND",
        "INTERVAL '-3 04:05:06.000001' DAY TO SECOND",
        "NULL",
    ),
    "interval hour": ("INTERVAL '7' HOUR", "INTERVAL '-7' HOUR", "NULL"),
    "interval year to month": (
        "INTERVAL '178956970-7' YEAR TO MONTH",
        "INTERVAL '-1-1' YEAR TO MONTH",
        "NULL",
    ),
    "array": ("array(1, NULL)", "array()", "NULL"),
    "array of arrays": ("array(array(1), NULL, array())", "NULL"),
    "map": ("map('a', 1, 'b', NULL)", "map()", "NULL"),
    "map of maps": ("map(1, map(DATE'1500-01-01', TIMESTAMP'1500-01-01 00:00:00'))", "NULL"),
    "struct": (_NOT_NULL, "NULL"),
    "struct of NULLs": ("named_struct('a', CAST(NULL AS INT), 'b c', 'x', 'd.e', 'y')", "NULL"),
    "struct of intervals": ("named_struct('i', INTERVAL '1' DAY, 'm', INTERVAL '1' MONTH)", "NULL"),
}
# What none holds, or what is not worth one.
_NOT_HELD: Final[dict[str, str]] = {
    "a calendar interval": "SELECT id, make_interval(0, 1, 0, id) FROM range(12000)",
    "VOID": "SELECT id, NULL AS n FROM range(12000)",
    "an array of VOID": "SELECT id, array(NULL) AS n FROM range(12000)",
    "VARIANT": "SELECT id, to_variant_object(array(id)) AS v FROM range(12000)",
    "fields of one name": "SELECT named_struct('a', id, 'A', 1) AS s FROM range(12000)",
    "few rows": "SELECT id FROM range(10000)",
    "a LIMIT": "SELECT id FROM range(0, 1000000, 1, 4) LIMIT 10000",
    "rows of the plan": "SELECT * FROM VALUES (1, 'a'), (2, 'b')",
    "few groups": "SELECT id % 50 AS k, COUNT(*) FROM range(100000) GROUP BY k ORDER BY k",
    "one group": "SELECT COUNT(*), SUM(id) FROM range(100000)",
    "rows passed over in an order": "SELECT id FROM range(50000) ORDER BY id DESC OFFSET 7",
}
_FILES: Final[dict[str, str]] = {
    "names": "SELECT id AS a, -id AS a, id AS A, id AS ``, id AS `a b,;{}()=\t.` FROM range(12000)",
    "no name": "SELECT id + 1, upper(CAST(id AS STRING)) FROM range(12000)",
    "SELECT * of a view": "SELECT * FROM seen",
    "a LIMIT of many rows": "SELECT id FROM range(0, 50000, 1, 4) LIMIT 20000",
    "the first of an order": "SELECT id % 7 AS k, id FROM range(50000) ORDER BY k, id LIMIT 20000",
    "UNION ALL": "SELECT id, 'a' AS s FROM range(9000) UNION ALL SELECT -id, NULL FROM range(9000)",
    "a CTE": "WITH c AS (SELECT id AS x FROM range(12000)) SELECT c.x FROM c JOIN c d ON c.x = d.x",
    "groups": "SELECT id % 11000 AS k, SUM(id) AS s FROM range(50000) GROUP BY k",
    "a window": "SELECT id, SUM(id) OVER (PARTITION BY id % 3 ORDER BY id) FROM range(12000)",
    "a subquery": "SELECT id FROM range(12000) WHERE id < (SELECT MAX(id) FROM range(11500))",
    "no row": "SELECT id FROM range(0, 50000, 1, 3) WHERE id < 0",
    "a table": "SELECT * FROM sales",
    "a table's CHAR": "SELECT c, v, id FROM padded",
}
_WRONG: Final = (
    "SELECT 1 / (id - 15000) FROM range(20000)",
    "SELECT CAST(concat('x', id) AS INT) FROM range(0, 20000, 1, 1)",
    "SELECT CAST(id * 1000000 AS INT) FROM range(0, 20000, 1, 1)",
    "SELECT raise_error(concat('no ', id)) FROM range(0, 20000, 1, 1)",
    "SELECT SUM(id + 9223372036854770000) FROM range(20000) GROUP BY id % 12000",
    "SELECT id, (SELECT v FROM VALUES (1), (2) AS t(v)) FROM range(20000)",
    "SELECT nothing FROM range(20000)",
    "SELECT * FROM no_such_table",
    "SELECT FROM WHERE",
)


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="module")
def thrift(tmp_path_factory: pytest.TempPathFactory, location: Path) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("thrift_files")
    conf = {
        **server_conf(folder, results_location=str(location)),
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
    }
    init = [
        "CREATE TABLE sales USING delta AS SELECT id, id * 2 AS amount FROM range(0, 24000, 1, 4)",
        "CREATE TABLE padded (id BIGINT, c CHAR(5), v VARCHAR(5)) USING delta",
        "INSERT INTO padded SELECT id, 'ab', 'ab' FROM range(12000)",
        "CREATE VIEW seen AS SELECT id, amount FROM sales WHERE id % 2 = 0",
    ]
    with server(folder, conf, init) as made:
        yield made


def _both(thrift: Server, location: Path, query: str, *first: str) -> tuple[Fetched, Fetched]:
    with sessions(thrift, *first) as (files, plain):
        without = fetched(plain, query, location)
        return fetched(files, query, location), without


@pytest.mark.parametrize("type_", _HELD)
def test_values_of_a_type(thrift: Server, location: Path, type_: str) -> None:
    values = ", ".join(f"({number}, {value})" for number, value in enumerate(_HELD[type_]))
    times = 12000 // len(_HELD[type_])
    query = _MANY.format(values=f"{values} AS t(n, v)", times=times)
    for mode in ("NO_CODEGEN", "FALLBACK"):
        ours, theirs = _both(thrift, location, query, f"SET spark.sql.codegen.factoryMode={mode}")
        assert theirs.error == "" and len(theirs.rows) == times * len(_HELD[type_])
        assert ours.files > 0 and theirs.files == 0
        assert repr((ours.columns, ours.rows)) == repr((theirs.columns, theirs.rows))


@pytest.mark.parametrize("settings", ["legacy", "zone"])
def test_settings_of_the_session_change_no_value(
    thrift: Server, location: Path, settings: str
) -> None:
    """What it says of its own files, how it reads old dates, and in which zone it shows times."""
    chosen = {
        "legacy": (
            "SET spark.sql.parquet.outputTimestampType=INT96",
            "SET spark.sql.parquet.datetimeRebaseModeInWrite=EXCEPTION",
            "SET spark.sql.parquet.datetimeRebaseModeInRead=LEGACY",
            "SET spark.sql.parquet.writeLegacyFormat=true",
            "SET spark.sql.parquet.compression.codec=lz4_raw",
            "SET spark.sql.files.maxRecordsPerFile=1000",
            "SET spark.sql.caseSensitive=true",
        ),
        "zone": (
            "SET spark.sql.session.timeZone=America/New_York",
            "SET spark.sql.parquet.enableVectorizedReader=false",
            "SET spark.sql.adaptive.enabled=false",
        ),
    }[settings]
    values = ", ".join(f"(DATE'{d}', TIMESTAMP'{d} 01:02:03.000004', 1.5BD)" for d in _DATES)
    query = _MANY.format(values=f"{values} AS t(n, t, d)", times=4000)
    ours, theirs = _both(thrift, location, query, *chosen)
    assert theirs.error == "" and ours.files > 0
    assert ours.columns == theirs.columns and ours.rows == theirs.rows


@pytest.mark.parametrize("what", _NOT_HELD)
def test_without_files(thrift: Server, location: Path, what: str) -> None:
    ours, theirs = _both(thrift, location, _NOT_HELD[what])
    assert ours.files == 0 and ours == theirs
    assert theirs.rows or what == "VARIANT"  # which a Thrift server cannot send


@pytest.mark.parametrize("what", _FILES)
def test_with_files(thrift: Server, location: Path, what: str) -> None:
    ours, theirs = _both(thrift, location, _FILES[what])
    assert ours.files > 0 and theirs.files == 0 and theirs.error == ""
    assert ours.columns == theirs.columns
    if "ORDER BY k" in _FILES[what]:
        assert ours.rows == theirs.rows
    assert sorted_rows(ours.rows) == sorted_rows(theirs.rows)


def test_an_order_of_many_rows(thrift: Server, location: Path) -> None:
    """In many files, of several tasks and several of each, with equal keys."""
    query = "SELECT id % 1000 AS k, id FROM range(0, 100000, 1, 8) ORDER BY k"
    few = "SET spark.sql.files.maxRecordsPerFile=7000"
    ours, theirs = _both(thrift, location, query, few)
    assert ours.files >= 12
    assert [row[0] for row in ours.rows] == [row[0] for row in theirs.rows]
    assert sorted_rows(ours.rows) == sorted_rows(theirs.rows)
    ours, theirs = _both(thrift, location, f"{query} DESC, id", few)
    assert ours.files >= 12 and ours.rows == theirs.rows


@pytest.mark.parametrize("query", _WRONG)
def test_errors(thrift: Server, location: Path, query: str) -> None:
    ours, theirs = _both(thrift, location, query)
    assert theirs.error and ours.error == theirs.error
    assert "TASK_WRITE_FAILED" not in ours.error and str(location) not in ours.error
    until(lambda: not statements_in(location), 10, "the files of a failed statement are gone")


def test_what_is_no_query_of_the_client_is_left_alone(thrift: Server, location: Path) -> None:
    with thrift.session() as cursor:
        cursor.execute(ON)
        for text in (
            "CREATE OR REPLACE TEMPORARY VIEW many AS SELECT id FROM range(20000)",
            "CREATE TABLE copied USING delta AS SELECT id FROM range(20000)",
            "INSERT INTO copied SELECT id FROM many",
            "CACHE TABLE kept AS SELECT id FROM many",
            "EXPLAIN SELECT id FROM many",
            "EXPLAIN REWRITE SELECT id FROM sales",
            "SHOW TABLES",
            "DESCRIBE TABLE copied",
        ):
            cursor.execute(text)
            assert results_in(location) == [], text
            told = str(cursor.fetchall()) if cursor.description else ""
            assert "ResultFiles" not in told
        cursor.execute("SELECT COUNT(*), SUM(id) FROM copied")
        assert cursor.fetchall() == [(40000, 2 * sum(range(20000)))]
        cursor.execute("SELECT id FROM kept")
        assert len(results_in(location)) > 0 and len(cursor.fetchall()) == 20000


def test_other_doors_are_left_alone(thrift: Server, location: Path) -> None:
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    spark = RemoteSession.builder.remote(f"sc://127.0.0.1:{thrift.connect}").getOrCreate()
    try:
        spark.conf.set("spark.cachemgr.results.toFiles", "true")
        rows = spark.sql("SELECT id FROM range(20000)").toLocalIterator()
        assert sum(1 for _ in rows) == 20000 and results_in(location) == []
    finally:
        spark.stop()


def test_the_setting_of_the_session_stays(thrift: Server, location: Path) -> None:
    query = "SELECT id FROM range(20000)"
    for own in ("", "false", "true"):
        with thrift.session() as cursor:
            if own:
                cursor.execute(f"SET {_INCREMENTAL}={own}")
            cursor.execute(f"SET {_INCREMENTAL}")
            before = cursor.fetchall()
            cursor.execute(ON)
            found = fetched(cursor, query, location)
            wrong = fetched(cursor, f"{query} WHERE 1 / (id - 9) > 0", location)
            assert found.files > 0 and len(found.rows) == 20000 and wrong.error
            cursor.execute(f"SET {_INCREMENTAL}")
            assert cursor.fetchall() == before, own


def test_a_hit_stays_one(thrift: Server, location: Path, tmp_path: Path) -> None:
    """Of a table whose files are gone, which none but a cache can answer."""
    place = tmp_path / "facts"
    query = "SELECT k, SUM(v) AS s FROM facts GROUP BY k"
    with thrift.session() as cursor:
        cursor.execute(
            f"CREATE TABLE facts USING delta LOCATION '{place}' AS "
            "SELECT id % 15000 AS k, id AS v FROM range(60000)"
        )
        cursor.execute(f"CREATE RELATIONAL CACHE by_k AS {query}")
        cursor.execute("REFRESH RELATIONAL CACHE by_k")
        for file in place.glob("*.parquet"):
            file.unlink()
        cursor.execute(ON)
        until(lambda: _hits(cursor, query), 60, "the query hits", every=1)
        found = fetched(cursor, query, location)
    assert found.files > 0
    expected = {k: 4 * k + 15000 * 6 for k in range(15000)}
    assert dict(found.rows) == expected


def _hits(cursor: Any, query: str) -> bool:
    cursor.execute(f"EXPLAIN {query}")
    return reads_cache(cursor.fetchall()[0][0], "by_k")


def test_statements_of_one_session_at_a_time(thrift: Server, location: Path) -> None:
    """Which share the setting that one of them changes for a moment."""
    from pyhive import hive

    connection = hive.connect("127.0.0.1", thrift.thrift, username="ann")
    try:
        first = connection.cursor()
        first.execute(ON)
        cursors = [connection.cursor() for _ in range(6)]
        for number, cursor in enumerate(cursors):
            cursor.execute(f"SELECT id + {number} FROM range(0, 30000, 1, 3)", async_=True)
        for number, cursor in enumerate(cursors):
            end = time.monotonic() + 60
            while cursor.poll().operationState in (0, 1, 6, 7):
                assert time.monotonic() < end
                time.sleep(0.05)
            assert cursor.fetchall() == [(id_ + number,) for id_ in range(30000)]
        first.execute(f"SET {_INCREMENTAL}")
        assert first.fetchall()[0][1] != "true"
    finally:
        connection.close()
    until(lambda: not statements_in(location), 10, "the files of all are gone")
