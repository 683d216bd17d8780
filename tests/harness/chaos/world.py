"""What the chaos run refreshes: base tables whose content at each version is known beforehand.

Commit number v of a table is Delta version v and adds the same rows to each part and group, with
columns that follow from v alone. So any answer over a part says which version it was computed at,
and everything else in it can be checked against that: groups that disagree were read torn.

The rows are appended by a writer of our own: one process commits to each table, and a Spark commit
each second would take the cores that the replicas need.
"""

from __future__ import annotations

import json
import os
import threading
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

SCHEMA = "part int, grp int, v bigint, up bigint, down bigint"
GROUPS = 3
TOP = 1_000_000
# the clock of the last table's writer: its caches must neither wait until then nor seem fresh
CLOCK_AHEAD = 86_400.0
# (trigger, freshness) of the caches in turn. The periods go from 5 to 30 seconds, most at the long
# end: two cores carry about one small refresh a second, next to the starts of killed replicas.
POLICIES = (
    ("EVERY 30 SECONDS", "MAX STALENESS UNLIMITED"),
    ("ON COMMIT AT MOST EVERY 30 SECONDS", "MAX STALENESS INTERVAL 60 SECONDS"),
    ("EVERY 20 SECONDS", "MAX STALENESS UNLIMITED"),
    ("TARGET LAG 30 SECONDS", "MAX STALENESS UNLIMITED"),
    ("EVERY 5 SECONDS", "STRICT"),
    ("ON COMMIT AT MOST EVERY 30 SECONDS", "MAX STALENESS UNLIMITED"),
    ("EVERY 30 SECONDS", "STRICT"),
    ("ON COMMIT AT MOST EVERY 10 SECONDS", "MAX STALENESS UNLIMITED"),
    ("EVERY 30 SECONDS", "MAX STALENESS UNLIMITED"),
    ("TARGET LAG 30 SECONDS", "MAX STALENESS INTERVAL 60 SECONDS"),
    ("EVERY 25 SECONDS", "MAX STALENESS UNLIMITED"),
    ("EVERY 30 SECONDS", "MAX STALENESS UNLIMITED"),
    ("ON COMMIT AT MOST EVERY 30 SECONDS", "MAX STALENESS UNLIMITED"),
    ("EVERY 30 SECONDS", "MAX STALENESS UNLIMITED"),
    ("EVERY 25 SECONDS", "MAX STALENESS UNLIMITED"),
    ("TARGET LAG 30 SECONDS", "MAX STALENESS UNLIMITED"),
    ("EVERY 30 SECONDS", "MAX STALENESS UNLIMITED"),
    ("ON COMMIT AT MOST EVERY 20 SECONDS", "MAX STALENESS UNLIMITED"),
    ("EVERY 30 SECONDS", "MAX STALENESS UNLIMITED"),
    ("EVERY 30 SECONDS", "MAX STALENESS UNLIMITED"),
)

Row = tuple[int, int, int, int, int]


def expected(version: int) -> list[Row]:
    """What a cache holds at a version of its table: (grp, n, up, down, newest) by group."""
    ups = version * (version + 1) // 2
    return [(g, version, ups + g * version, TOP * version - ups, version) for g in range(GROUPS)]


def version_of(rows: Iterable[tuple[Any, ...]]) -> int | None:
    """The version that rows of a cache were computed at; None if there is no such version."""
    found = sorted(tuple(row) for row in rows)
    if not found:
        return 0
    version = int(found[0][1])
    return version if found == expected(version) else None


@dataclass(frozen=True)
class CacheSpec:
    """One cache of the run."""

    name: str
    table: str
    part: int
    trigger: str
    freshness: str

    @property
    def period(self) -> int:
        """Seconds of its trigger."""
        return int(self.trigger.split()[-2])

    @property
    def query(self) -> str:
        """What it holds."""
        return (
            "SELECT grp, COUNT(*) AS n, SUM(up) AS up, SUM(down) AS down, MAX(v) AS newest "
            f"FROM {self.table} WHERE part = {self.part} GROUP BY grp"
        )

    @property
    def ddl(self) -> str:
        """How it is declared."""
        return (
            f"CREATE RELATIONAL CACHE {self.name} REFRESH {self.trigger} AUTO "
            f"{self.freshness} AS {self.query}"
        )


def cache_specs(number: int, tables: int) -> list[CacheSpec]:
    """So many caches over so many tables, each the only one that can answer its query."""
    return [
        CacheSpec(f"c{i:02d}", f"t{i % tables}", i // tables, *POLICIES[i % len(POLICIES)])
        for i in range(number)
    ]


@dataclass
class BaseTable:
    """A Delta table that this process alone appends to."""

    name: str
    folder: Path
    parts: int
    # how far its writer's clock is ahead, in seconds
    ahead: float = 0.0
    version: int = 0
    # when each version was made, by the monotonic clock
    made: dict[int, float] = field(default_factory=dict)
    # from when to when it could not be read, likewise
    unreadable: list[tuple[float, float]] = field(default_factory=list)
    _commit: threading.Lock = field(default_factory=threading.Lock)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def path(self) -> Path:
        """Where it is."""
        return self.folder / self.name

    def poison(self) -> None:
        """Let the newest commit ask for a feature that no reader has; nothing is appended until it
        is mended."""
        self._commit.acquire()
        feature = {"readerFeatures": ["ofTomorrow"], "writerFeatures": ["ofTomorrow"]}
        protocol = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **feature}}
        with self._lock:
            self.unreadable.append((time.monotonic(), float("inf")))
        self._poisoned.write_text(json.dumps(protocol) + "\n")

    def mend(self) -> None:
        """Take that commit back."""
        self._poisoned.unlink()
        with self._lock:
            self.unreadable[-1] = (self.unreadable[-1][0], time.monotonic())
        self._commit.release()

    @property
    def _poisoned(self) -> Path:
        return self.path / "_delta_log" / f"{self.version + 1:020d}.json"

    def was_unreadable(self, since: float) -> bool:
        """Whether it was at some time from a moment of the monotonic clock on."""
        with self._lock:
            return any(end >= since for _, end in self.unreadable)

    def append(self) -> int:
        """One more commit, unless the table is poisoned; its version."""
        if not self._commit.acquire(blocking=False):
            return self.version
        try:
            return self._append()
        finally:
            self._commit.release()

    def _append(self) -> int:
        v = self.version + 1
        name = f"part-{v:05d}-{uuid.uuid4()}.parquet"
        rows = (
            f"SELECT p.part::INT AS part, g.grp::INT AS grp, {v}::BIGINT AS v, "
            f"({v} + g.grp)::BIGINT AS up, ({TOP} - {v})::BIGINT AS down "
            f"FROM range({self.parts}) AS p(part), range({GROUPS}) AS g(grp)"
        )
        with duckdb.connect() as connection:
            connection.execute(f"COPY ({rows}) TO '{self.path / name}' (FORMAT parquet)")
        now = time.time() + self.ahead
        millis = int(now * 1000)
        size = (self.path / name).stat().st_size
        add = {"path": name, "partitionValues": {}, "size": size, "dataChange": True}
        add |= {"modificationTime": millis}
        add |= {"stats": json.dumps({"numRecords": self.parts * GROUPS})}
        info = {"timestamp": millis, "operation": "WRITE", "operationParameters": {}}
        lines = [{"commitInfo": info}, {"add": add}]
        log = self.path / "_delta_log"
        draft = log / f".{v}.tmp"
        draft.write_text("".join(json.dumps(line) + "\n" for line in lines))
        os.utime(draft, (now, now))
        os.link(draft, log / f"{v:020d}.json")  # fails if the version exists
        draft.unlink()
        with self._lock:
            self.version = v
            self.made[v] = time.monotonic()
        return v

    def at(self, moment: float) -> int:
        """The version that was the newest at a moment of the monotonic clock."""
        with self._lock:
            return max((v for v, made in self.made.items() if made <= moment), default=0)


class BaseWriter(threading.Thread):
    """Commits to one table after the other, one commit each `seconds`."""

    def __init__(self, tables: list[BaseTable], seconds: float = 1.0) -> None:
        super().__init__(name="chaos-base-writer", daemon=True)
        self.commits = 0
        self._tables = tables
        self._seconds = seconds
        self._over = threading.Event()

    def run(self) -> None:
        """Commit until told to stop."""
        following = time.monotonic()
        while not self._over.wait(max(0.0, following - time.monotonic())):
            following += self._seconds
            self._tables[self.commits % len(self._tables)].append()
            self.commits += 1

    def stop(self) -> None:
        """Commit no more."""
        self._over.set()
        self.join()
