"""A service that asks nobody for a token says so."""

from __future__ import annotations

import httpx
import pytest

from cachemgr.config.service_settings import ServiceSettings
from cachemgr.roles import Role
from cachemgr.server import serve as serving


@pytest.mark.parametrize("is_open", [True, False])
def test_readyz_says_whether_it_is_open(serve, is_open: bool):
    found = httpx.get(f"{serve(open_to_all=is_open)}/readyz", timeout=60).json()
    assert found["status"] == "ok"
    assert ("no token is asked for" in (found["detail"] or "")) is is_open


def test_its_first_line_says_so_and_of_which_metastore(store, monkeypatch, caplog):
    settings = ServiceSettings(metastore_url="postgresql://ann:secret@db/caches")
    for made in (False, True):
        if made:
            store.tokens.create("ann", Role.ADMIN)
        caplog.clear()
        with caplog.at_level("INFO"):
            serving._say_who_may_ask(settings, serving._is_open(settings, store.tokens))
        assert ("is open" in caplog.text) is not made
        assert "db/caches" in caplog.text and "secret" not in caplog.text


@pytest.mark.parametrize("is_open", [True, False])
def test_readyz_says_that_spark_did_not_start(serve, is_open: bool):
    url = serve(open_to_all=is_open, spark=lambda: "failed")
    found = httpx.get(f"{url}/readyz", timeout=60).json()
    assert (found["status"], found["spark"]) == ("ok", "failed")
    assert "Spark did not start: the log" in found["detail"]
    why = "Spark did not start: statement 2 of the setting spark_init fails"
    url = serve(open_to_all=is_open, spark=lambda: "failed", trouble=lambda: why)
    assert why in httpx.get(f"{url}/readyz", timeout=60).json()["detail"]
    assert ("no token is asked for" in found["detail"]) is is_open
