"""What /metrics tells of the caches: read from the metastore when somebody asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from cachemgr.api.refresh_metrics import RefreshCounts
from cachemgr.errors import CacheManagerError
from cachemgr.metastore.store import Metastore


class CacheMetrics(Collector):
    """Gauges and counters of one metastore, without a label that grows with users or queries.

    Args:
        metastore: What is looked at.
    """

    def __init__(self, metastore: Metastore) -> None:
        self._metastore = metastore
        self._refreshes = RefreshCounts(metastore)

    def collect(self) -> Iterator[Metric]:
        """The gauges; none while the metastore cannot be asked."""
        try:
            schedules = self._metastore.schedules.all()
            waiting = self._metastore.queue.waiting()
            now = self._metastore.clock.now()
            refreshes = tuple(self._refreshes.collect(schedules))
        except CacheManagerError:
            return
        last = Counter("NEVER" if s.last is None else s.last.state.value for s in schedules)
        caches = GaugeMetricFamily(
            "cachemgr_caches", "Caches by the state of their last refresh.", labels=["refresh"]
        )
        for state, count in sorted(last.items()):
            caches.add_metric([state], count)
        yield caches
        yield _gauge(
            "paused", "Caches whose schedule is off.", sum(s.cache.paused for s in schedules)
        )
        yield _gauge(
            "damaged",
            "Caches that answer nothing since their files are gone.",
            sum(s.cache.damaged is not None for s in schedules),
        )
        yield _gauge(
            "behind",
            "Caches known to be behind their base tables.",
            sum(s.behind_since is not None for s in schedules),
        )
        yield _gauge("refreshes_waiting", "Refreshes that wait for a worker.", len(waiting))
        oldest = max(((now - r.requested_at).total_seconds() for r in waiting), default=0.0)
        yield _gauge("refresh_wait_seconds", "How long the longest has waited.", oldest)
        yield from refreshes


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"cachemgr_{name}", text, value=value)
