"""The storage of the caches that fails for a while, for one process or for all: whoever asks does
without, and each cache is afterwards as it was before."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from cachemgr.metastore import Metastore
from tests.flaky import Flaky
from tests.harness.chaos.world import CacheSpec

AWAY_SECONDS = 15.0
HOW = ("denied", "unavailable", "timeout", "away", "full", "slow:200")
# What a process reads within that time after it may still have begun before.
LATE_SECONDS = 5.0


@dataclass(frozen=True)
class State:
    """What of a cache a storage that cannot be asked must not change."""

    damaged: bool
    paused: bool
    location: str


def states(store: Metastore, specs: Sequence[CacheSpec]) -> dict[str, State]:
    """The caches as they are now.

    Args:
        store: The metastore.
        specs: The caches.
    """
    found = {c.name: c for c in store.caches.matching(None)}
    return {
        spec.name: State(cache.damaged is not None, cache.paused, cache.location)
        for spec in specs
        if (cache := found.get(spec.name)) is not None
    }


def harmed(
    before: Mapping[str, State], after: Mapping[str, State], deleted: Collection[str]
) -> list[str]:
    """What changed of caches while their storage could not be asked, and must not.

    Args:
        before: The caches before.
        after: The caches after.
        deleted: Names of those whose files were deleted before, and may be found to be gone.
    """
    return [
        f"{name} was {was} and is {after[name]} after its storage could not be asked"
        for name, was in before.items()
        if name in after and after[name] != was and name not in deleted
    ]


@dataclass
class Storage:
    """The storage of the caches as each process has it.

    Args:
        each: By the name of the process, the client's among them.
    """

    each: Mapping[str, Flaky]
    # of each process from when to when it could not ask, by the monotonic clock
    away: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    # when it was back for all, in seconds since the epoch
    back: list[float] = field(default_factory=list)

    def go(self, chance: random.Random, over: threading.Event) -> str:
        """Be away for a while.

        Args:
            chance: Says for whom, and how.
            over: Ends it early.

        Returns:
            What happened, in words.
        """
        names = sorted(self.each)
        chosen = names if chance.random() < 0.5 else [chance.choice(names)]
        how = chance.choice(HOW)
        operations = "create,mkdirs" if how == "full" else "*"
        began = time.monotonic()
        for name in chosen:
            self.away.setdefault(name, []).append((began, float("inf")))
            self.each[name].says(f"{operations} /caches/ {how}")
        try:
            over.wait(AWAY_SECONDS)
        finally:
            for name in chosen:
                self.each[name].says()
                self.away[name][-1] = (began, time.monotonic() + LATE_SECONDS)
            self.back.append(time.time())
        return f"{how} for {'all' if len(chosen) > 1 else chosen[0]}"

    def was_away(self, name: str, since: float) -> bool:
        """Whether a process could not ask at some time from a moment of the monotonic clock on."""
        return any(end >= since for _, end in self.away.get(name, ()))
