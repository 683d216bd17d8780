"""A replica is killed while 20 clients write through it: what was acknowledged is there, and what
was not can be sent again under its key."""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from cachemgr.metastore import Metastore, open_metastore
from cachemgr.roles import Role
from tests.processes import Replica, replica_settings, until

pytestmark = [pytest.mark.spark, pytest.mark.postgres, pytest.mark.slow]
CLIENTS = 20
SECONDS_BETWEEN = 4.0
START_SECONDS = 180.0


@dataclass
class Acknowledged:
    """What the service said it had done."""

    created: dict[str, str] = field(default_factory=dict)
    changed: dict[str, str] = field(default_factory=dict)
    refreshes: dict[str, str] = field(default_factory=dict)
    cut_off: int = 0
    again: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


class Writer(threading.Thread):
    """One client: it creates caches, changes them and asks for refreshes, each under its key."""

    def __init__(self, number: int, base: str, token: str, over: threading.Event) -> None:
        super().__init__(name=f"writer-{number}", daemon=True)
        self.seen = Acknowledged()
        self._number = number
        self._random = random.Random(number)
        self._over = over
        headers = {"Authorization": f"Bearer {token}"}
        self._client = httpx.Client(base_url=base, headers=headers, timeout=60)

    def run(self) -> None:
        """Write until it is over."""
        made = 0
        try:
            while not self._over.is_set():
                if made == 0 or self._random.random() < 0.3:
                    made += 1
                    self._create(f"w{self._number}_{made}")
                elif self._random.random() < 0.5:
                    self._change(f"w{self._number}_{self._random.randint(1, made)}")
                else:
                    self._refresh(f"w{self._number}_{self._random.randint(1, made)}")
        except Exception as error:
            self.seen.wrong.append(f"{self.name}: {type(error).__name__}: {error}")
        finally:
            self._client.close()

    def _create(self, name: str) -> None:
        ddl = f"CREATE RELATIONAL CACHE {name} AS SELECT region, {self._number} AS n FROM sales"
        answer = self._send("/api/v1/caches", {"ddl": ddl})
        if answer is not None:
            self._check(answer, 201, f"create {name}")
            self.seen.created[name] = answer.json()["id"]

    def _change(self, name: str) -> None:
        action = self._random.choice(("pause", "resume"))
        answer = self._send(f"/api/v1/caches/{name}/{action}", None)
        if answer is not None and answer.status_code == 200:
            self.seen.changed[name] = action

    def _refresh(self, name: str) -> None:
        answer = self._send(f"/api/v1/caches/{name}/refreshes", None)
        if answer is not None:
            self._check(answer, 202, f"refresh {name}")
            self.seen.refreshes[answer.json()["id"]] = name

    def _check(self, answer: httpx.Response, status: int, what: str) -> None:
        if answer.status_code != status:
            self.seen.wrong.append(f"{what}: {answer.status_code} {answer.text[:300]}")

    def _send(self, path: str, body: dict[str, Any] | None) -> httpx.Response | None:
        """One request, again under the same key until it is answered."""
        key = uuid.uuid4().hex
        sent = 0
        # what was begun is brought to its end, so that it is known what there must be
        end = time.monotonic() + 180
        while time.monotonic() < end:
            try:
                sent += 1
                headers = {"Idempotency-Key": key}
                answer = self._client.post(path, json=body, headers=headers)
            except httpx.TransportError:
                self.seen.cut_off += 1
                time.sleep(0.5)
                continue
            busy = answer.status_code == 503 or (
                answer.status_code == 409 and "IN_PROGRESS" in answer.text
            )
            if not busy:
                self.seen.again[str(sent > 1)] += 1
                return answer
            time.sleep(0.5)
        self.seen.wrong.append(f"{self.name}: {path} was never answered")
        return None


@pytest.fixture
def store(postgres_url: str) -> Iterator[Metastore]:
    with open_metastore(postgres_url) as opened:
        yield opened


def test_nothing_acknowledged_is_lost(store: Metastore, tmp_path: Path):
    _kill_while_they_write(store, tmp_path, kills=1, waits=False)


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_by_several_kills(store: Metastore, tmp_path: Path):
    _kill_while_they_write(store, tmp_path, kills=4, waits=True)


def _kill_while_they_write(store: Metastore, tmp_path: Path, *, kills: int, waits: bool) -> None:
    """`waits` is for what was cut off to be taken for abandoned; else that moment is brought on."""
    _, token = store.tokens.create("ann", Role.OPERATOR)
    columns = "region STRING, amount BIGINT"
    init = [f"CREATE TABLE sales ({columns}) USING delta LOCATION '{tmp_path / 'sales'}'"]
    settings = replica_settings(store.url, tmp_path, init)
    # REST alone: it is the writes that are looked at
    replica = Replica("victim", tmp_path, settings, token, ("serve", "--no-scheduler"))
    over = threading.Event()
    base = f"http://127.0.0.1:{replica.port}"
    writers = [Writer(n, base, token, over) for n in range(CLIENTS)]
    try:
        replica.start()
        until(replica.ready, START_SECONDS, "the replica answers")
        for writer in writers:
            writer.start()
        until(lambda: any(w.seen.created for w in writers), START_SECONDS, "Spark has started")
        for _ in range(kills):
            time.sleep(SECONDS_BETWEEN)
            replica.started.kill()
            if not waits:
                _abandon(store)
            replica.start()
            until(replica.ready, START_SECONDS, "the replica answers again")
        time.sleep(SECONDS_BETWEEN)
        over.set()
        for writer in writers:
            writer.join(240)
            assert not writer.is_alive()
        _check(store, writers, kills)
        assert replica.started.stop() == 0
    finally:
        over.set()
        replica.close()


def _abandon(store: Metastore) -> None:
    """What was being carried out began a minute earlier."""
    earlier = "UPDATE idempotency_keys SET created_at = created_at - INTERVAL '1 minute'"
    with store.engine.begin() as connection:
        connection.execute(text(f"{earlier} WHERE status IS NULL"))


def _check(store: Metastore, writers: list[Writer], kills: int) -> None:
    seen = [writer.seen for writer in writers]
    assert [text for one in seen for text in one.wrong] == []
    known = {cache.name: cache for cache in store.caches.matching(None)}
    waiting = {request.id for request in store.queue.waiting()}
    for one in seen:
        for name, cache_id in one.created.items():
            assert known[name].id == cache_id and known[name].owner == "ann"
        for name, action in one.changed.items():
            assert known[name].paused == (action == "pause"), name
        for refresh_id in one.refreshes:
            assert refresh_id in waiting or store.refreshes.get(refresh_id) is not None
    assert sum(len(one.created) for one in seen) == len(known), "nothing was made twice"
    assert sum(one.cut_off for one in seen) >= kills, "the kills hit requests"
    assert sum(one.again["True"] for one in seen) >= kills
    assert all(one.created for one in seen), "each client wrote"
