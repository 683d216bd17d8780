"""What a chaos run did and found, as text and as data."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.harness.chaos.client import Asked
from tests.harness.chaos.faults import KILL, STOP, Fault
from tests.harness.chaos.judge import MOST_OVERTAKEN, Verdict


@dataclass(frozen=True)
class Outcome:
    """One run.

    Args:
        seed: Of its faults and queries.
        seconds: How long faults happened.
        settled_seconds: How long until nothing was behind after that.
        replicas: How many there were.
        caches: How many there were.
        base_commits: Commits to base tables.
        restarts: Starts of replicas beyond the first.
        faults: What was done to them.
        asked: What the client saw.
        verdict: What the judge found.
        problems: What went wrong in the run itself.
        damages: What was done to tables, files, the storage and the metastore.
        away: How the storage was away, and for whom.
    """

    seed: int
    seconds: float
    settled_seconds: float
    replicas: int
    caches: int
    base_commits: int
    restarts: int
    faults: list[Fault]
    asked: Asked
    verdict: Verdict
    problems: list[str]
    damages: Counter[str] = field(default_factory=Counter)
    away: Counter[str] = field(default_factory=Counter)

    @property
    def wrong(self) -> list[str]:
        """Everything that must not be."""
        return [*self.problems, *self.verdict.problems, *self.asked.wrong, *self.asked.errors]

    def count(self, kind: str) -> int:
        """How many faults of a kind."""
        return sum(fault.kind == kind for fault in self.faults)

    def stages(self, kind: str) -> Counter[str]:
        """In which stage faults of a kind fell."""
        return Counter(fault.stage for fault in self.faults if fault.kind == kind)

    def to_json(self) -> dict[str, Any]:
        """The run as data."""
        verdict, whole = self.verdict, self.seconds + self.settled_seconds
        return {
            "verdict": "FAILED" if self.wrong else "PASSED",
            "seed": self.seed,
            "seconds": round(self.seconds, 1),
            "settled_seconds": round(self.settled_seconds, 1),
            "replicas": self.replicas,
            "caches": self.caches,
            "base_commits": self.base_commits,
            "restarts": self.restarts,
            "kills": self.count(KILL),
            "stops": self.count(STOP),
            "targets": dict(Counter(f"{f.kind} {f.target}" for f in self.faults)),
            "kills_by_stage": dict(self.stages(KILL).most_common()),
            "stops_by_stage": dict(self.stages(STOP).most_common()),
            "runs": dict(verdict.runs),
            "published_by_mode": dict(verdict.modes),
            "runs_a_second": round(sum(verdict.runs.values()) / max(1.0, whole), 2),
            "seconds_of_a_refresh": sorted(verdict.seconds),
            "checked": dict(verdict.checked),
            "allowance_seconds": round(verdict.allowance, 1),
            "take_over_seconds": sorted(verdict.take_over_seconds),
            "started_again_seconds": sorted(verdict.started_again_seconds),
            "longest_gap_seconds": verdict.longest_gap,
            "longest_standstill_seconds": verdict.longest_standstill,
            "most_overtaken": verdict.most_overtaken,
            "queries": self.asked.queries,
            "hits": self.asked.hits,
            "damages": dict(self.damages),
            "queries_of_unreadable_tables": self.asked.unreadable,
            "queries_that_met_deleted_files": self.asked.damaged,
            "queries_that_met_a_storage_away": self.asked.away,
            "storage_away": dict(self.away),
            "versions_behind": self.asked.behind,
            "wrong": self.wrong,
            "faults": [fault.to_json() for fault in self.faults],
        }

    def text(self) -> str:
        """The run for people."""
        data = self.to_json()
        each = _spread(data["seconds_of_a_refresh"])
        over = _spread(data["take_over_seconds"])
        again = _spread(data["started_again_seconds"])
        gap = max(data["longest_gap_seconds"].values(), default=0)
        lines = [
            f"chaos: {data['verdict']}, seed {self.seed}",
            f"  {self.replicas} replicas, {self.caches} caches, {self.base_commits} base commits "
            f"in {data['seconds']} s; settled {data['settled_seconds']} s later",
            f"  {data['kills']} kills and {data['stops']} stops past the lease, "
            f"{self.restarts} restarts: {_counts(data['targets'])}",
            f"  damage: {_counts(dict(self.damages))}; {self.asked.unreadable} queries of "
            f"unreadable tables, {self.asked.damaged} met deleted files, {self.asked.away} a "
            f"storage that had gone away ({_counts(dict(self.away))})",
            "  kills by stage:",
            *_bars(self.stages(KILL)),
            "  stops by stage:",
            *_bars(self.stages(STOP)),
            f"  refreshes: {_counts(data['runs'])} ({data['runs_a_second']} a second); "
            f"published: {_counts(data['published_by_mode'])}, each in {each}",
            f"  after a kill: taken over in {over}, begun again in {again}",
            f"  longest time between two refreshes of a cache: {gap} s; while one that was due "
            f"waited, another was refreshed {data['most_overtaken']} times at most (allowed: "
            f"{MOST_OVERTAKEN})",
            f"  longest time without any refresh: {data['longest_standstill_seconds']} s; allowed "
            f"are {data['allowance_seconds']} s besides a take-over",
            f"  checked: {_counts(data['checked'])}",
            f"  client: {self.asked.queries} queries, {self.asked.hits} hits, "
            f"{len(self.asked.wrong)} wrong, {len(self.asked.errors)} failed",
            *(f"  WRONG: {text}" for text in self.wrong[:40]),
        ]
        return "\n".join(lines) + "\n"


def _counts(found: dict[str, int]) -> str:
    return ", ".join(f"{number} {name}" for name, number in found.items()) or "none"


def _spread(found: list[float]) -> str:
    if not found:
        return "no case"
    return f"{found[len(found) // 2]} s (median of {len(found)}), {found[-1]} s (longest)"


def _bars(found: Counter[str]) -> list[str]:
    return [f"    {number:3d} {'#' * number} {stage}" for stage, number in found.most_common()]
