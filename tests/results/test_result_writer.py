"""Results that Spark writes, beside what the same query gives in a session."""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cachemgr.errors import CacheManagerError
from cachemgr.results.folders import Results
from cachemgr.results.reader import Result
from cachemgr.spark.results import writer as writing
from cachemgr.spark.results.writer import WRITING, ResultWriter


class Written:
    """A session that writes results."""

    def __init__(self, spark: Any, path: Path) -> None:
        self.spark = spark.newSession()
        for key, value in WRITING.items():
            self.spark.conf.set(key, value)
        self.results = Results(str(path / "results"))
        self._runs = 0

    def result(self, query: str, most_rows: int | None = None) -> Result:
        self._runs += 1
        folder = self.results.make("s", self._runs)
        ResultWriter(self.spark).write(
            self.spark.sql(query),
            folder,
            self.results.uri("s", self._runs),
            most_rows=most_rows,
        )
        return Result.at(folder)

    def table(self, query: str, most_rows: int | None = None) -> pa.Table:
        result = self.result(query, most_rows)
        return pa.Table.from_batches((p.batch for p in result.pieces()), result.schema())

    def files(self) -> set[str]:
        folder = Path(self.results.folder("s", self._runs).path)
        return {path.name for path in folder.iterdir() if not path.name.startswith(".")}


@pytest.fixture
def written(spark: Any, tmp_path: Path) -> Iterator[Written]:
    yield Written(spark, tmp_path)


MANY = "FROM range(0, 20000, 1, 4)"  # more rows than are collected


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize(
    ("expression", "kind", "values"),
    [
        ("CAST(1 AS TINYINT)", pa.int8(), 1),
        ("CAST(-2 AS SMALLINT)", pa.int16(), -2),
        ("CAST(3 AS INT)", pa.int32(), 3),
        ("9223372036854775807L", pa.int64(), 9223372036854775807),
        ("CAST('-0.0' AS FLOAT)", pa.float32(), -0.0),
        ("CAST('Infinity' AS DOUBLE)", pa.float64(), math.inf),
        ("CAST('NaN' AS DOUBLE)", pa.float64(), math.nan),
        ("true", pa.bool_(), True),
        ("CAST(1.25 AS DECIMAL(10,2))", pa.decimal128(10, 2), decimal.Decimal("1.25")),
        (
            "CAST('0.1' AS DECIMAL(38,38))",
            pa.decimal128(38, 38),
            decimal.Decimal("0.1"),
        ),
        (
            "CAST('99999999999999999999999999999999999999' AS DECIMAL(38,0))",
            pa.decimal128(38, 0),
            decimal.Decimal("99999999999999999999999999999999999999"),
        ),
        ("DATE'0001-01-01'", pa.date32(), datetime.date(1, 1, 1)),
        (
            "TIMESTAMP'0001-01-01 00:00:00.000001'",
            pa.timestamp("us", "UTC"),
            datetime.datetime(1, 1, 1, 0, 0, 0, 1, datetime.UTC),
        ),
        (
            "TIMESTAMP'9999-12-31 23:59:59.999999'",
            pa.timestamp("us", "UTC"),
            datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, datetime.UTC),
        ),
        (
            "TIMESTAMP_NTZ'1582-10-10 01:02:03'",
            pa.timestamp("us"),
            datetime.datetime(1582, 10, 10, 1, 2, 3),
        ),
        ("'ä\\u0000''\\n'", pa.string(), "ä\0'\n"),
        ("''", pa.string(), ""),
        ("'x' COLLATE UNICODE", pa.string(), "x"),
        ("X'00FF'", pa.binary(), b"\0\xff"),
        ("INTERVAL '1 02:03:04.000005' DAY TO SECOND", pa.duration("us"),
         datetime.timedelta(1, 7384, 5)),
        ("CAST(NULL AS INT)", pa.int32(), None),
    ],
)  # fmt: skip
def test_each_type_is_read_back(
    written: Written, expression: str, kind: Any, values: Any, few: bool
) -> None:
    source = "FROM range(3)" if few else MANY
    table = written.table(f"SELECT {expression} AS a, id {source}")
    assert table.schema.field("a").type == kind
    found = table.column("a")[0].as_py()
    assert found == values or (math.isnan(values) and math.isnan(found))
    assert str(found) == str(values) or kind == pa.decimal128(38, 38)
    assert len(table) == (3 if few else 20_000)


@pytest.mark.parametrize("source", ["FROM range(3)", MANY])
def test_nested_types_and_void(written: Written, source: str) -> None:
    table = written.table(
        "SELECT named_struct('a', 1, 'b', array('x', NULL)) AS s, "
        "map('k', TIMESTAMP'2024-01-01 00:00:00') AS m, array(named_struct('a', id)) AS l, "
        f"NULL AS v {source}"
    )
    moment = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    row = next(r for r in table.to_pylist() if r["l"] == [{"a": 2}])
    assert row == {
        "s": {"a": 1, "b": ["x", None]},
        "m": [("k", moment)],
        "l": [{"a": 2}],
        "v": None,
    }


@pytest.mark.parametrize("source", ["FROM range(3)", MANY])
def test_names_are_the_queries(written: Written, source: str) -> None:
    table = written.table(
        f"SELECT id AS a, 1 AS `a`, 2 AS A, 3 AS ``, 4 AS `,;{{}}()= \n` {source}"
    )
    assert table.schema.names == ["a", "a", "A", "", ",;{}()= \n"]
    assert (
        written.table(
            f"SELECT {', '.join(f'id + {i} AS x{i}' for i in range(1000))} {source}"
        ).num_columns
        == 1000
    )


def test_a_small_result_is_one_file_and_a_large_one_of_the_job(written: Written) -> None:
    few = written.result("SELECT id FROM range(0, 5000, 1, 4)")
    assert [f.rows for f in few.manifest.files] == [5000]
    many = written.result(f"SELECT id {MANY}")
    assert [f.rows for f in many.manifest.files] == [5000] * 4
    named = {f.name for f in many.manifest.files} | {"manifest.json"}
    assert {name for name in written.files() if name != "_SUCCESS"} == named
    empty = written.result(f"SELECT id {MANY} WHERE id < 0")
    assert empty.manifest.rows == 0 and list(empty.pieces()) == []


@pytest.mark.parametrize("most", [1, 10_000, 19_999, 20_000, 30_000])
@pytest.mark.parametrize("limits", [100_000, 0])
def test_no_more_rows_than_were_asked_for(
    written: Written, monkeypatch: pytest.MonkeyPatch, most: int, limits: int
) -> None:
    monkeypatch.setattr(writing, "_MOST_ROWS_OF_LIMIT", limits)
    result = written.result(f"SELECT id {MANY} ORDER BY id DESC", most)
    found = [n for p in result.pieces() for n in p.batch.column(0).to_pylist()]
    assert found == list(range(19_999, max(-1, 19_999 - most), -1))
    assert result.manifest.truncated == (most < 20_000) and result.manifest.ordered
    assert {f.name for f in result.manifest.files} | {"manifest.json"} == written.files()


def test_rows_stay_in_order(written: Written) -> None:
    """With ties, NULLs, several keys, several files a task."""
    written.spark.conf.set("spark.sql.files.maxRecordsPerFile", "700")
    written.spark.conf.set("spark.sql.shuffle.partitions", "7")
    written.spark.conf.set("spark.sql.adaptive.enabled", "false")
    table = written.table(
        "SELECT IF(id % 11 = 0, NULL, id % 5) AS k, hash(id) AS h, id "
        f"{MANY} ORDER BY k DESC NULLS FIRST, h, id"
    )
    rows = [tuple(row.values()) for row in table.to_pylist()]
    expected = sorted(rows, key=lambda row: (row[0] is not None, -(row[0] or 0), row[1], row[2]))
    assert rows == expected and len(rows) == 20_000
    assert len(written.files()) > 20


@pytest.mark.parametrize(
    ("query", "ordered"),
    [
        ("SELECT id FROM range(3) ORDER BY id", True),
        ("SELECT id + 1 AS n FROM (SELECT id FROM range(3) ORDER BY id LIMIT 2) AS t", True),
        ("FROM range(3) ORDER BY id OFFSET 1", True),
        ("SELECT id FROM range(3) SORT BY id", False),
        ("SELECT id FROM (SELECT id FROM range(3) ORDER BY id) WHERE id > 1", False),
        ("SELECT id FROM range(3)", False),
    ],
)
def test_whether_a_query_says_its_order(written: Written, query: str, ordered: bool) -> None:
    assert written.result(query).manifest.ordered is ordered


def test_many_small_files_become_few(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_MANY_FILES", 30)
    monkeypatch.setattr(writing, "_MERGED_BYTES", 20_000)
    written.spark.conf.set("spark.sql.files.maxRecordsPerFile", "300")
    wide = "id, INTERVAL '1' DAY * id AS i, TIMESTAMP'1500-01-01 00:00:00' AS t"
    result = written.result(f"SELECT {wide} {MANY} ORDER BY id")
    assert 1 < len(result.manifest.files) < 30
    assert written.files() == {f.name for f in result.manifest.files} | {"manifest.json"}
    table = pa.Table.from_batches((p.batch for p in result.pieces()), result.schema())
    assert table.column("id").to_pylist() == list(range(20_000))
    assert table.schema.field("i").type == pa.duration("us")
    assert table.column("t")[7].as_py() == datetime.datetime(1500, 1, 1, tzinfo=datetime.UTC)


def test_a_query_that_fails_leaves_no_manifest(written: Written) -> None:
    with pytest.raises(Exception, match="USER_RAISED_EXCEPTION"):
        written.result(f"SELECT IF(id = 17000, raise_error('half'), id) {MANY}")
    assert "manifest.json" not in written.files()


def test_a_type_that_no_result_holds_is_refused_before_anything_runs(written: Written) -> None:
    for kind in ("make_interval(1)", "INTERVAL '1' YEAR", "parse_json('1')"):
        with pytest.raises(CacheManagerError, match=r"RESULT_TYPE.*`v`"):
            written.result(f"SELECT id, raise_error('ran') AS r, {kind} AS v {MANY}")
    assert written.files() == set()
