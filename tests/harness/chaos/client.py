"""A user's session that queries all the while, and knows what each answer may be."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.harness.chaos.world import BaseTable, CacheSpec, version_of

STALENESS_SECONDS = 60


@dataclass
class Asked:
    """What the client saw.

    Args:
        queries: How many it sent.
        hits: How many of them were answered from a cache.
        wrong: What was not as it must be.
        errors: Queries that failed.
        behind: How many versions answers lagged, the most for each cache.
        unreadable: Queries that failed since their table could not be read, with us or without.
        damaged: Queries that ran into files of a cache that had just been deleted.
        away: Queries that ran into a storage that had just gone away.
    """

    queries: int = 0
    hits: int = 0
    wrong: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    behind: dict[str, int] = field(default_factory=dict)
    unreadable: int = 0
    damaged: int = 0
    away: int = 0


class Client(threading.Thread):
    """Asks one cache's query after the other, through the hook.

    Args:
        session: A session with the hook on.
        specs: The caches.
        tables: Their base tables.
        seed: Which query is next.
        pause: Seconds between two queries.
        was_away: Whether this process could not ask the caches' storage since a moment.
    """

    def __init__(
        self,
        session: Any,
        specs: list[CacheSpec],
        tables: Mapping[str, BaseTable],
        *,
        seed: int,
        pause: float,
        was_away: Callable[[float], bool] = lambda since: False,
    ) -> None:
        super().__init__(name="chaos-client", daemon=True)
        self.seen = Asked()
        self._session = session
        self._specs = specs
        self._tables = tables
        self._random = random.Random(seed)
        self._pause = pause
        self._was_away = was_away
        self._over = threading.Event()
        self._first: list[CacheSpec] = []
        self._excused: dict[str, int] = {}

    def damaged(self, spec: CacheSpec) -> None:
        """Files of a cache were deleted: one query may fail for it, which is asked with others at
        once."""
        self._excused[spec.name] = 1
        self._first += [spec] * 3

    def run(self) -> None:
        """Ask until told to stop."""
        while not self._over.wait(self._pause):
            spec = self._first.pop() if self._first else self._random.choice(self._specs)
            asked = time.monotonic()
            try:
                self.ask(spec)
            except Exception as error:
                self._failed(spec, asked, error)

    def _failed(self, spec: CacheSpec, asked: float, error: Exception) -> None:
        notes = "; ".join(getattr(error, "__notes__", ()))
        if self._tables[spec.table].was_unreadable(asked):
            self.seen.unreadable += 1
        elif "could not be read" in notes and self._was_away(asked):
            self.seen.away += 1
        elif "is damaged" in notes and self._excused.pop(spec.name, 0):
            self.seen.damaged += 1
        else:
            said = f"{type(error).__name__} {str(error)[:300]}"
            self.seen.errors.append(f"{spec.name}: {said} {notes}".rstrip())

    def stop(self) -> None:
        """Ask no more."""
        self._over.set()
        self.join()

    def ask(self, spec: CacheSpec) -> int | None:
        """Send one query, and check its answer; the version that it was computed at."""
        import cachemgr

        table, seen = self._tables[spec.table], self.seen
        hits = cachemgr.counters(self._session).get("hits", 0)
        asked = time.monotonic()
        before = table.version
        rows = [tuple(r) for r in self._session.sql(spec.query).collect()]
        after = table.version
        hit = cachemgr.counters(self._session).get("hits", 0) > hits
        seen.queries += 1
        seen.hits += hit
        version = version_of(rows)
        wrong = None
        if version is None:
            wrong = f"torn: {sorted(rows)}"
        elif version > after:
            wrong = f"version {version} does not exist yet, {after} does"
        elif version < before and not hit:
            wrong = f"a miss read version {version}, {before} was there"
        elif version < before and spec.freshness == "STRICT":
            wrong = f"STRICT and version {version}, {before} was there"
        elif "INTERVAL" in spec.freshness and version < table.at(asked - STALENESS_SECONDS):
            wrong = f"version {version} is staler than {STALENESS_SECONDS} s"
        if wrong is not None:
            seen.wrong.append(f"{spec.name} ({'hit' if hit else 'miss'}): {wrong}")
        elif version is not None and hit:
            seen.behind[spec.name] = max(seen.behind.get(spec.name, 0), before - version)
        return version
