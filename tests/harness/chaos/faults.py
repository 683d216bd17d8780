"""Kills and stops, at random and aimed: which replica, which of its processes, at which stage."""

from __future__ import annotations

import random
import signal
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.harness.chaos.stages import AFTER, IDLE, IN_WRITE_AFTER, IN_WRITE_BEFORE, StageTail
from tests.processes import Replica

KILL, STOP = "SIGKILL", "SIGSTOP"
# The whole replica most of the time; its JVM alone leaves Python with a dead Spark, its Python
# alone leaves a JVM that may still commit.
TARGETS = ("replica", "replica", "replica", "replica", "jvm", "python")
# What is aimed at; None takes whatever runs, or nothing.
AIMS = (None, None, "started", "pinned", "writing", "writing", "writing", "written", "publishing")
AIM_SECONDS = 6.0
LONGEST_DELAY = 0.4


@dataclass(frozen=True)
class Fault:
    """What was done to a replica."""

    kind: str
    replica: str
    target: str
    stage: str
    refresh_id: str | None
    at: float
    wall: float
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """For the report."""
        return asdict(self)


@dataclass
class Victim:
    """A replica with its log's reader."""

    replica: Replica
    tail: StageTail
    # held by whoever kills, stops or starts it
    lock: threading.Lock = field(default_factory=threading.Lock)

    def processes(self, target: str) -> list[psutil.Process]:
        """Its processes that a fault is meant for."""
        with suppress(psutil.NoSuchProcess):
            first = psutil.Process(self.replica.started.process.pid)
            below = first.children(recursive=True)
            if target == "python":
                return [first]
            if target == "jvm":
                return [p for p in below if "java" in p.name()]
            return [first, *below]
        return []

    def send(self, target: str, number: signal.Signals) -> list[psutil.Process]:
        """Send a signal; who got it."""
        found = self.processes(target)
        for process in found:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)
        return found


class Faults(threading.Thread):
    """Lets faults happen in a rhythm until told to stop.

    Args:
        victims: The replicas.
        caches: Root folder of the caches, to see whether a killed write had committed.
        seed: Of all that is random here.
        kill_seconds: Mean seconds between two kills.
        stop_seconds: Mean seconds between two stops.
        lease_seconds: Stops last longer than that.
    """

    def __init__(
        self,
        victims: list[Victim],
        caches: Path,
        *,
        seed: int,
        kill_seconds: float,
        stop_seconds: float,
        lease_seconds: float,
    ) -> None:
        super().__init__(name="chaos-faults", daemon=True)
        self.done: list[Fault] = []
        self.began = self.over = time.monotonic()
        self._victims = victims
        self._caches = caches
        self._random = random.Random(seed)
        self._every = {KILL: kill_seconds, STOP: stop_seconds}
        self._lease_seconds = lease_seconds
        self._over = threading.Event()
        self._stopped: list[threading.Thread] = []

    def run(self) -> None:
        """Let faults happen."""
        following = {
            kind: time.monotonic() + seconds * self._random.uniform(0.2, 0.6)
            for kind, seconds in self._every.items()
        }
        while not self._over.is_set():
            kind = min(following, key=following.__getitem__)
            if self._over.wait(max(0.0, following[kind] - time.monotonic())):
                break
            if not self._strike(kind):
                following[kind] = time.monotonic() + 0.5
                continue
            # the next is due by the clock, however long it took to find a victim for this one
            following[kind] += self._every[kind] * self._random.uniform(0.7, 1.25)

    def stop(self) -> None:
        """No more faults; what was stopped goes on."""
        self._over.set()
        self.join()
        self.over = time.monotonic()
        for thread in self._stopped:
            thread.join()

    def _strike(self, kind: str) -> bool:
        aim, target = self._random.choice(AIMS), self._random.choice(TARGETS)
        delay = self._random.uniform(0, LONGEST_DELAY)
        victim = self._aimed(aim) or self._anyone()
        if victim is None or not victim.lock.acquire(blocking=False):
            return False
        kept = struck = False
        try:
            time.sleep(delay)
            if victim.replica.started.alive and kind == KILL:
                struck = self._kill(victim, target)
            elif victim.replica.started.alive:
                struck = kept = self._halt(victim, target)
        finally:
            if not kept:
                victim.lock.release()
        return struck

    def _aimed(self, aim: str | None) -> Victim | None:
        if aim is None:
            return None
        end = time.monotonic() + AIM_SECONDS
        while time.monotonic() < end and not self._over.is_set():
            for victim in self._random.sample(self._victims, len(self._victims)):
                running = victim.tail.now()
                if running is not None and running[1] == aim and not victim.lock.locked():
                    return victim
            time.sleep(0.02)
        return None

    def _anyone(self) -> Victim | None:
        ready = [v for v in self._victims if not v.lock.locked() and v.replica.started.alive]
        return self._random.choice(ready) if ready else None

    def _kill(self, victim: Victim, target: str) -> bool:
        if not victim.send(target, signal.SIGKILL):
            return False
        stage, refresh_id = self._stage(victim)
        self._note(KILL, victim, target, stage, refresh_id)
        return True

    def _halt(self, victim: Victim, target: str) -> bool:
        stopped = victim.send(target, signal.SIGSTOP)
        if not stopped:
            return False
        stage, refresh_id = self._stage(victim)
        seconds = self._lease_seconds + self._random.uniform(1.5, 6.0)
        self._note(STOP, victim, target, stage, refresh_id, seconds)

        def wake() -> None:
            self._over.wait(seconds)
            for process in stopped:
                with suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.SIGCONT)
            victim.lock.release()

        thread = threading.Thread(target=wake, name="chaos-wake", daemon=True)
        thread.start()
        self._stopped.append(thread)
        return True

    def _note(
        self,
        kind: str,
        victim: Victim,
        target: str,
        stage: str,
        refresh_id: str | None,
        seconds: float = 0.0,
    ) -> None:
        at = round(time.monotonic() - self.began, 2)
        name = victim.replica.name
        wall = time.time()
        self.done.append(Fault(kind, name, target, stage, refresh_id, at, wall, round(seconds, 2)))

    def _stage(self, victim: Victim) -> tuple[str, str | None]:
        running = victim.tail.now()
        if running is None:
            return IDLE, None
        refresh_id, step = running
        if step != "writing":
            return AFTER.get(step, f"after {step}"), refresh_id
        committed = commit_of(self._caches, refresh_id)
        return (IN_WRITE_AFTER if committed else IN_WRITE_BEFORE), refresh_id


def commit_of(caches: Path, refresh_id: str) -> Path | None:
    """The newest commit in any cache's log that bears a refresh's id."""
    newest = sorted(caches.glob("**/_delta_log/*.json"), key=lambda p: -p.stat().st_mtime_ns)[:40]
    return next((path for path in newest if refresh_id in path.read_text()), None)
