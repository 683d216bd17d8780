"""A service that asked for tokens stays closed when its metastore is lost or emptied."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import httpx
import pytest

from cachemgr.config.service_settings import ServiceSettings, service_settings
from cachemgr.errors import ConfigurationError
from cachemgr.metastore import open_metastore
from cachemgr.roles import Role
from cachemgr.server import serve as serving
from cachemgr.server.closed_mark import ClosedMark
from tests.processes import CACHEMGR, Started, free_port, until


@pytest.fixture
def url(tmp_path: Path) -> str:
    (tmp_path / "settings").mkdir()
    return f"sqlite:///{tmp_path}/m.db"


def is_open(tmp_path: Path, url: str, **more: str) -> bool:
    settings = ServiceSettings(metastore_url=url, **more)
    with open_metastore(url) as store:
        return serving._is_open(settings, store.tokens, ClosedMark(url, tmp_path / "settings"))


def lose(tmp_path: Path) -> None:
    for file in tmp_path.glob("m.db*"):
        if not file.name.endswith(".closed"):
            file.unlink()


def make_token(url: str) -> None:
    with open_metastore(url) as store:
        store.tokens.create("ann", Role.ADMIN)


def test_a_metastore_that_was_never_closed_is_open(tmp_path: Path, url: str) -> None:
    assert is_open(tmp_path, url)
    lose(tmp_path)
    assert is_open(tmp_path, url)
    assert not list(tmp_path.glob("**/*closed*"))


@pytest.mark.parametrize("left", ["both", "beside the settings", "beside the file"])
def test_one_that_was_closed_stays_so(tmp_path: Path, url: str, left: str) -> None:
    make_token(url)
    assert not is_open(tmp_path, url)
    lose(tmp_path)
    if left == "beside the settings":
        (tmp_path / "m.db.closed").unlink()
    if left == "beside the file":
        next((tmp_path / "settings").iterdir()).unlink()
    assert not is_open(tmp_path, url)
    assert is_open(tmp_path, f"sqlite:///{tmp_path}/other.db")  # another one was never closed
    for mark in (*tmp_path.glob("*.closed"), *(tmp_path / "settings").iterdir()):
        mark.unlink()
    assert is_open(tmp_path, url)  # on purpose


def test_an_emptied_one_stays_closed(tmp_path: Path, url: str) -> None:
    make_token(url)
    assert not is_open(tmp_path, url)
    with sqlite3.connect(tmp_path / "m.db") as base:
        base.execute("DELETE FROM tokens")
    assert not is_open(tmp_path, url)


def test_required_is_never_open(tmp_path: Path, url: str) -> None:
    assert not is_open(tmp_path, url, auth="required")
    with pytest.raises(ConfigurationError, match="auth"):
        service_settings(auth="maybe")


def test_a_mark_that_cannot_be_written_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mark = ClosedMark("postgresql://ann:topsecret@db/x", tmp_path / "no such folder")
    mark.note()
    mark.note()
    assert caplog.text.count("auth = required") == 1 and "topsecret" not in caplog.text


def test_a_service_as_a_process_lets_nobody_in_and_says_what_to_do(
    tmp_path: Path, url: str
) -> None:
    make_token(url)
    with _service(tmp_path, url) as (address, _):
        assert httpx.get(f"{address}/api/v1/caches").status_code == 401
    lose(tmp_path)
    with _service(tmp_path, url) as (address, started):
        answer = httpx.get(f"{address}/api/v1/caches")
        assert answer.status_code == 401
        assert "cachemgr token create --role admin" in answer.json()["error"]["message"]
        ready = httpx.get(f"{address}/readyz").json()
        assert "holds no token" in ready["detail"]
        told = started.text()
        assert "lets nobody in" in told and f"{tmp_path}/m.db.closed" in told
        with open_metastore(url) as store:
            _, token = store.tokens.create("ann", Role.ADMIN)
        headers = {"Authorization": f"Bearer {token}"}
        assert httpx.get(f"{address}/api/v1/caches", headers=headers).status_code == 200


class _service:
    def __init__(self, folder: Path, url: str) -> None:
        self._port = free_port()
        command = [*CACHEMGR, "serve", "--no-scheduler", "--port", str(self._port)]
        environment = {"CACHEMGR_METASTORE_URL": url, "CACHEMGR_LOCATION": str(folder / "caches")}
        self._started = Started.run(command, folder / "log", folder / "settings", environment)

    def __enter__(self) -> tuple[str, Started]:
        address = f"http://127.0.0.1:{self._port}"

        def answers() -> bool:
            assert self._started.alive, self._started.text()
            try:
                return httpx.get(f"{address}/healthz").status_code == 200
            except httpx.HTTPError:
                return False

        until(answers, 60, "the service answers")
        return address, self._started

    def __exit__(self, *_: object) -> None:
        self._started.stop()
