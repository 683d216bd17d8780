"""Refreshes by their ways, for /metrics: counted as they end, whichever process carried them out.

Nothing is counted where a refresh runs, since a worker has no /metrics: the metastore is looked at
when this process begins and when somebody asks, and of each cache only the runs that have ended
since.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from cachemgr.errors import CacheManagerError
from cachemgr.metastore.records import RefreshRunRecord, ScheduleRecord
from cachemgr.metastore.store import Metastore
from cachemgr.refresh.by_change.why_full import FullCode
from cachemgr.vocabulary import RunState

_LABELS = ("way", "state", "code")
# More runs of one cache between two looks are not counted.
_MOST_BETWEEN = 10_000
# Counters that are there from the start: the first one of a series that was not would be no
# increase to Prometheus.
_FROM_THE_START = (
    ("NONE", RunState.FAILED.value, ""),
    ("NONE", RunState.CANCELLED.value, ""),
    ("UNCHANGED", RunState.UNCHANGED.value, ""),
    *(
        (way, state.value, "")
        for way in ("APPEND", "PARTIALS", "REPLACE", "FULL")
        for state in (RunState.PUBLISHED, RunState.FAILED)
    ),
    *(("FULL", RunState.PUBLISHED.value, code.value) for code in FullCode),
)


class RefreshCounts:
    """Counts the refreshes that have ended since this was made; safe for several threads.

    Args:
        metastore: Where they are.
    """

    def __init__(self, metastore: Metastore) -> None:
        self._metastore = metastore
        self._lock = threading.Lock()
        # of each cache the fencing token of the last run that was counted
        self._seen: dict[str, int] | None = None
        self._counts: Counter[tuple[str, str, str]] = Counter(dict.fromkeys(_FROM_THE_START, 0))
        with suppress(CacheManagerError):  # else the first look is the start
            self._look(metastore.schedules.all())

    def collect(self, schedules: Iterable[ScheduleRecord]) -> Iterator[Metric]:
        """The counter, and how many caches were refreshed in each way last.

        Args:
            schedules: All live caches with their last runs.

        Raises:
            CacheManagerError: The metastore cannot be asked.
        """
        with self._lock:
            self._look(schedules := tuple(schedules))
            counts = dict(self._counts)
        refreshes = CounterMetricFamily(
            "cachemgr_refreshes",
            "Refreshes that ended since this process began, by way, state and, for full ones, why.",
            labels=_LABELS,
        )
        for labels, count in sorted(counts.items()):
            refreshes.add_metric(labels, count)
        yield refreshes
        last = Counter(_labels(s.last) for s in schedules if s.last is not None and _ended(s.last))
        caches = GaugeMetricFamily(
            "cachemgr_caches_by_way",
            "Caches by way, state and, for full ones, why, of their last refresh.",
            labels=_LABELS,
        )
        for labels, count in sorted(last.items()):
            caches.add_metric(labels, count)
        yield caches

    def _look(self, schedules: Iterable[ScheduleRecord]) -> None:
        first = self._seen is None
        seen = self._seen or {}
        for record in schedules:
            if record.last is None:
                continue
            known = None if first else seen.get(record.cache.id, 0)
            ended = self._ended_since(record.last, known)
            self._counts.update(map(_labels, ended))
            tokens = [run.fencing_token for run in ended]
            seen[record.cache.id] = max(tokens, default=known or 0)
            if first:
                seen[record.cache.id] = record.last.fencing_token - (not _ended(record.last))
        self._seen = seen

    def _ended_since(self, last: RefreshRunRecord, known: int | None) -> list[RefreshRunRecord]:
        """The runs of a cache that have ended since a token; none where None is known."""
        if known is None or last.fencing_token <= known:
            return []
        if last.fencing_token == known + 1:
            return [last] if _ended(last) else []
        missed = min(last.fencing_token - known, _MOST_BETWEEN)
        runs = self._metastore.refreshes.of(last.cache_id, limit=missed)
        return [run for run in runs if run.fencing_token > known and _ended(run)]


def _ended(run: RefreshRunRecord) -> bool:
    return run.state is not RunState.RUNNING and run.fencing_token > 0


def _labels(run: RefreshRunRecord) -> tuple[str, str, str]:
    account = run.account
    return account.way or "NONE", run.state.value, account.code or ""
