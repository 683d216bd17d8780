"""A table that one task reads, by the files that its checksum lists, has the rows and the columns
that Delta's own reading gives."""

from __future__ import annotations

import pytest
from pyspark.sql.types import StructType

from cachemgr.refresh import small
from cachemgr.refresh.delta_log import head
from cachemgr.refresh.file_stats import bounds_listed, files_listed
from cachemgr.refresh.session import own_session
from cachemgr.refresh.small import in_one_task, is_small
from cachemgr.spark.tables import TableRead, normalise_location, run_select

pytestmark = pytest.mark.spark

TABLES = {
    "plain": (
        "CREATE TABLE {t} (a INT, s STRUCT<x: DOUBLE, y: STRING>, l ARRAY<INT>) USING delta",
        "INSERT INTO {t} VALUES (1, named_struct('x', -0.0D, 'y', 'q'), array(1))",
        "INSERT INTO {t} VALUES (NULL, NULL, NULL)",
    ),
    "an empty one": ("CREATE TABLE {t} (a INT, b STRING NOT NULL) USING delta",),
    "partitions": (
        "CREATE TABLE {t} (a INT, d DATE, p STRING) USING delta PARTITIONED BY (d, p)",
        "INSERT INTO {t} VALUES (1, DATE'1500-01-01', 'a b/=%'), (2, NULL, ''), (3, NULL, NULL)",
        "INSERT INTO {t} VALUES (4, DATE'2024-02-29', 'ü')",
    ),
    "deletion vectors": (
        "CREATE TABLE {t} USING delta TBLPROPERTIES (delta.enableDeletionVectors = true) "
        "AS SELECT id, id % 3 AS k FROM range(0, 60, 1, 1)",
        "DELETE FROM {t} WHERE id % 7 = 0",
        "UPDATE {t} SET k = -1 WHERE id = 8",
    ),
    "mapped columns": (
        "CREATE TABLE {t} (a INT, b INT, `c d` STRING) USING delta "
        "TBLPROPERTIES (delta.columnMapping.mode = 'name')",
        "INSERT INTO {t} VALUES (1, 2, 'x'), (3, 4, 'y')",
        "ALTER TABLE {t} RENAME COLUMN a TO z",
        "ALTER TABLE {t} RENAME COLUMN b TO a",
        "INSERT INTO {t} VALUES (5, 6, NULL)",
    ),
    "added columns": (
        "CREATE TABLE {t} (a INT) USING delta",
        "INSERT INTO {t} VALUES (1)",
        "ALTER TABLE {t} ADD COLUMNS (b STRING)",
        "INSERT INTO {t} VALUES (2, 'b')",
    ),
    "wider types": (
        "CREATE TABLE {t} (a SMALLINT) USING delta TBLPROPERTIES (delta.enableTypeWidening = true)",
        "INSERT INTO {t} VALUES (1)",
        "ALTER TABLE {t} ALTER COLUMN a TYPE BIGINT",
        "INSERT INTO {t} VALUES (1234567890123)",
    ),
    "texts of a length": (
        "CREATE TABLE {t} (a CHAR(5), b VARCHAR(5)) USING delta",
        "INSERT INTO {t} VALUES ('a', 'b')",
    ),
}


@pytest.fixture
def table(spark, tmp_path, request):
    """The table of a case, by its newest version."""
    place = str(tmp_path / "base")
    for statement in TABLES[request.param]:
        spark.sql(statement.format(t=f"delta.`{place}`"))
    location = normalise_location(spark, place)
    newest = head(spark, location)
    assert newest is not None
    return TableRead(location, newest.version)


@pytest.mark.parametrize("table", TABLES, indirect=True)
def test_the_same_rows_and_columns(spark, table):
    session = own_session(spark, {})
    assert files_listed(session, table) is not None
    assert is_small(session, [table])
    expected = run_select(session, "SELECT * FROM __t", {"__t": table})
    found = in_one_task(session, table)
    assert _types(found.schema) == _types(expected.schema)
    assert sorted(map(repr, found.collect())) == sorted(map(repr, expected.collect()))
    assert found.rdd.getNumPartitions() <= 1


def _types(schema: StructType) -> list[tuple[str, str, bool]]:
    return [(f.name, f.dataType.simpleString(), f.nullable) for f in schema]


@pytest.mark.parametrize("table", ["partitions"], indirect=True)
def test_many_bytes_or_rows_are_not_small(spark, table, monkeypatch):
    session = own_session(spark, {})
    files = files_listed(session, table)
    assert files is not None and sum(f.rows for f in files) == 4
    monkeypatch.setattr(small, "SMALL_ROWS", 7)
    assert not is_small(session, [table, table])
    monkeypatch.setattr(small, "SMALL_ROWS", 8)
    assert is_small(session, [table, table])
    monkeypatch.setattr(small, "SMALL_BYTES", sum(f.bytes for f in files) - 1)
    assert not is_small(session, [table])


@pytest.mark.parametrize("table", ["partitions"], indirect=True)
def test_without_a_checksum_nothing_is_listed(spark, table, tmp_path):
    for checksum in (tmp_path / "base" / "_delta_log").glob("*.crc"):
        checksum.unlink()
    for checksum in (tmp_path / "base" / "_delta_log").glob(".*.crc"):
        checksum.unlink()
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    session = own_session(spark, {})
    assert files_listed(session, table) is None
    assert not is_small(session, [table])


@pytest.mark.parametrize("table", ["mapped columns"], indirect=True)
def test_bounds_of_mapped_columns_are_not_taken_for_those_of_others(spark, table):
    files = files_listed(own_session(spark, {}), table)
    assert bounds_listed(files, ["a"]) is None
