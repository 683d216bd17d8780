"""REST says of a cache what SHOW says of it, by the logs of its base tables."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import httpx
import pytest

from cachemgr.metastore.store import Metastore
from tests.harness.load.population import populate, write_commit

FILE = {"path": "x", "partitionValues": {}, "size": 9, "dataChange": True}
APPEND = {"add": {**FILE, "stats": '{"numRecords":5}'}}
MOVE = {"add": {**FILE, "dataChange": False}}
REMOVE = {"remove": {"path": "y", "dataChange": True}}


@pytest.fixture
def told(client: httpx.Client, store: Metastore, tmp_path: Path):
    """Makes a commit to `customer`; gives the status of each cache that reads it, and of one."""
    (tmp_path / "tables").mkdir()
    populate(store, tmp_path / "tables", 10)
    log = tmp_path / "tables" / "customer" / "_delta_log"

    def after(*actions: dict[str, object]) -> set[str]:
        if actions:
            version = 1 + max(int(file.stem) for file in log.glob("*.json"))
            write_commit(log, version, [{"commitInfo": {"txnId": f"t{version}"}}, *actions])
        caches = client.get("/api/v1/caches").json()["caches"]
        found = {
            cache["status"]["combined"]
            for cache in caches
            if any(t["location"].endswith("/tables/customer") for t in cache["published"]["tables"])
        }
        one = client.get(f"/api/v1/caches/{caches[0]['name']}").json()
        assert one["status"] == caches[0]["status"]
        return found

    return after


def test_what_became_of_the_tables_shows_without_a_trigger(told) -> None:
    assert told() == {"HEALTHY"}
    assert told(MOVE) == {"HEALTHY"}
    assert told(APPEND) == {"APPENDED"}
    assert told(REMOVE) == {"STALE"}


def test_a_table_that_is_gone(told, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "tables" / "customer")
    assert told() == {"BROKEN"}


@pytest.mark.parametrize(
    "line",
    [
        '{"commitInfo": "x"}', "[]", "7", "null", '{"add": "x"}', '{"add": null}', '{"remove": 1}',
        '{"add": {"path": "x", "size": 1e999, "dataChange": true}}', "{", "[" * 100_000,
        '{"metaData": {"id": "id-of-customer", "schemaString": "no schema"}}',
        '{"metaData": {"id": "id-of-customer"}}',
    ],
)  # fmt: skip
def test_a_damaged_log_says_nothing_good_of_its_caches_alone(told, tmp_path: Path, line) -> None:
    log = tmp_path / "tables" / "customer" / "_delta_log"
    (log / f"{3:020d}.json").write_text(f"{line}\n")
    found = told()
    assert found in ({"STALE"}, {"UNKNOWN"})
    (log / f"{3:020d}.json").unlink()
    os.mkfifo(log / f"{3:020d}.json")  # to read it would wait for ever
    assert told() == {"HEALTHY"}


def test_a_log_that_was_cut_off_tells_by_its_numbers(told, tmp_path: Path) -> None:
    log = tmp_path / "tables" / "customer" / "_delta_log"
    for commit in log.glob("*.json"):
        commit.unlink()
    (log / f"{2:020d}.checkpoint.parquet").write_bytes(b"")
    assert told() == {"UNKNOWN"}  # the version that was read, perhaps of another table
    (log / f"{5:020d}.checkpoint.parquet").write_bytes(b"")
    assert told() == {"STALE"}


def test_a_table_whose_storage_denies_is_not_gone(told, tmp_path: Path, monkeypatch) -> None:
    folder = str(tmp_path / "tables" / "customer")
    is_away = True

    def denying(real):
        def asked(path, *more, **named):
            if is_away and str(path).startswith(folder):
                raise PermissionError(13, "Permission denied", str(path))
            return real(path, *more, **named)

        return asked

    for name in ("stat", "listdir"):
        monkeypatch.setattr(os, name, denying(getattr(os, name)))
    assert told() == {"UNKNOWN"}
    is_away = False
    assert told() == {"HEALTHY"}


def test_a_place_that_cannot_be_looked_at_says_nothing(told, tmp_path: Path) -> None:
    (tmp_path / "tables").rename(tmp_path / "elsewhere")  # as on another machine
    assert told() == {"HEALTHY"}
