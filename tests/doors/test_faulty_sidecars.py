"""What goes wrong beside a server stays there: its queries run, and none waits for more than the
time-out and its own run."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from cachemgr.metastore import open_metastore
from tests.doors.faulty_sidecar import SLOW_SECONDS
from tests.doors.spark_server import Server, reads_cache, server, server_conf
from tests.processes import postgres_server, until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_CONNECTIONS = 8
_TABLE = "CREATE TABLE sales USING delta AS SELECT id, id % 7 AS shop FROM range(1000)"
_CREATE = "CREATE RELATIONAL CACHE c AS SELECT shop, COUNT(*) AS n FROM sales GROUP BY shop"
_REFRESH = "REFRESH RELATIONAL CACHE c"
_QUERY = "SELECT shop, COUNT(*) FROM sales GROUP BY shop ORDER BY shop"
_ROWS = [(shop, len(range(shop, 1000, 7))) for shop in range(7)]


@pytest.mark.parametrize(
    "fault",
    [
        "slow",
        "nonsense",
        "out of memory",
    ],
)
def test_queries_run_while_the_sidecar_is_faulty(tmp_path: Path, fault: str) -> None:
    is_on = tmp_path / "fault"
    python = tmp_path / "python"
    python.write_text(
        f"#!/bin/sh\nexec {sys.executable} -m tests.doors.faulty_sidecar '{fault}' '{is_on}'\n"
    )
    python.chmod(0o755)
    conf = server_conf(tmp_path, sidecar_python=str(python), sidecar_timeout="1s")
    with server(tmp_path, conf, [_TABLE, _CREATE, _REFRESH]) as made:
        until(lambda: _hits(made), 60, "a hit")
        own = _longest(made)
        is_on.touch()
        # others run beside: a query takes three times as long now and then, which is not a wait
        assert _longest(made) < min(SLOW_SECONDS, 3 * own + 5)
        is_on.unlink()
        if fault == "slow":
            until(lambda: _told(tmp_path, "DECIDED_TOO_LATE"), 60, "the log says what was missed")
        until(lambda: _hits(made), 120, "hits again", every=1)


def test_queries_run_while_the_metastore_is_down(tmp_path: Path) -> None:
    with ExitStack() as kept:
        running = kept.enter_context(ExitStack())
        url = running.enter_context(postgres_server())
        where = {"CACHEMGR_METASTORE_URL": url}
        conf = {k: v for k, v in server_conf(tmp_path).items() if "metastore" not in k}
        made = kept.enter_context(server(tmp_path, conf, [_TABLE, _CREATE, _REFRESH], where))
        until(lambda: _hits(made), 60, "a hit")
        own = _longest(made)
        running.close()
        for _ in range(3):
            assert _longest(made) < 3 * own + 5
        with pytest.raises(Exception, match="METASTORE"):
            made.sql("SHOW RELATIONAL CACHES")


@pytest.mark.parametrize("sent", [signal.SIGSTOP, signal.SIGKILL])
def test_what_it_decided_before_is_void_soon_after_it_was_last_heard_of(
    tmp_path: Path, sent: signal.Signals
) -> None:
    """Whoever would tell of a drop, or of a grant that is taken back, is gone."""
    with server(tmp_path, server_conf(tmp_path), [_TABLE, _CREATE, _REFRESH]) as made:
        until(lambda: "LocalTableScan" in _plan(made), 60, "a hit whose rows are held")
        for _ in range(4):
            assert _hits(made)
        os.kill(made.python(), sent)
        began = time.monotonic()
        if sent == signal.SIGSTOP:  # one that has ended is noticed at once
            assert _hits(made), "what was decided before is not kept"
            assert time.monotonic() - began < 4
        with open_metastore(f"sqlite:///{tmp_path}/metastore.db") as metastore:
            (cache,) = metastore.caches.all()
            metastore.caches.drop(cache.id, now=metastore.clock.now())
        time.sleep(max(0.0, began + 5 - time.monotonic()))
        for _ in range(3):
            assert not _hits(made)
            assert [tuple(row) for row in made.sql(_QUERY)[0]] == _ROWS


def _plan(made: Server) -> str:
    found: str = made.sql(f"EXPLAIN {_QUERY}")[0][0][0]
    return found


def _told(folder: Path, reason: str) -> bool:
    with sqlite3.connect(folder / "metastore.db") as metastore:
        found = metastore.execute(
            "SELECT COUNT(*) FROM rewrite_decisions WHERE reasons LIKE ?", [f"%{reason}%"]
        )
        return bool(found.fetchone()[0])


def _hits(made: Server) -> bool:
    return reads_cache(_plan(made))


def _longest(made: Server) -> float:
    """The longest of queries by many connections at once, in seconds; all answers are right."""

    def ask(number: int) -> float:
        with made.session(f"user{number}") as cursor:
            return max(_timed(cursor) for _ in range(3))

    with ThreadPoolExecutor(_CONNECTIONS) as pool:
        return max(pool.map(ask, range(_CONNECTIONS)))


def _timed(cursor: Any) -> float:
    started = time.monotonic()
    cursor.execute(_QUERY)
    rows = [tuple(row) for row in cursor.fetchall()]
    took = time.monotonic() - started
    assert rows == _ROWS
    return took
