"""A table that one task reads, by the files that its checksum lists, has the rows and the columns
that Delta's own reading gives."""

from __future__ import annotations

import pytest
from pyspark.sql.types import StructType

from cachemgr.delta.log import head
from cachemgr.delta.own_session import own_session
from cachemgr.delta.tables import TableRead, normalise_location, run_select
from cachemgr.refresh import small
from cachemgr.refresh.file_stats import ListedFile, bounds_listed, files_listed
from cachemgr.refresh.small import depends_on_order, in_one_task, is_small
from matcher.model.expr import Agg, Col
from matcher.model.ir import CachePlan, Measure

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


@pytest.mark.parametrize(
    ("func", "type", "expected"),
    [
        ("sum", "bigint", False), ("sum", "decimal(38,2)", False), ("avg", "int", False),
        ("min", "string", False), ("count", "double", True), ("sum", "double", True),
        ("avg", "bigint", False), ("max", "float", True),
        ("min", "string collate UTF8_LCASE", True),
        ("stddev_samp", "int", True), ("first", "int", True), ("collect_list", "int", True),
    ],
)  # fmt: skip
def test_what_depends_on_the_order_of_rows(func, type, expected):
    measure = Measure("m", Agg(func, (Col(0, "x", type),), type))
    said = {"numRecords": 9, "minValues": {"x": -7}, "maxValues": {"x": 5}, "nullCount": {"x": 0}}
    plan = CachePlan("c", (), (), (), (measure,))
    assert depends_on_order(plan, [[ListedFile(100, said)]]) is expected


@pytest.mark.parametrize(("most", "exact"), [((1 << 53) // 9, True), ((1 << 53) // 9 + 1, False)])
def test_an_average_that_double_cannot_hold_depends_on_the_order(most, exact):
    measure = Measure("m", Agg("avg", (Col(0, "x", "bigint"),), "double"))
    plan = CachePlan("c", (), (), (), (measure,))
    said = {"numRecords": 3, "minValues": {"x": 0}, "maxValues": {"x": most}, "nullCount": {"x": 0}}
    joined = [[ListedFile(100, said)], [ListedFile(100, {"numRecords": 3})]]
    assert depends_on_order(plan, joined) is not exact
    assert depends_on_order(plan, [[ListedFile(100, {"numRecords": 9})]])


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
def test_files_of_a_table_that_its_checksum_says_is_large_are_not_looked_up(
    spark, table, monkeypatch
):
    session, context = own_session(spark, {}), spark.sparkContext
    context.setJobGroup("listed", "files of a table")
    try:
        monkeypatch.setattr(small, "SMALL_BYTES", 10)
        assert not is_small(session, [table])
        assert not context.statusTracker().getJobIdsForGroup("listed")
        assert files_listed(session, table)
        assert context.statusTracker().getJobIdsForGroup("listed")
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
        context.setLocalProperty("spark.job.description", None)


@pytest.mark.parametrize("table", ["partitions"], indirect=True)
def test_without_a_checksum_nobody_knows_whether_files_are_few(spark, table, tmp_path):
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


def test_a_checksum_that_another_history_left_behind_is_not_believed(spark, tmp_path):
    """A commit that somebody undid by deleting its file: Delta overwrites no checksum."""
    place = tmp_path / "base"
    spark.sql(f"CREATE TABLE delta.`{place}` (k INT, v BIGINT) USING delta")
    spark.sql(f"INSERT INTO delta.`{place}` VALUES (1, 10)")
    spark.sql(f"INSERT INTO delta.`{place}` VALUES (1, 1000)")
    delta_log = spark._jvm.org.apache.spark.sql.delta.DeltaLog
    undone = f"{2:020d}"
    for name in (f"{undone}.json", f".{undone}.json.crc"):
        (place / "_delta_log" / name).unlink()
    for rows in ("(1, 500)", "(1, 7)"):
        delta_log.clearCache()
        spark.sql(f"INSERT INTO delta.`{place}` VALUES {rows}")
    assert (place / "_delta_log" / f"{undone}.crc").exists()
    delta_log.clearCache()
    location = normalise_location(spark, str(place))
    for version, expected in ((2, 510), (3, 517)):
        session = own_session(spark, {})
        found = in_one_task(session, TableRead(location, version)).agg({"v": "sum"}).collect()
        assert found[0][0] == expected
