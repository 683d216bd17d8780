"""URLs and files that are no metastore: a clear error, and nothing lost."""

from __future__ import annotations

import sqlite3

import pytest

from cachemgr.errors import MetastoreError
from cachemgr.metastore import open_metastore


def refused(url: str, code: str, **options) -> str:
    with pytest.raises(MetastoreError) as caught:
        open_metastore(url, **options)
    assert caught.value.code == code
    return str(caught.value)


@pytest.mark.parametrize("url", ["", "not a url", "sqlite//x", "postgresql://h:notaport/db"])
def test_not_a_url(url):
    assert "sqlite:///path" in refused(url, "METASTORE_URL")


@pytest.mark.parametrize("url", ["mysql://u:secret@h/db", "oracle://h", "duckdb:///x"])
def test_a_database_that_is_not_supported(url):
    message = refused(url, "METASTORE_URL")
    assert "postgresql://" in message
    assert "secret" not in message


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:to@psecret@db/x",
        "postgresql://ann:topsecret@1@db/x?connect_timeout=1",
        "postgresql://ann:to?psecret=@topsecret@db/x",
        "postgresql://ann:topsecret@db:port/x",
        "postgresql:/ann:topsecret@db/x",
        "ann:topsecret@db/x",
        "jdbc:postgresql://ann:topsecret@db/x",
        "jdbc:postgresql://db/x?user=ann&password=topsecret",
        "host=db user=ann password=topsecret dbname=x",
        "host=db user=ann password = 'top secret' dbname=x",
    ],
)
def test_a_password_in_a_form_that_is_no_url_is_not_shown(url):
    """The driver would name what follows an @ in the password as the host that it does not find."""
    message = refused(url, "METASTORE_URL")
    assert "secret" not in message and "psecret" not in message
    assert "%40" in message or "sqlite:///path" in message


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "sqlite:///file:x?uri=true"])
def test_no_plain_file(url):
    assert "shared" in refused(url, "METASTORE_URL")


def test_a_folder_that_does_not_exist(tmp_path):
    message = refused(f"sqlite:///{tmp_path}/nowhere/m.db", "METASTORE_UNREADABLE")
    assert f"create {tmp_path}/nowhere" in message
    assert list(tmp_path.iterdir()) == []


def test_a_folder_for_a_file(tmp_path):
    assert "is a folder" in refused(f"sqlite:///{tmp_path}", "METASTORE_UNREADABLE")


def test_a_missing_file_that_is_not_to_be_created(tmp_path):
    path = tmp_path / "m.db"
    assert str(path) in refused(f"sqlite:///{path}", "METASTORE_MISSING", create=False)
    assert not path.exists()


@pytest.mark.parametrize("content", [b"x", b"name,amount\n1,2\n" * 400, b"SQLite format 2\x00"])
def test_a_file_that_is_no_database(tmp_path, content):
    path = tmp_path / "sales.csv"
    path.write_bytes(content)
    assert str(path) in refused(f"sqlite:///{path}", "NOT_A_METASTORE")
    assert path.read_bytes() == content


def test_a_damaged_database(tmp_path):
    path = tmp_path / "m.db"
    open_metastore(f"sqlite:///{path}").close()
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + b"\xff" * (len(whole) - 100))
    refused(f"sqlite:///{path}", "NOT_A_METASTORE")


def test_an_empty_file_becomes_a_metastore(tmp_path):
    path = tmp_path / "m.db"
    path.touch()
    with open_metastore(f"sqlite:///{path}") as store:
        assert store.caches.all() == ()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_a_relative_path_is_that_of_the_moment_of_opening(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open_metastore("sqlite:///m.db") as store:
        (tmp_path / "other").mkdir()
        monkeypatch.chdir(tmp_path / "other")
        store.engine.dispose()
        assert store.caches.all() == ()
        assert store.url == f"sqlite:///{tmp_path}/m.db"
    assert list((tmp_path / "other").iterdir()) == []


def test_no_server_and_no_password_in_the_message():
    message = refused("postgresql://me:secret@127.0.0.1:1/x", "METASTORE_UNREADABLE")
    assert "secret" not in message
    assert "127.0.0.1" in message


@pytest.mark.postgres
def test_no_such_database(postgres_url):
    refused(postgres_url.replace("cachemgr_test", "no_such"), "METASTORE_UNREADABLE")
