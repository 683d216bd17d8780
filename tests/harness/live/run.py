"""`make live MINUTES=…`: a table that grows all the time, refreshes that follow it, and readers.

One writer appends to the fact of the Star Schema Benchmark, a refresher refreshes the cube again
and again, and four readers run the 13 queries, STRICT. In the first and the last sixth of the time
they ask without us: side by side a hit would wait for the processor behind the queries that it
saves, and by turns the first hits of each turn would read what came in the one before. Afterwards
each answer is compared with the base at the versions between the query's start and end: it must be
that of one of them. Exit code 1 if some answer is none of these.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

import cachemgr
from cachemgr.config.session_settings import MODE
from cachemgr.demo.session import start_session
from cachemgr.demo.ssb_cube import CUBE_NAME, RECORD_PRESERVING_JOINS, cube_ddl
from cachemgr.demo.ssb_data import prepare
from cachemgr.demo.ssb_queries import QUERIES
from tests.processes import exit_on_sigterm

_READERS: Final = 4
# Of the time, at its beginning and at its end.
_WITHOUT_US: Final = 1 / 6
_FACT: Final = "lineorder"


@dataclass(frozen=True)
class Answer:
    """What a reader saw.

    Args:
        query: The query's number.
        first: The fact's version before it was asked.
        last: The same after its last row.
        rows: Its rows, as a multiset.
        seconds: How long it took.
        hit: Whether a cache answered; None where it ran without us.
    """

    query: int
    first: int
    last: int
    rows: frozenset[tuple[tuple[Any, ...], int]]
    seconds: float
    hit: bool | None


@dataclass
class Story:
    """What happened.

    Args:
        answers: Of all readers.
        appended: Rows.
        commits: Of the writer.
        refreshes: By the way that was taken.
        seconds: How long the writer wrote.
        errors: What failed.
    """

    answers: list[Answer] = field(default_factory=list)
    appended: int = 0
    commits: int = 0
    refreshes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    errors: list[str] = field(default_factory=list)


def live(
    spark: Any, fact: Path, minutes: float, rows_a_second: int, mode: str, pause: float
) -> Story:
    """Let all of them run.

    Args:
        spark: An enabled session with the cube.
        fact: The fact's folder.
        minutes: How long.
        rows_a_second: What the writer appends.
        mode: Of the refreshes.
        pause: Seconds between two refreshes.
    """
    story, stop, started = Story(), threading.Event(), time.monotonic()
    lock = threading.Lock()

    def looked_after(work: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                work()
            except Exception as error:
                story.errors.append(f"{type(error).__name__}: {str(error)[:300]}")
                stop.set()

        return run

    def write() -> None:
        session = _session(spark, "off")
        owed = 0.0
        last = time.monotonic()
        while not stop.is_set():
            now = time.monotonic()
            owed, last = owed + (now - last) * rows_a_second, now
            count = max(int(owed), rows_a_second)
            owed -= count
            session.sql(f"INSERT INTO {_FACT} SELECT * FROM global_temp.some_rows LIMIT {count}")
            story.appended += count
            story.commits += 1
            stop.wait(max(0.0, -owed / rows_a_second))
        story.seconds = time.monotonic() - started

    def refresh() -> None:
        session = _session(spark, "rewrite")
        while not stop.is_set():
            row = session.sql(f"REFRESH RELATIONAL CACHE {CUBE_NAME} {mode}").collect()[0]
            story.refreshes[str(row["mode"])] += 1
            stop.wait(pause)

    def read(number: int) -> None:
        sessions = {mode: _session(spark, mode) for mode in ("rewrite", "off")}
        chance = random.Random(number)
        while not stop.is_set():
            query = chance.randrange(len(QUERIES))
            gone = (time.monotonic() - started) / (60 * minutes)
            which = "rewrite" if _WITHOUT_US < gone < 1 - _WITHOUT_US else "off"
            answer = _asked(sessions[which], fact, query, which)
            with lock:
                story.answers.append(answer)

    works = [write, refresh, *(lambda n=n: read(n) for n in range(_READERS))]
    threads = [threading.Thread(target=looked_after(work), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    stop.wait(60 * minutes)
    stop.set()
    for thread in threads:
        thread.join(300)
    return story


def _session(spark: Any, mode: str) -> Any:
    session = spark.newSession()
    for key in ("spark.cachemgr.metastore.url", "spark.cachemgr.location"):
        session.conf.set(key, spark.conf.get(key))
    session.conf.set(MODE, mode)
    cachemgr.enable(session)
    return session


def _asked(session: Any, fact: Path, query: int, mode: str) -> Answer:
    hits = cachemgr.counters(session).get("hits", 0)
    first, started = _version(fact), time.perf_counter()
    rows = session.sql(QUERIES[query].sql()).collect()
    seconds = time.perf_counter() - started
    hit = cachemgr.counters(session).get("hits", 0) > hits
    return Answer(
        query, first, _version(fact), _told(rows), seconds, hit if mode != "off" else None
    )


def _told(rows: Sequence[Any]) -> frozenset[tuple[tuple[Any, ...], int]]:
    return frozenset(Counter(map(tuple, rows)).items())


def _version(fact: Path) -> int:
    names = os.listdir(fact / "_delta_log")
    return max(int(n[:20]) for n in names if n.endswith(".json") and n[:20].isdigit())


def wrong(spark: Any, answers: Sequence[Answer]) -> list[str]:
    """The answers that are none of those which the base gives at a version in between.

    Args:
        spark: The session.
        answers: What the readers saw.
    """
    session = _session(spark, "off")
    known: dict[tuple[int, int], frozenset[tuple[tuple[Any, ...], int]]] = {}

    def at(query: int, version: int) -> frozenset[tuple[tuple[Any, ...], int]]:
        if (query, version) not in known:
            text = QUERIES[query].sql().replace(_FACT, f"{_FACT} VERSION AS OF {version}", 1)
            known[query, version] = _told(session.sql(text).collect())
        return known[query, version]

    return [
        f"{QUERIES[a.query].name} between versions {a.first} and {a.last}, hit: {a.hit}"
        for a in answers
        if not any(at(a.query, version) == a.rows for version in range(a.last, a.first - 1, -1))
    ]


def report(story: Story, found: Sequence[str]) -> str:
    """The story in lines for people."""
    ours = [a for a in story.answers if a.hit is not None]
    hits = [a for a in ours if a.hit]
    theirs = [a for a in story.answers if a.hit is None]
    ways = ", ".join(f"{count} {way}" for way, count in story.refreshes.most_common())
    rate = story.appended / max(story.seconds, 1)
    lines = [
        f"{story.appended:,} rows appended in {story.commits} commits, {rate:,.0f} a second; "
        f"refreshes: {ways}",
        f"{len(ours)} queries with us, {len(hits)} hits ({len(hits) / max(len(ours), 1):.1%}), p50 "
        f"{median([a.seconds for a in ours] or [0]):.2f} s; {len(theirs)} without, p50 "
        f"{median([a.seconds for a in theirs] or [0]):.2f} s",
        f"{len(story.answers)} answers compared, {len(found)} wrong",
        *found[:10],
        *(f"failed: {error}" for error in story.errors),
    ]
    return "\n".join(lines)


@contextmanager
def _world(folder: Path, scale: float) -> Iterator[tuple[Any, Path]]:
    spark = start_session(folder)
    try:
        prepare(spark, folder / "data", scale, 42)
        for statement in (*RECORD_PRESERVING_JOINS, cube_ddl()):
            spark.sql(statement)
        spark.sql(f"REFRESH RELATIONAL CACHE {CUBE_NAME}").collect()
        spark.table(_FACT).limit(100_000).cache().createOrReplaceGlobalTempView("some_rows")
        _warm_up(spark)
        place = spark.sql(f"DESCRIBE DETAIL {_FACT}").collect()[0]["location"]
        yield spark, Path(place.removeprefix("file:").replace("///", "/"))
    finally:
        cachemgr.disable(spark)
        spark.stop()


def _warm_up(spark: Any) -> None:
    """Everything is done once before: what a server compiles in its first minutes is no part of
    the comparison."""
    sessions = [_session(spark, mode) for mode in ("off", "rewrite")]
    for _ in range(2):
        for session in sessions:
            session.sql(f"INSERT INTO {_FACT} SELECT * FROM global_temp.some_rows LIMIT 2000")
            for query in QUERIES:
                session.sql(query.sql()).collect()
        spark.sql(f"REFRESH RELATIONAL CACHE {CUBE_NAME}").collect()


def main() -> int:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="SSB scale factor")
    parser.add_argument("--rows", type=int, default=2_000, help="rows a second")
    parser.add_argument("--refresh", default="AUTO", choices=("AUTO", "FULL"))
    parser.add_argument("--pause", type=float, default=20, help="seconds between two refreshes")
    chosen = parser.parse_args()
    exit_on_sigterm()
    with tempfile.TemporaryDirectory(prefix="live-") as name:
        with _world(Path(name), chosen.scale) as (spark, fact):
            story = live(spark, fact, chosen.minutes, chosen.rows, chosen.refresh, chosen.pause)
            found = wrong(spark, story.answers)
            sys.stdout.write(report(story, found) + "\n")
    return 1 if found or story.errors else 0


if __name__ == "__main__":
    sys.exit(main())
