"""`python -m tests.harness.load.worst`: sixteen viewers post the texts that cost most, without a
pause, and one more asks what a dashboard asks: how long he waits, and what becomes of the service's
memory.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cachemgr.metastore import open_metastore
from cachemgr.roles import Role
from tests.harness.load.population import populate
from tests.harness.load.sender import Sender, Sent, quantile
from tests.harness.load.traffic import Asked, Traffic
from tests.processes import Service, exit_on_sigterm, rest_service

VIEWERS: Final = 16
MOST_MILLIS: Final = 1000.0
"""Of the one who asks what is usual, p99."""
MOST_GROWTH: Final = 1.05
_RATE: Final = 10.0
_REWRITE: Final = "/api/v1/rewrite"


def worst_texts(salt: int) -> list[str]:
    """Texts that take all that one decision may take, no two of them of one shape.

    Args:
        salt: Makes them others than those of another number.
    """
    copies = ", ".join(f"lineorder l{i}" for i in range(16))
    joined = " AND ".join(f"l{i}.lo_orderkey = l{i + 1}.lo_orderkey" for i in range(15))
    dates = " ".join(f"JOIN dates d{i} ON lo_orderdate = d{i}.d_datekey" for i in range(16))
    ors = " AND ".join(
        f"(lo_tax + {i} > lo_quantity * {i} OR lo_discount = {i} OR lo_tax < {i + salt % 97})"
        for i in range(40)
    )
    case = "lo_quantity"
    for i in range(60):
        case = f"CASE WHEN lo_discount = {i} THEN {i} ELSE {case} END"
    listed = ", ".join(map(str, range(salt % 97, 20_000)))
    return [
        f"SELECT SUM(l0.lo_revenue) AS a{salt} FROM {copies} WHERE {joined}",
        f"SELECT d0.d_year, SUM(lo_revenue) AS a{salt} FROM lineorder {dates} GROUP BY d0.d_year",
        f"SELECT SUM(lo_revenue) AS a{salt} FROM lineorder WHERE {ors}",
        f"SELECT SUM(lo_revenue) AS a{salt} FROM lineorder WHERE {case} = 1",
        f"SELECT SUM(lo_revenue) AS a{salt} FROM lineorder WHERE lo_custkey IN ({listed})",
    ]


@dataclass
class Worst:
    """What is asked, and what came of it.

    Args:
        seconds: How long.
        caches: How many.
    """

    seconds: float
    caches: int = 1000
    usual: list[Sent] = field(default_factory=list)
    alone: list[Sent] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    rss: list[float] = field(default_factory=list)

    def run(self) -> None:
        """Start a service, ask, and stop it."""
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="worst-")))
            folder.chmod(0o755)
            url = f"sqlite:///{folder / 'metastore.db'}"
            with open_metastore(url) as store:
                populate(store, folder, self.caches)
                names = [f"viewer {number}" for number in range(VIEWERS)]
                tokens = [store.tokens.create(name, Role.VIEWER)[1] for name in names]
            service = stack.enter_context(rest_service(url, folder))
            asyncio.run(self._ask(service, tokens))

    async def _ask(self, service: Service, tokens: list[str]) -> None:
        sender = Sender(service.replica.port, service.tokens["viewer"])
        traffic = Traffic(1)
        try:
            await sender.send(traffic.warm_up(), 10)
            asked = [traffic.next() for _ in range(int(_RATE * 5))]
            self.alone = await sender.send(asked, _RATE)
            until = time.perf_counter() + self.seconds
            viewers = [
                asyncio.create_task(self._post(service, token, number, until))
                for number, token in enumerate(tokens)
            ]
            watcher = asyncio.create_task(self._watch(service, until))
            asked = [traffic.next() for _ in range(int(_RATE * (self.seconds - 1)))]
            self.usual = await sender.send(asked, _RATE)
            await asyncio.gather(*viewers, watcher)
        finally:
            sender.close()

    async def _post(self, service: Service, token: str, number: int, until: float) -> None:
        sender = Sender(service.replica.port, token)
        try:
            for salt in itertools.count(number, VIEWERS):
                for text in worst_texts(salt):
                    if time.perf_counter() > until:
                        return
                    asked = [Asked("worst", False, _REWRITE, text)]
                    (sent,) = await sender.send(asked, 1000.0)
                    self.statuses[sent.status] += 1
        finally:
            sender.close()

    async def _watch(self, service: Service, until: float) -> None:
        while time.perf_counter() < until:
            await asyncio.sleep(1.0)
            self.rss.append(service.replica.rss_mb())

    def growth(self) -> float:
        """The memory of the last third of the time against that of the one before."""
        third = max(1, len(self.rss) // 3)
        return max(self.rss[-third:]) / max(self.rss[-2 * third : -third] or self.rss)

    def slowest(self) -> str:
        """What took the one who asks what is usual longest, for people."""
        last = sorted(self.usual, key=lambda sent: sent.millis)[-3:]
        return ", ".join(f"{sent.asked.kind} {sent.millis:.0f} ms" for sent in last)

    def p99(self) -> float:
        """Of him who asks what is usual, ms."""
        return quantile([sent.millis for sent in self.usual], 0.99)


def main() -> int:
    """Run as the command line says; 1 if somebody waited too long or memory grew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--caches", type=int, default=1000)
    chosen = parser.parse_args()
    exit_on_sigterm()
    worst = Worst(60 * chosen.minutes, chosen.caches)
    worst.run()
    alone = quantile([sent.millis for sent in worst.alone], 0.99)
    middle = quantile([sent.millis for sent in worst.usual], 0.5)
    print(
        f"{VIEWERS} viewers of the worst texts: {sum(worst.statuses.values())} posted, "
        f"statuses {dict(worst.statuses)}\n"
        f"another's usual queries: p50 {middle:.0f} ms, p99 {worst.p99():.0f} ms of "
        f"{MOST_MILLIS:.0f} (alone {alone:.0f} ms), statuses "
        f"{dict(Counter(sent.status for sent in worst.usual))}\n"
        f"the slowest: {worst.slowest()}\n"
        f"memory: {worst.rss[0]:.0f} MB at first, {max(worst.rss):.0f} MB at most, last third "
        f"{worst.growth():.2f} x of the one before"
    )
    return 0 if worst.p99() <= MOST_MILLIS and worst.growth() <= MOST_GROWTH else 1


if __name__ == "__main__":
    sys.exit(main())
