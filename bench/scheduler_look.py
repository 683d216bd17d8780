"""What the scheduler's look costs with 1,000 caches, on SQLite and on PostgreSQL: when nothing is
to be done, which every replica does each second, and when all are due at once.

Each cache has ten published refreshes behind it and a base table of its own. Delta is left out: the
heads of the tables are made up.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Table, create_engine, insert, select, update

from bench.population import plans, published
from bench.results import Figure
from cachemgr.base_state import BaseState
from cachemgr.metastore import Metastore, open_metastore
from cachemgr.metastore.database import metastore_url
from cachemgr.metastore.models import (
    CacheRow,
    CommitNumberRow,
    LeaseRow,
    RefreshRunRow,
    ScheduleRow,
    SnapshotTableRow,
)
from cachemgr.metastore.records import SnapshotTableRecord
from cachemgr.worker.schedule import Watch, ask_for_due

_COUNT = 1_000
_RUNS = 10
_IDLE_SECONDS = 0.2
_DUE_SECONDS = 3.0
_TRIGGERS: tuple[dict[str, Any], ...] = (
    {"kind": "ON_COMMIT"},
    {"kind": "EVERY", "seconds": 3600},
    {"kind": "CRON", "expression": "0 6 * * *", "time_zone": "Europe/Berlin"},
    {"kind": "TARGET_LAG", "seconds": 60},
)


class _Heads:
    """Tables that stand still, or have all moved."""

    def __init__(self) -> None:
        self.version = 1
        self.at = datetime.now(UTC)

    def places(self, names: Collection[str]) -> Mapping[str, str]:
        return {}

    def heads(self, places: Collection[str]) -> Mapping[str, BaseState | None]:
        """Each table at the version."""
        return {place: BaseState("id", self.version, f"c{self.version}", 0) for place in places}

    def first_commit_after(self, place: str, version: int) -> datetime | None:
        """A minute and more ago, so that a lag is spent."""
        return self.at


def run() -> list[Figure]:
    """All figures of this module."""
    figures = []
    for name, database in (("SQLite", _sqlite), ("PostgreSQL", _postgres)):
        with database() as url, open_metastore(url) as store:
            _fill(store, url)
            for what, seconds, budget in _measured(store, url):
                title = f"scheduler's look, {_COUNT} caches, {what}, {name}"
                figures.append(Figure(title, seconds, "s", budget))
    return figures


def _measured(store: Metastore, url: str) -> Iterator[tuple[str, float, float]]:
    heads = _Heads()
    watch = Watch(store, heads)  # type: ignore[arg-type]

    def look(asking: Metastore = store) -> int:
        return watch.look() + len(ask_for_due(asking).wanted)

    if look():
        raise AssertionError("a cache was due")
    yield "nothing due", _median(look), _IDLE_SECONDS
    heads.version, heads.at = 2, datetime.now(UTC) - timedelta(minutes=2)
    _age(url)
    with open_metastore(url) as other:  # one that remembers no run as it was
        began = time.perf_counter()
        found = look(other)
        took = time.perf_counter() - began
    waiting = len(store.queue.waiting())
    if waiting != _COUNT:
        raise AssertionError(f"{waiting} of {_COUNT} refreshes wait, {found} were found")
    yield "all due", took, _DUE_SECONDS
    yield "all waiting", _median(look), _IDLE_SECONDS


def _median(look: Callable[[], object], times: int = 9) -> float:
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        look()
        taken.append(time.perf_counter() - began)
    return sorted(taken)[times // 2]


@contextmanager
def _sqlite() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        yield f"sqlite:///{folder}/metastore.db"


@contextmanager
def _postgres() -> Iterator[str]:
    from tests.processes import postgres_server

    with postgres_server() as url:
        yield url


def _fill(store: Metastore, url: str) -> None:
    """One cache made and published by the metastore's own writer, and copies of its rows."""
    plan = next(iter(plans(1)))
    now = datetime.now(UTC)
    tables = [SnapshotTableRecord("default.t", "file:/t", "id", 1, 0, "c1")]
    cache = published(store, plan, tables, now)
    engine = create_engine(metastore_url(url))
    with engine.begin() as connection:
        models = (CacheRow, ScheduleRow, LeaseRow, CommitNumberRow, RefreshRunRow, SnapshotTableRow)
        template: dict[Table, dict[str, Any]] = {}
        for model in models:
            table: Any = model.__table__
            template[table] = dict(connection.execute(select(table)).mappings().one())
        rows: dict[Table, list[dict[str, Any]]] = {table: [] for table in template}
        for number in range(_COUNT - 1):
            _copy(template, rows, number, now)
        for table, copies in rows.items():
            connection.execute(insert(table), copies)
        connection.execute(
            update(CacheRow).where(CacheRow.id == cache.id).values(refresh_trigger=_TRIGGERS[0])
        )
    engine.dispose()


def _copy(
    template: Mapping[Table, Mapping[str, Any]],
    rows: Mapping[Table, list[dict[str, Any]]],
    number: int,
    now: datetime,
) -> None:
    cache_id = f"{number:032x}"
    changed: dict[str, dict[str, Any]] = {
        "caches": {
            "id": cache_id,
            "name": f"c{number}",
            "name_key": f"c{number}",
            "location": f"file:/warehouse/caches/{cache_id}",
            "refresh_trigger": _TRIGGERS[number % len(_TRIGGERS)],
            "published_refresh_id": f"{number:028x}{_RUNS - 1:04x}",
        },
        "snapshot_tables": {
            "refresh_id": f"{number:028x}{_RUNS - 1:04x}",
            "location": f"file:/t{number}",
        },
    }
    for table, row in template.items():
        if table.name != "refresh_runs":
            mine = {"cache_id": cache_id} if "cache_id" in table.c else {}
            rows[table].append({**row, **mine, **changed.get(table.name, {})})
            continue
        for token in range(_RUNS):
            began = now - timedelta(minutes=5 * (_RUNS - token))
            rows[table].append(
                {
                    **row,
                    "id": f"{number:028x}{token:04x}",
                    "cache_id": cache_id,
                    "fencing_token": token,
                    "started_at": began,
                    "finished_at": began + timedelta(seconds=1),
                }
            )


def _age(url: str) -> None:
    """Let the last refreshes be of yesterday, so that those with a schedule are due too."""
    engine = create_engine(metastore_url(url))
    yesterday = datetime.now(UTC) - timedelta(hours=25)
    with engine.begin() as connection:
        connection.execute(update(RefreshRunRow).values(started_at=yesterday))
    engine.dispose()
