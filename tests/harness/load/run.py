"""`make load MINUTES=…`: a service under load, its latencies and its memory, as JSON and text.

One `cachemgr serve` process on PostgreSQL answers 100 requests a second of explain and rewrite for
1,000 caches, while another process refreshes a real cache without a pause.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

from cachemgr.metastore import open_metastore
from tests.harness.load.population import populate
from tests.harness.load.sender import Sender, Sent, quantile
from tests.harness.load.traffic import Traffic
from tests.processes import (
    Service,
    Started,
    exit_on_sigterm,
    postgres_server,
    rest_service,
    until,
)

BUDGETS: Final = {"seen": 50.0, "first": 150.0}
_WARM_UP_SECONDS: Final = 20.0
_GROWTH: Final = 1.05


@dataclass
class Load:
    """How much is asked, and what came of it."""

    rate: float
    seconds: float
    caches: int
    refreshes: bool
    seed: int = 1
    warm_up: float = _WARM_UP_SECONDS
    sent: list[Sent] = field(default_factory=list)
    rss: list[float] = field(default_factory=list)
    refreshed: list[float] = field(default_factory=list)
    cpu_seconds: float = 0.0

    def run(self) -> None:
        """Start everything, send, and stop everything."""
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cachemgr-load-")))
            folder.chmod(0o755)
            url = stack.enter_context(postgres_server())
            with open_metastore(url) as store:
                populate(store, folder, self.caches)
            service = stack.enter_context(rest_service(url, folder))
            if self.refreshes:
                stack.enter_context(self._refreshing(service))
            stack.enter_context(self._watched(service))
            asyncio.run(self._send(service))

    async def _send(self, service: Service) -> None:
        sender = Sender(service.replica.port, service.tokens["viewer"])
        traffic = Traffic(self.seed)
        try:
            await sender.send(traffic.warm_up(), 10)
            for_warming = [traffic.next() for _ in range(int(self.rate * self.warm_up))]
            await sender.send(for_warming, self.rate)
            self.rss.clear()
            asked = [traffic.next() for _ in range(int(self.rate * self.seconds))]
            before = service.replica.cpu_seconds()
            self.sent = await sender.send(asked, self.rate)
            self.cpu_seconds = service.replica.cpu_seconds() - before
        finally:
            sender.close()

    @contextlib.contextmanager
    def _watched(self, service: Service) -> Iterator[None]:
        done = threading.Event()

        def watch() -> None:
            while not done.wait(1.0):
                self.rss.append(service.replica.rss_mb())

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    @contextlib.contextmanager
    def _refreshing(self, service: Service) -> Iterator[None]:
        command = (sys.executable, "-m", "tests.harness.load.refresher")
        log = service.folder / "refresher.log"
        given = (service.metastore_url, str(service.folder))
        process = Started.run([*command, *given], log, service.folder, {})

        def refreshed() -> list[float]:
            assert process.alive, process.text()[-4000:]
            found = (line.split() for line in process.text().splitlines())
            return [float(words[1]) for words in found if words[:1] == ["refreshed"]]

        try:
            try:
                until(refreshed, 300, "the first refresh beside the load", every=1)
            except AssertionError as error:
                raise AssertionError(process.text()[-4000:]) from error
            before = len(refreshed())
            yield
            self.refreshed = refreshed()[before:]
        finally:
            process.kill()

    def report(self) -> dict[str, Any]:
        """What came of it; `passed` says if the budgets were kept."""
        kinds = {kind: self._kind(kind) for kind in BUDGETS}
        wrong = [s for s in self.sent if s.status != 200 or s.hit is not s.asked.hits]
        half = len(self.rss) // 2
        early, late = self.rss[:half], self.rss[half:]
        growth = median(late) / median(early) if early and late else float("nan")
        return {
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "cores": os.cpu_count(),
            "rate": self.rate,
            "seconds": self.seconds,
            "caches": self.caches,
            "statuses": dict(Counter(str(s.status) for s in self.sent)),
            "latency_ms": kinds,
            "budgets_p99_ms": BUDGETS,
            "sent_late_p99_ms": round(quantile([s.sent_late for s in self.sent], 0.99), 2),
            "cpu_ms_per_request": round(1000 * self.cpu_seconds / max(1, len(self.sent)), 2),
            "not_as_expected": len(wrong),
            "examples": [(s.status, s.hit, s.asked.sql) for s in wrong[:3]],
            "refreshes": len(self.refreshed),
            "rss_mb": [round(r, 1) for r in self.rss],
            "rss_growth": round(growth, 3),
            "passed": not wrong
            and growth <= _GROWTH
            and all(kinds[k]["p99"] <= most for k, most in BUDGETS.items()),
        }

    def _kind(self, kind: str) -> dict[str, float]:
        millis = [s.millis for s in self.sent if s.asked.kind == kind]
        shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
        found = {name: round(quantile(millis, share), 2) for name, share in shares.items()}
        return {"requests": len(millis), **found, "max": round(max(millis, default=0), 2)}


def text(report: dict[str, Any]) -> str:
    """The report for people."""
    lines = [
        f"{report['rate']:g} requests a second for {report['seconds']:g} s, {report['caches']} "
        f"caches, {report['cores']} cores, {report['refreshes']} refreshes beside"
    ]
    for kind, found in report["latency_ms"].items():
        most = report["budgets_p99_ms"][kind]
        lines.append(
            f"{kind:>6}: {found['requests']} requests, p50 {found['p50']} ms, p90 {found['p90']}, "
            f"p99 {found['p99']} (budget {most:g}), p99.9 {found['p999']}, max {found['max']}"
        )
    rss = report["rss_mb"] or [0.0]
    lines.append(
        f"memory: {rss[0]} MB at first, {rss[-1]} at last, {max(rss)} at most; second half "
        f"{report['rss_growth']} x the first"
    )
    lines.append(f"answers: {report['statuses']}, not as expected: {report['not_as_expected']}")
    lines.append(f"the service used {report['cpu_ms_per_request']} ms of a core per request")
    lines.append(f"the sender was late by {report['sent_late_p99_ms']} ms at p99")
    lines.append("within the budgets" if report["passed"] else "NOT WITHIN THE BUDGETS")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run as the command line says; 1 if a budget was not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--rate", type=float, default=100)
    parser.add_argument("--caches", type=int, default=1000)
    parser.add_argument("--no-refresh", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="the report as JSON goes here")
    chosen = parser.parse_args()
    exit_on_sigterm()
    load = Load(chosen.rate, 60 * chosen.minutes, chosen.caches, not chosen.no_refresh, chosen.seed)
    load.run()
    report = load.report()
    if chosen.out is not None:
        chosen.out.write_text(json.dumps(report, indent=1) + "\n")
    sys.stdout.write(text(report))
    return 0 if report["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
