"""The parsers in a process of their own, which may hang, run out of memory or crash: that is found,
and another one goes on.

What is acceptable: a statement or an error of ours with a message; for a query an answer of the
text door, hit or miss, but no internal error.
"""

from __future__ import annotations

import logging
import multiprocessing
import random
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

import psutil

from cachemgr.ddl import looks_like_ours, parse, parse_script, render
from cachemgr.delta.head_lookup import Heads
from cachemgr.errors import CacheManagerError
from cachemgr.metastore import open_metastore
from cachemgr.serving.feed import Feed
from cachemgr.serving.sources import MetastoreSource
from cachemgr.text.door import TextDoor, TextRequest
from matcher.model.reasons import ReasonCode
from tests.harness.fuzz_api.costly import costly, named
from tests.harness.fuzz_api.findings import Finding, Findings
from tests.harness.fuzz_api.texts import mutated, queries, statements
from tests.harness.load.population import SETTINGS, populate

KINDS: Final = ("ddl", "sql")
CPU_SECONDS: Final = 15.0
_WALL_SECONDS: Final = 180.0
_CACHES: Final = 10
_HARD: Final = 0.15  # of the texts are right, and of a hard name, or ask for much


def made(seed: int, kind: str, number: int) -> str:
    """The text of a number."""
    choose = random.Random(f"{seed}:{kind}:{number}")
    seeds = _SEEDS.setdefault(kind, statements() if kind == "ddl" else queries())
    if choose.random() < _HARD:
        return named(choose) if kind == "ddl" else costly(choose)
    return mutated(choose, seeds)


_SEEDS: dict[str, list[str]] = {}


def read_statement(text: str) -> str | None:
    """What is wrong with how our DDL takes a text; None if nothing is."""
    looks_like_ours(text)
    try:
        parse_script(text)
    except CacheManagerError as error:
        if not error.message.strip():
            return f"{error.code} without a message"
    try:
        found = parse(text)
    except CacheManagerError as error:
        return None if error.message.strip() else f"{error.code} without a message"
    if parse(render(found)) != found:
        return "what is written of it is read as something else"
    return None


@dataclass(frozen=True)
class Reading:
    """What reads statements: our DDL, or for tests of this module something worse."""

    ddl: Callable[[str], str | None] = read_statement


class Reader:
    """Reads texts one after the other in a process of its own.

    Args:
        reading: How.
    """

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._reading), daemon=True)
        self._process.start()
        theirs.close()
        assert self._pipe.poll(_WALL_SECONDS) and self._pipe.recv() == "ready"

    def read(self, kind: str, text: str) -> str | None:
        """What is wrong with how a text is taken; None if nothing is."""
        before = self._cpu()
        self._pipe.send((kind, text))
        end = time.monotonic() + _WALL_SECONDS
        while not self._pipe.poll(0.5):
            if not self._process.is_alive():
                break
            if self._cpu() - before > CPU_SECONDS or time.monotonic() > end:
                self.close()
                self._start()
                return f"no end after {CPU_SECONDS:g} s of the processor"
        try:
            found: str | None = self._pipe.recv()
        except EOFError:
            self._process.join(10)
            code = self._process.exitcode
            self._start()
            return f"the process died with {code}"
        return found

    def _cpu(self) -> float:
        try:
            times = psutil.Process(self._process.pid).cpu_times()
        except psutil.NoSuchProcess:
            return 0.0
        return float(times.user + times.system)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()
        self._pipe.close()


@contextmanager
def reader(reading: Reading = Reading()) -> Iterator[Reader]:
    """A reader that is closed at the end."""
    found = Reader(reading)
    try:
        yield found
    finally:
        found.close()


def fuzz(seed: int, seconds: float, findings: Findings) -> dict[str, int]:
    """Read texts for a time.

    Returns:
        How many of each kind were read.
    """
    counts = dict.fromkeys(KINDS, 0)
    with reader() as reads:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            # far more statements than queries fit into a second
            for kind in ("ddl", "ddl", "ddl", "sql"):
                text = made(seed, kind, counts[kind])
                wrong = reads.read(kind, text)
                if wrong is not None:
                    findings.add(Finding(kind, counts[kind], wrong, repr(text)))
                counts[kind] += 1
    return counts


def _serve(pipe: Connection, reading: Reading) -> None:
    with tempfile.TemporaryDirectory(prefix="cachemgr-fuzz-") as folder:
        url = f"sqlite:///{folder}/metastore.db"
        with open_metastore(url) as store:
            populate(store, Path(folder), _CACHES)
        feed = Feed(MetastoreSource(open_metastore(url)))
        feed.start()
        assert feed.wait_loaded(60)
        door = TextDoor(feed, Heads(), SETTINGS)
        logging.getLogger("sqlglot").setLevel(logging.ERROR)
        pipe.send("ready")
        reads: dict[str, Callable[[str], str | None]] = {
            "ddl": reading.ddl,
            "sql": lambda text: _read_query(door, text),
        }
        while True:
            try:
                kind, text = pipe.recv()
            except EOFError:
                return
            pipe.send(_tried(reads[kind], text))


def _tried(read: Callable[[str], str | None], text: str) -> str | None:
    try:
        return read(text)
    except BaseException as error:
        places = traceback.extract_tb(error.__traceback__)
        place = f"{Path(places[-1].filename).name}:{places[-1].lineno}" if places else "?"
        return f"{type(error).__name__} at {place}: {str(error)[:200]!a}"


def _read_query(door: TextDoor, text: str) -> str | None:
    for explain in (None, 3):
        answer = door.answer(TextRequest(text, "ann"), explain=explain)
        internal = [r.detail for r in answer.reasons if r.code is ReasonCode.INTERNAL_ERROR]
        if internal:
            return f"internal error: {internal[0][:200]}"
        if answer.sql is None and not answer.reasons:
            return "neither a hit nor a reason"
    return None
