"""A plan that is served, the service that serves it, and what a feed knows of it."""

from __future__ import annotations

import time
from collections.abc import Callable

from cachemgr.api.app import create_app
from cachemgr.api.dependencies import ApiState
from matcher.model.codec import encode_plan
from matcher.model.expr import Agg, Col
from matcher.model.ir import CachePlan, Measure, Relation, StoredColumn
from tests.processes import free_port
from tests.servers import ServerThread

PLAN = encode_plan(
    CachePlan(
        "c",
        (Relation("file:/t", "t"), Relation("file:/u", "u")),
        (),
        (StoredColumn("k", Col(0, "k", "string")),),
        (Measure("n", Agg("count", (), "bigint", False)),),
    )
)


class Server:
    """The application on a port of its own; can be stopped and started again there."""

    def __init__(self, store) -> None:
        self._app = create_app(ApiState(store, None, lambda: False))
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self.asked: list[str] = []
        self.start()

    def start(self) -> None:
        self._server = ServerThread(self._app, self._port)

    def stop(self) -> None:
        self._server.stop()


def until(true: Callable[[], object], what: str, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.02)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.now


def names(feed):
    return sorted(feed.registry.names())
