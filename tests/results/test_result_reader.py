"""Results of files that were written beforehand: what is read of them, and from where."""

from __future__ import annotations

import itertools
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from cachemgr.api.errors import status_of
from cachemgr.errors import CacheManagerError
from cachemgr.results.folders import Folder, Results
from cachemgr.results.manifest import Manifest, ResultColumn, ResultFile
from cachemgr.results.positions import Position, Signer
from cachemgr.results.reader import Result, batches_of
from cachemgr.results.types import refuse_types


def written(path: Path, *files: list[list[int]]) -> Result:
    """A result of files with row groups of these numbers."""
    path.mkdir(exist_ok=True)
    folder = Folder(fs.LocalFileSystem(), str(path))
    made = []
    for number, groups in enumerate(files):
        name = f"part-{number:05d}-c000.parquet"
        schema = pa.schema([pa.field("c0", pa.int64())])
        with pq.ParquetWriter(path / name, schema, store_schema=False) as writer:
            for group in groups:
                writer.write_table(pa.table([pa.array(group, pa.int64())], schema=schema))
        sizes = tuple(len(group) for group in groups)
        made.append(ResultFile(name, (path / name).stat().st_size, sizes))
    folder.write_manifest(Manifest((ResultColumn("n", "long"),), tuple(made)))
    return Result.at(folder)


def numbers(result: Result, *where: object) -> list[int]:
    return [n for piece in result.pieces(*where) for n in piece.batch.column(0).to_pylist()]


FILES = ([[1, 2, 3], [4]], [[]], [[5, 6], [7, 8, 9, 10]])


def test_rows_come_in_the_order_of_the_manifest(tmp_path: Path) -> None:
    result = written(tmp_path / "r", *FILES)
    assert numbers(result) == list(range(1, 11)) and result.manifest.rows == 10
    assert result.schema() == pa.schema([pa.field("n", pa.int64())])


@pytest.mark.parametrize("size", range(1, 12))
def test_pages_of_every_size_go_on_where_the_last_ended(tmp_path: Path, size: int) -> None:
    result = written(tmp_path / "r", *FILES)
    found: list[list[int]] = []
    at: Position | None = Position()
    while at is not None:
        pieces = list(result.pieces(at, size))
        found.append([n for p in pieces for n in p.batch.column(0).to_pylist()])
        at = pieces[-1].after
    assert [n for page in found for n in page] == list(range(1, 11))
    assert all(len(page) == size for page in found[:-1])


def test_many_rows_come_in_batches_and_from_the_middle_of_a_group(tmp_path: Path) -> None:
    result = written(tmp_path / "r", [list(range(300_000))])
    assert len(list(result.pieces())) > 3
    start = Position(0, 0, 123_456)
    assert numbers(result, start, 10) == list(range(123_456, 123_466))
    assert numbers(result, start) == list(range(123_456, 300_000))


def test_a_place_that_cannot_be_written_is_told_at_the_start(tmp_path: Path) -> None:
    place = tmp_path / "results"
    Results(str(place)).check()
    assert list(place.iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(CacheManagerError, match=r"results_location .* cannot write"):
        Results(str(tmp_path / "file" / "results")).check()


def test_no_rows(tmp_path: Path) -> None:
    result = written(tmp_path / "r", [[]])
    assert numbers(result) == [] and result.manifest.rows == 0 and len(result.schema()) == 1


def test_what_is_not_as_it_was_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(CacheManagerError, match=r"RESULT_DAMAGED.*manifest is not there"):
        Result.at(Folder(fs.LocalFileSystem(), str(tmp_path / "none")))
    result = written(tmp_path / "r", [[1, 2]], [[3]])
    second = tmp_path / "r" / "part-00001-c000.parquet"
    content = second.read_bytes()
    for wrong in (b"", content[:-9], (tmp_path / "r" / "part-00000-c000.parquet").read_bytes()):
        second.write_bytes(wrong)
        with pytest.raises(CacheManagerError, match=r"RESULT_DAMAGED.*part-00001"):
            numbers(result)
    second.unlink()
    with pytest.raises(CacheManagerError, match=r"RESULT_DAMAGED.*part-00001"):
        numbers(result)
    for text in ("", "{}", '{"version": "x"}', '{"version": 1, "columns": 3}'):
        (tmp_path / "r" / "manifest.json").write_text(text)
        with pytest.raises(CacheManagerError, match=r"RESULT_DAMAGED.*manifest cannot be read"):
            Result.at(Folder(fs.LocalFileSystem(), str(tmp_path / "r")))


def test_a_result_of_a_later_release_is_not_called_damaged(tmp_path: Path) -> None:
    """While replicas are upgraded, an old one is asked for what a new one has written."""
    written(tmp_path / "r", [[1, 2]])
    manifest = tmp_path / "r" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"version": 1', '"version": 2'))
    with pytest.raises(CacheManagerError, match="ask a replica of that release") as caught:
        Result.at(Folder(fs.LocalFileSystem(), str(tmp_path / "r")))
    assert caught.value.code == "RESULT_OF_ANOTHER_RELEASE" and status_of(caught.value) == 503


@pytest.mark.parametrize("name", ["../x.parquet", ".hidden", "a/b"])
def test_a_manifest_names_files_of_its_folder_alone(name: str) -> None:
    made = Manifest((ResultColumn("a", "long"),), (ResultFile(name, 1, (1,)),))
    with pytest.raises(CacheManagerError, match="none of a result's"):
        Manifest.from_json(made.to_json())


def test_a_token_is_good_for_one_principal_and_statement() -> None:
    at, mine = Position(3, 1, 77), Signer("s1", "ann", "secret")
    token = mine.token(at)
    assert mine.position(token) == at
    cut = [token[:length] for length in range(len(token))]
    other = mine.token(Position(3, 1, 78))
    mixed = other[:8] + token[8:]
    for signer, text in (
        *((mine, t) for t in (*cut, mixed, token + "A", "ä", token.swapcase(), "x" * 8000)),
        (Signer("s1", "bob", "secret"), token),
        (Signer("s2", "ann", "secret"), token),
        (Signer("s1", "ann", "other"), token),
        (Signer("s1a", "nn", "secret"), token),
    ):
        with pytest.raises(CacheManagerError, match="PAGE_TOKEN"):
            signer.position(text)


_FIELD = {"name": "a", "type": "long", "nullable": True, "metadata": {}}


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("interval", "CAST(`a``b` AS STRING)"),
        ("interval year to month", "CAST(`a``b` AS STRING)"),
        ("variant", "to_json(`a``b`)"),
        ("time(6)", "CAST(`a``b` AS STRING)"),
        ({"type": "struct", "fields": []}, "STRUCT without fields"),
        (
            {
                "type": "array",
                "elementType": {"type": "struct", "fields": [_FIELD, _FIELD]},
                "containsNull": True,
            },
            "two fields have one name",
        ),
        ("geometry(4326)", "ST_AsBinary(`a``b`)"),
        ({"type": "udt", "class": "x"}, "user-defined type"),
        (
            {"type": "array", "elementType": "interval day to second", "containsNull": True},
            "INTERVAL",
        ),
        (
            {
                "type": "struct",
                "fields": [
                    {**_FIELD, "type": {"type": "map", "keyType": "string", "valueType": "variant"}}
                ],
            },
            "VARIANT",
        ),
    ],
)
def test_types_that_no_result_holds_are_refused_by_name(kind: object, said: str) -> None:
    with pytest.raises(CacheManagerError, match="RESULT_TYPE") as caught:
        refuse_types([ResultColumn("ok", "long"), ResultColumn("a`b", kind)])
    assert said in str(caught.value) and "`a``b`" in str(caught.value)


@pytest.mark.parametrize(
    "kind",
    [
        "long",
        "string",
        "interval day to second",
        "interval hour",
        "timestamp",
        "decimal(38,0)",
        "void",
    ],
)
def test_types_that_a_result_holds(kind: str) -> None:
    refuse_types([ResultColumn("a", kind)])


def test_a_query_without_columns_is_refused() -> None:
    with pytest.raises(CacheManagerError, match="no columns"):
        refuse_types([])


def test_folders_of_statements(tmp_path: Path) -> None:
    results = Results(str(tmp_path / "results"))
    assert results.statements() == {} and results.is_local
    for statement, run in itertools.product(("s1", "s2"), (1, 12)):
        results.make(statement, run)
    assert results.statements() == {"s1": {1, 12}, "s2": {1, 12}}
    assert results.uri("s1", 1) == f"file://{tmp_path}/results/s1/1"
    results.delete_run("s1", 1)
    results.delete("s2")
    results.delete("s3")
    assert results.statements() == {"s1": {12}}


def test_files_are_read_one_after_the_other(tmp_path: Path) -> None:
    result = written(tmp_path / "r", *FILES)
    folder = Folder(fs.LocalFileSystem(), str(tmp_path / "r"))
    some = list(result.manifest.files[1:])
    assert [n for b in batches_of(folder, some) for n in b.column(0).to_pylist()] == [
        5,
        6,
        7,
        8,
        9,
        10,
    ]
