"""Who can read the file of a SQLite metastore, and those that SQLite puts beside it."""

from __future__ import annotations

import grp
import os
import stat
from pathlib import Path

import pytest

from cachemgr.errors import ConfigurationError
from cachemgr.metastore import file_access, migrate, open_metastore
from cachemgr.metastore.database import metastore_url
from cachemgr.roles import Role
from cachemgr.worker.single import sole_process


@pytest.fixture(autouse=True)
def anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_access, "_warned", set())


def modes(folder: Path) -> dict[str, str]:
    return {
        path.name: oct(stat.S_IMODE(path.stat().st_mode))
        for path in sorted(folder.iterdir())
        if path.is_file()
    }


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o002, 0o077])
def test_a_new_metastore_is_its_owners_alone_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        url = f"sqlite:///{tmp_path}/m.db"
        with sole_process(url), open_metastore(url) as store:
            store.tokens.create("ann", Role.VIEWER)
            found = modes(tmp_path)
        assert {"m.db", "m.db-wal", "m.db-shm", "m.db.process"} <= found.keys()
        assert set(found.values()) == {"0o600"}, found
    finally:
        os.umask(before)


def test_db_upgrade_makes_it_private_too(tmp_path: Path) -> None:
    migrate.upgrade(f"sqlite:///{tmp_path}/m.db")
    assert modes(tmp_path)["m.db"] == "0o600"


@pytest.mark.parametrize(
    ("mode", "wanted"),
    [
        (0o644, 0o600),
        (0o666, 0o660),
        (0o664, 0o660),
        (0o640, 0o600),
        (0o660, 0o660),
        (0o600, 0o600),
    ],
)
def test_one_that_is_found_wider_is_tightened_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int, wanted: int
) -> None:
    url = f"sqlite:///{tmp_path}/m.db"
    with open_metastore(url) as store:
        for name in modes(tmp_path):
            os.chmod(tmp_path / name, mode)
        with open_metastore(url):
            assert set(modes(tmp_path).values()) == {oct(wanted)}
        assert store.registry.revision() is not None
    told = [r.message for r in caplog.records if "could be read by others" in r.message]
    assert bool(told) == (mode != wanted)
    assert len(told) == len(set(told))


@pytest.mark.skipif(os.geteuid() != 0, reason="another group is root's to give")
def test_a_named_group_shares_it(tmp_path: Path) -> None:
    group = next(g for g in grp.getgrall() if g.gr_gid not in (0, os.getegid()))
    url = f"sqlite:///{tmp_path}/m.db"
    with sole_process(url), open_metastore(url, group=group.gr_name) as store:
        store.tokens.create("ann", Role.VIEWER)
        found = modes(tmp_path)
    assert found["m.db"] == found["m.db-wal"] == "0o660"
    assert (tmp_path / "m.db").stat().st_gid == group.gr_gid
    with open_metastore(url):  # a process that does not know the setting leaves it
        assert modes(tmp_path)["m.db"] == "0o660"
    readers = file_access.readers_of(tmp_path / "m.db")
    assert readers.group == group.gr_name and not readers.everybody


def test_a_group_that_does_not_exist_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no-such-group"):
        open_metastore(f"sqlite:///{tmp_path}/m.db", group="no-such-group")


def test_what_may_not_be_changed_is_left_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"sqlite:///{tmp_path}/m.db"
    open_metastore(url).close()
    os.chmod(tmp_path / "m.db", 0o644)

    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(file_access.os, "chmod", refused)
    open_metastore(url).close()
    assert f"chmod o-rwx {tmp_path}/m.db" in caplog.text
    assert modes(tmp_path)["m.db"] == "0o644"


def test_a_closed_folder_keeps_others_from_an_open_file(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir(mode=0o700)
    file = folder / "m.db"
    file.write_bytes(b"")
    file.chmod(0o644)
    assert not file_access.readers_of(file).everybody


def test_postgres_is_left_to_its_own_rights() -> None:
    file_access.make_private(metastore_url("postgresql://db/x"), "no-such-group", create=True)


def test_a_new_metastore_is_told(tmp_path, caplog):
    """Who starts in another folder would else see no caches and no reason."""
    url = f"sqlite:///{tmp_path / 'other.db'}"
    open_metastore(url).close()
    assert f"made a new metastore, {url}, which has no caches yet" in caplog.text
    caplog.clear()
    open_metastore(url).close()
    assert caplog.text == ""
