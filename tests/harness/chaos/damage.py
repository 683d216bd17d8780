"""Damage to what the replicas work on: base tables, the caches' files, the metastore itself."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, Table, insert, select, text
from sqlalchemy.exc import OperationalError

from cachemgr.metastore import Metastore
from cachemgr.metastore.models import Base
from tests.harness.chaos.client import Client
from tests.harness.chaos.judge import Restored, path_of, read_log
from tests.harness.chaos.storage import Storage, harmed, states
from tests.harness.chaos.world import BaseTable, CacheSpec

POISON, FILES, RESTORE = "poisoned base table", "deleted files", "metastore put back"
AWAY = "storage away"
KINDS = (POISON, FILES, RESTORE, AWAY)
POISON_SECONDS = 10.0
# Between a copy of the metastore and its being put back.
COPY_SECONDS = 12.0
# Each takes the work of so long from all caches.
RESTORE_EVERY_SECONDS = 240.0
# What was under way when the metastore was put back is over by then.
LATE_SECONDS = 10.0


@dataclass
class Damages(threading.Thread):
    """Does damage of one kind after the other until told to stop.

    Args:
        store: The metastore.
        specs: The caches.
        tables: Their base tables.
        client: Is told of deleted files.
        storage: The caches' storage.
        asked: The ids of all refreshes that schedulers have logged to have asked for.
        seed: Of what is random.
        seconds: Between two kinds.
    """

    store: Metastore
    specs: Sequence[CacheSpec]
    tables: Sequence[BaseTable]
    client: Client
    storage: Storage
    asked: Callable[[], set[str]]
    seed: int
    seconds: float = 8.0
    done: Counter[str] = field(default_factory=Counter)
    # how the storage was away, and for whom
    ways: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    restored: list[Restored] = field(default_factory=list)
    # (cache, version) whose files were deleted
    deleted: set[tuple[str, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__(name="chaos-damage", daemon=True)
        self._random = random.Random(self.seed)
        self._over = threading.Event()

    def __hash__(self) -> int:
        return id(self)

    def run(self) -> None:
        """Do damage."""
        kinds = self._random.sample(KINDS, len(KINDS))
        turn, restore_at = 0, 0.0
        how = {POISON: self._poison, FILES: self._files, RESTORE: self._restore, AWAY: self._away}
        while not self._over.wait(self.seconds):
            kind = kinds[turn % len(kinds)]
            turn += 1
            if kind == RESTORE and time.monotonic() < restore_at:
                continue
            try:
                how[kind]()
            except Exception as error:
                self.problems.append(f"{kind} failed: {type(error).__name__} {error}")
                return
            self.done[kind] += 1
            if kind == RESTORE:
                restore_at = time.monotonic() + RESTORE_EVERY_SECONDS

    def stop(self) -> None:
        """Do no more; what is under way is brought to its end."""
        self._over.set()
        self.join()

    def _poison(self) -> None:
        table = self._random.choice(self.tables)
        table.poison()
        try:
            self._over.wait(POISON_SECONDS)
        finally:
            table.mend()

    def _away(self) -> None:
        before = states(self.store, self.specs)
        what = self.storage.go(self._random, self._over)
        self.ways[what] += 1
        # what was found meanwhile is noted by then
        self._over.wait(2.0)
        # files that were deleted are found to be gone at any time, and their tables may move
        deleted = {name for name, _ in self.deleted}
        self.problems += harmed(before, states(self.store, self.specs), deleted)

    def _files(self) -> None:
        self.delete_files(self._random.choice(self.specs))

    def delete_files(self, spec: CacheSpec) -> None:
        """Delete the files that a cache serves from.

        Args:
            spec: The cache.
        """
        cache = self.store.caches.named("default", spec.name)
        snapshot = None if cache is None else self.store.snapshots.published(cache.id)
        if cache is None or snapshot is None or snapshot.run.cache_version is None:
            return
        version = snapshot.run.cache_version
        self.deleted.add((spec.name, version))
        for name in _files_of(cache.location, version):
            (path_of(cache.location) / name).unlink(missing_ok=True)
        self.client.damaged(spec)

    def _restore(self) -> None:
        engine = self.store.engine
        copied, rows = time.time(), _copy(engine)
        self._over.wait(COPY_SECONDS)
        _put_back(engine, rows)
        back = time.time()
        # what was asked for before may be logged after
        self._over.wait(1.0)
        self.restored.append(Restored(copied, back + LATE_SECONDS, frozenset(self.asked())))


def _files_of(location: str, version: int) -> frozenset[str]:
    found = [c.files for c in read_log(location) if c.version == version]
    return found[0] if found else frozenset()


def has_files(store: Metastore, spec: CacheSpec) -> bool:
    """Whether a cache serves, from files that are there.

    Args:
        store: The metastore.
        spec: The cache.
    """
    cache = store.caches.named("default", spec.name)
    snapshot = None if cache is None else store.snapshots.published(cache.id)
    if cache is None or cache.damaged or snapshot is None or snapshot.run.cache_version is None:
        return False
    folder = path_of(cache.location)
    found = _files_of(cache.location, snapshot.run.cache_version)
    return bool(found) and all(Path(folder, name).exists() for name in found)


def _copy(engine: Engine) -> Mapping[Table, list[dict[str, Any]]]:
    """The whole metastore as it is at one moment."""
    with engine.connect().execution_options(isolation_level="SERIALIZABLE") as connection:
        return {
            table: [dict(row) for row in connection.execute(select(table)).mappings()]
            for table in Base.metadata.sorted_tables
        }


def _put_back(engine: Engine, rows: Mapping[Table, list[dict[str, Any]]]) -> None:
    names = ", ".join(table.name for table in rows)
    for _ in range(20):
        try:
            with engine.begin() as connection:
                connection.execute(text(f"TRUNCATE {names} CASCADE"))
                for table, mine in rows.items():
                    if mine:
                        connection.execute(insert(table), mine)
            return
        except OperationalError:  # a deadlock with a replica
            time.sleep(0.2)
    raise AssertionError("the metastore could not be put back")
