"""A restricted table holds values and numbers of rows that stand nowhere else. Whatever REST, its
metrics and its log say, none of them is in it for who has no grant on the caches, whatever his
role; and that is so by the kinds of what texts are made of, as switching one off shows."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

import matcher.model.message as messages
from cachemgr.delta.head_lookup import Heads
from cachemgr.metastore import Metastore, open_metastore
from cachemgr.roles import Role
from cachemgr.serving.feed import Feed
from cachemgr.serving.sources import MetastoreSource
from cachemgr.telemetry import logger
from cachemgr.text.door import TextDoor
from matcher.model.message import Cause, Count, Value
from tests.harness.load.population import SETTINGS
from tests.worlds.secret_rows import (
    APPENDED,
    QUERIES,
    QUOTED,
    ROWS,
    VALUE,
    leaks,
    places,
    secret_world,
)


@dataclass
class World:
    """A service over a restricted table, and clients of it."""

    store: Metastore
    url: str
    feed: Feed
    log: list[str]

    def client(self, role: Role, principal: str) -> httpx.Client:
        _, token = self.store.tokens.create(principal, role)
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=f"{self.url}/api/v1", headers=headers, timeout=30)

    def told(self, role: Role, principal: str) -> str:
        """All that the service says to somebody, by its answers, its metrics and its log."""
        del self.log[:]
        with self.client(role, principal) as client:
            answers = [client.get(place) for place in places(self.store)]
            for sql in QUERIES:
                answers.append(client.post("/rewrite", json={"sql": sql}))
                answers.append(client.post("/explain", json={"sql": sql, "candidates": 1000}))
            name = self.store.caches.matching()[0].name
            answers.append(client.post(f"/caches/{name}/refreshes", json={"mode": "?"}))
        texts = [answer.text for answer in answers]
        texts.append(httpx.get(f"{self.url}/metrics").text)
        return "\n".join([*texts, *self.log])


@pytest.fixture
def world(serve, store: Metastore, metastore_url: str, tmp_path: Path) -> Iterator[World]:
    secret_world(store, tmp_path, 10)
    feed = Feed(MetastoreSource(open_metastore(metastore_url)))
    feed.start()
    assert feed.wait_loaded(20)
    lines: list[str] = []
    handler = _Lines(lines)
    logger.addHandler(handler)
    url = serve(texts=TextDoor(feed, Heads(), SETTINGS))
    found = World(store, url, feed, lines)
    granted = found.told(Role.OPERATOR, "ann")  # what he asks is in the decision log then
    assert str(APPENDED) in granted
    feed.flush_log()
    yield found
    logger.removeHandler(handler)
    feed.close()


class _Lines(logging.Handler):
    """Keeps what is logged."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__(logging.DEBUG)
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(self.format(record))


@pytest.mark.parametrize("role", list(Role))
def test_none_is_told_to_who_has_no_grant(world: World, role: Role) -> None:
    assert leaks(world.told(role, f"bob-{role.value}")) == set()


def test_all_are_told_to_who_has_one(world: World) -> None:
    assert leaks(world.told(Role.OPERATOR, "ann")) == {str(ROWS), str(APPENDED), VALUE, QUOTED}


@pytest.mark.parametrize(
    ("kind", "sentinel"), [(Count, str(ROWS)), (Value, VALUE), (Cause, QUOTED)]
)
def test_without_the_redaction_of_a_kind_its_sentinel_is_told(
    world: World, monkeypatch: pytest.MonkeyPatch, kind: messages.Kind, sentinel: str
) -> None:
    hide = messages._without

    def but_for_one(arg: messages.Arg, kinds: tuple[messages.Kind, ...]) -> messages.Arg:
        return hide(arg, tuple(other for other in kinds if other is not kind))

    monkeypatch.setattr(messages, "_without", but_for_one)
    assert sentinel in leaks(world.told(Role.OPERATOR, "bob"))
