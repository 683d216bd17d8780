"""After the chaos: the metastore against the Delta logs against what the rows must be."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import duckdb

from cachemgr.metastore import Metastore
from cachemgr.metastore.records import CacheRecord, RefreshRunRecord
from cachemgr.vocabulary import RunState
from tests.flaky import SCHEME
from tests.harness.chaos.world import CacheSpec, version_of

OVER = frozenset({RunState.PUBLISHED, RunState.UNCHANGED})
# How long after a crash a refresh may be asked for again at most.
TAKE_OVER_SECONDS = 30.0
# Who waits for a worker waits for those that were there before: each of the others once, and those
# that were under way. So much is fair however fast the machine is.
MOST_OVERTAKEN = 3


@dataclass
class Verdict:
    """What was checked, and what was wrong.

    Args:
        allowance: Seconds within which some refresh must come to its end.
    """

    allowance: float = 60.0
    problems: list[str] = field(default_factory=list)
    runs: Counter[str] = field(default_factory=Counter)
    modes: Counter[str] = field(default_factory=Counter)
    checked: Counter[str] = field(default_factory=Counter)
    longest_gap: dict[str, float] = field(default_factory=dict)
    longest_standstill: float = 0.0
    most_overtaken: int = 0
    take_over_seconds: list[float] = field(default_factory=list)
    started_again_seconds: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def wrong(self, text: str) -> None:
        """Note a problem."""
        self.problems.append(text)


@dataclass(frozen=True)
class Restored:
    """The metastore was put back from a copy: what was done since the copy it does not know.

    Args:
        copied: When it was copied, in seconds since the epoch.
        back: When it was back, and what had been under way was over.
        asked: Ids of the refreshes that were asked for until then.
    """

    copied: float
    back: float
    asked: frozenset[str]


@dataclass(frozen=True)
class Commit:
    """One commit of a cache's Delta log."""

    version: int
    stamp: Mapping[str, Any]
    number: int | None
    files: frozenset[str]
    at: float = 0.0

    @property
    def is_data(self) -> bool:
        """Whether it holds computed rows."""
        return self.stamp.get("kind") == "FULL"


def read_log(location: str) -> list[Commit]:
    """All commits of a Delta table with the files that make up each version."""
    log = path_of(location) / "_delta_log"
    files: set[str] = set()
    commits = []
    for path in sorted(log.glob("*.json")):
        stamp: Mapping[str, Any] = {}
        number = None
        for line in path.read_text().splitlines():
            action = json.loads(line)
            if "add" in action:
                files.add(unquote(action["add"]["path"]))
            elif "remove" in action:
                files.discard(unquote(action["remove"]["path"]))
            elif "txn" in action:
                number = int(action["txn"]["version"])
            elif "commitInfo" in action:
                stamp = json.loads(action["commitInfo"].get("userMetadata") or "{}")
        commits.append(
            Commit(int(path.stem), stamp, number, frozenset(files), path.stat().st_mtime)
        )
    return commits


def path_of(location: str) -> Path:
    """The folder of a place."""
    return Path(urlparse(location).path if location.startswith(("file:", SCHEME)) else location)


def judge(
    store: Metastore,
    specs: Sequence[CacheSpec],
    asked: set[str],
    kills: Mapping[str, float],
    allowance: float,
    restored: Sequence[Restored] = (),
    deleted: Collection[tuple[str, int]] = (),
    away: Sequence[float] = (),
) -> Verdict:
    """Check everything that can be known when nothing runs any more.

    Args:
        store: The metastore.
        specs: The caches of the run.
        asked: Ids of the refreshes that schedulers logged to have asked for.
        kills: When the replica that carried a refresh out was killed, in seconds since the epoch.
        allowance: Seconds within which some refresh must come to its end.
        restored: When the metastore was put back from a copy of its own.
        deleted: Caches' names with versions whose files were deleted.
        away: When the storage was back after it could not be asked, in seconds since the epoch: who
            failed on it waits for another try.
    """
    verdict = Verdict(allowance)
    # what a dead replica held is taken over from when the metastore knows of it again
    last = max((r.back for r in restored), default=0.0)
    kills = {run: moment for run, moment in kills.items() if moment > last}
    forgotten = frozenset().union(*(r.asked for r in restored))
    done: dict[CacheSpec, list[float]] = {}
    known: set[str] = {r.id for r in store.queue.waiting()}
    for left in known:
        verdict.wrong(f"refresh {left} still waits")
    for spec in specs:
        cache = store.caches.named("default", spec.name)
        if cache is None:
            verdict.wrong(f"{spec.name} is lost")
            continue
        runs = sorted(store.refreshes.of(cache.id, limit=100_000), key=_by_token)
        known |= {run.id for run in runs}
        done[spec] = _check_runs(verdict, store, spec, cache, runs, kills)
        gone = {version for name, version in deleted if name == spec.name}
        _check_commits(verdict, store, spec, cache, runs, restored, gone)
    check_turns(verdict, done, [*(r.back for r in restored), *away])
    for lost in sorted(asked - known - forgotten):
        verdict.wrong(f"refresh {lost} was asked for and is lost")
    verdict.checked["requests"] = len(asked)
    return verdict


def _by_token(run: RefreshRunRecord) -> tuple[int, datetime]:
    return run.fencing_token, run.started_at


def _check_runs(
    verdict: Verdict,
    store: Metastore,
    spec: CacheSpec,
    cache: CacheRecord,
    runs: Sequence[RefreshRunRecord],
    kills: Mapping[str, float],
) -> list[float]:
    """Every refresh that was due is done: itself, or by the one that followed it. Returns when
    refreshes came to a good end, in seconds since the epoch.
    """
    schedule = store.schedules.of(cache.id)
    assert schedule is not None
    if schedule.paused_because is not None:
        verdict.wrong(f"{spec.name} is paused: {schedule.paused_because}")
    verdict.runs.update(run.state.value for run in runs)
    verdict.modes.update(run.mode for run in runs if run.state is RunState.PUBLISHED)
    tokens = Counter(run.fencing_token for run in runs)
    for token, number in tokens.items():
        if number > 1:
            verdict.wrong(f"{spec.name}: token {token} was given to {number} refreshes")
    for run in runs:
        if run.state is RunState.RUNNING:
            verdict.wrong(f"{spec.name}: refresh {run.id} never ended")
    if not runs or runs[-1].state not in OVER:
        last = f"{runs[-1].state.value} {runs[-1].error}" if runs else "none"
        verdict.wrong(f"{spec.name}: the last refresh is {last}")
    for run in runs:
        if run.state is RunState.PUBLISHED and run.finished_at is not None:
            verdict.seconds.append(round((run.finished_at - run.started_at).total_seconds(), 2))
    for lost, after in pairwise(runs):
        killed = kills.get(lost.id)
        if killed is None or lost.state is not RunState.SUPERSEDED or lost.finished_at is None:
            continue
        waited = round(lost.finished_at.timestamp() - killed, 1)
        verdict.take_over_seconds.append(waited)
        # it then waits for a worker that has nothing else to do
        verdict.started_again_seconds.append(round(after.started_at.timestamp() - killed, 1))
        if waited > TAKE_OVER_SECONDS:
            verdict.wrong(f"{spec.name}: taken over {waited} s after {lost.holder} was killed")
    ends = (run.finished_at for run in runs if run.state in OVER)
    return [end.timestamp() for end in ends if end is not None]


def check_turns(
    verdict: Verdict, done: Mapping[CacheSpec, Sequence[float]], restored: Sequence[float] = ()
) -> None:
    """Nobody waits while others are served again and again, and something is always served.

    How long a cache waits in seconds is the machine's affair: each kill costs the start of a JVM.

    Args:
        verdict: What is wrong is noted there.
        done: When refreshes of each cache came to a good end, in seconds since the epoch.
        restored: When the metastore was put back from a copy, which forgets who waits since when,
            or the storage came back.
    """
    every = sorted(moment for moments in done.values() for moment in moments)
    still = max((b - a for a, b in pairwise(every)), default=0.0)
    verdict.longest_standstill = round(still, 1)
    if still > TAKE_OVER_SECONDS + verdict.allowance:
        verdict.wrong(f"no cache at all was refreshed for {still:.1f} s")
    for spec, moments in done.items():
        gaps = list(pairwise(sorted(moments)))
        verdict.longest_gap[spec.name] = round(max((b - a for a, b in gaps), default=0.0), 1)
        for began, ended in gaps:
            since = max([began, *(back for back in restored if back < ended)])
            due = since + spec.period + TAKE_OVER_SECONDS
            served = {s.name: sum(due < m < ended for m in found) for s, found in done.items()}
            name = max(served, key=lambda other: served[other])
            verdict.most_overtaken = max(verdict.most_overtaken, served[name])
            if served[name] > MOST_OVERTAKEN:
                verdict.wrong(
                    f"{spec.name} ({spec.trigger}) was not refreshed for {ended - began:.1f} s, "
                    f"while {name} was {served[name]} times"
                )


def _check_commits(
    verdict: Verdict,
    store: Metastore,
    spec: CacheSpec,
    cache: CacheRecord,
    runs: Sequence[RefreshRunRecord],
    restored: Sequence[Restored],
    deleted: Collection[int],
) -> None:
    commits = {c.version: c for c in read_log(cache.location)}
    known = {(run.id, run.cache_version) for run in runs if run.state is RunState.PUBLISHED}
    by_refresh: dict[str, list[Commit]] = defaultdict(list)
    for commit in commits.values():
        # a request that the copy had may be carried out again, under the id that it had then
        unknown = (str(commit.stamp.get("refresh_id")), commit.version) not in known
        if unknown and any(r.copied <= commit.at <= r.back for r in restored):
            verdict.checked["commits of before a restore"] += commit.is_data
        elif commit.is_data:
            by_refresh[str(commit.stamp["refresh_id"])].append(commit)
    _check_one_commit_each(verdict, spec, by_refresh)
    verdict.checked["commits"] += len(commits)
    published = [run for run in runs if run.state is RunState.PUBLISHED]
    served: dict[int, str] = {}
    wrote = {run.id for run in published if run.mode == "FULL"}
    numbers: list[int] = []
    for run in published:
        assert run.cache_version is not None
        found = commits.get(run.cache_version)
        if found is None:
            verdict.wrong(f"{spec.name}: {run.id} published version {run.cache_version}, not there")
            continue
        if (problem := _placed(run, found, wrote, by_refresh)) is not None:
            verdict.wrong(f"{spec.name}: {problem}")
        if run.mode in ("FULL", "ADOPT"):
            if run.cache_version in served:
                verdict.wrong(
                    f"{spec.name}: version {run.cache_version} was published by "
                    f"{served[run.cache_version]} and {run.id}"
                )
            served[run.cache_version] = run.id
            numbers.append(found.number or -1)
        if run.cache_version not in deleted:
            _check_rows(verdict, store, spec, cache, run, found)
    if numbers != sorted(set(numbers)) or list(served) != sorted(served):
        verdict.wrong(f"{spec.name}: published out of order: {served}, commit numbers {numbers}")
    _check_head(verdict, spec, cache, published)


def _check_one_commit_each(
    verdict: Verdict, spec: CacheSpec, by_refresh: Mapping[str, Sequence[Commit]]
) -> None:
    for refresh_id, written in by_refresh.items():
        if len(written) > 1:
            versions = [c.version for c in written]
            verdict.wrong(f"{spec.name}: refresh {refresh_id} committed versions {versions}")


def _placed(
    run: RefreshRunRecord,
    commit: Commit,
    wrote: set[str],
    by_refresh: Mapping[str, Sequence[Commit]],
) -> str | None:
    """What is wrong with the commit that a refresh published."""
    stamp = commit.stamp
    if run.mode not in ("FULL", "ADOPT"):
        return None
    if stamp.get("parent_version") != commit.version - 1:
        return f"{run.id} published {commit.version}, whose parent is {stamp['parent_version']}"
    if run.mode == "FULL":
        if stamp.get("refresh_id") != run.id or len(by_refresh[run.id]) != 1:
            return f"{run.id} published a commit of {stamp.get('refresh_id')}"
        if stamp.get("fencing_token") != run.fencing_token:
            return f"{run.id} holds token {run.fencing_token}, its commit says otherwise"
        return None
    if stamp.get("refresh_id") in wrote:
        return f"{run.id} adopted {stamp.get('refresh_id')}, which had published"
    if run.id in by_refresh:
        return f"{run.id} adopted a commit and wrote one too"
    return None


def _check_rows(
    verdict: Verdict,
    store: Metastore,
    spec: CacheSpec,
    cache: CacheRecord,
    run: RefreshRunRecord,
    commit: Commit,
) -> None:
    """The rows of a published version are those of the base version that it names."""
    snapshot = store.snapshots.get(run.id)
    base = None if snapshot is None else snapshot.tables[0].version
    folder = path_of(cache.location)
    files = [str(folder / name) for name in sorted(commit.files)]
    rows: list[tuple[Any, ...]] = []
    if files:
        with duckdb.connect() as connection:
            rows = connection.execute(
                "SELECT grp, n, up, down, newest FROM read_parquet(?)", [files]
            ).fetchall()
    found = version_of(rows)
    verdict.checked["published versions"] += 1
    if base is None or found != base:
        verdict.wrong(
            f"{spec.name}: version {commit.version} says base version {base} and holds "
            f"{'torn rows' if found is None else found}: {sorted(rows)}"
        )


def _check_head(
    verdict: Verdict, spec: CacheSpec, cache: CacheRecord, published: Sequence[RefreshRunRecord]
) -> None:
    if not published or published[-1].id != cache.published_refresh_id:
        newest = published[-1].id if published else None
        verdict.wrong(f"{spec.name} serves {cache.published_refresh_id}, {newest} is the newest")
