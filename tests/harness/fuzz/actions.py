"""Accepted pairs once more as users have them: tables and caches in Delta, the query given to a
session with the hook on, and its rows asked for by a random action.

A pair costs seconds here, so few of a world's are taken. What an action may answer in more than one
way is left out: LIMIT without a total order, sums of floating point in another order.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any, Final

import cachemgr
from cachemgr.errors import CacheManagerError
from tests.harness.fuzz.decide import Accepted
from tests.harness.fuzz.spark_judge import _BY_ORDER, Verdict, select_rows
from tests.harness.fuzz.world import VIEW_TEXT, World

PAIRS = 3  # of a world
_numbers = itertools.count(1)

Answer = tuple[str, Counter[str]]


def _rows(rows: Any) -> Counter[str]:
    return Counter(repr(tuple(row)) for row in rows)


def _shown(frame: Any) -> Counter[str]:
    text: str = frame._jdf.showString(1_000, 0, False)
    # a column is as wide as its widest cell, so the lines do not depend on their order
    return Counter(text.splitlines())


def _partly(frame: Any, number: int, taken: list[Any]) -> Counter[str]:
    """How many rows came, and which of them are none of the answer's."""
    every = _rows(frame.collect())
    strange = _rows(taken) - every
    return Counter({"rows": len(taken), "all": min(number, every.total())}) + strange


ACTIONS: Final[Mapping[str, Callable[[Any], Counter[str]]]] = {
    "collect": lambda frame: _rows(frame.collect()),
    "show": _shown,
    "count": lambda frame: Counter({"rows": frame.count()}),
    "isEmpty": lambda frame: Counter({str(frame.isEmpty()): 1}),
    "take": lambda frame: _partly(frame, 3, frame.take(3)),
    "head": lambda frame: _partly(frame, 2, frame.head(2)),
    "tail": lambda frame: _partly(frame, 2, frame.tail(2)),
    "limit": lambda frame: _partly(frame, 4, frame.limit(4).collect()),
    "toLocalIterator": lambda frame: _rows(frame.toLocalIterator()),
    "toPandas": lambda frame: Counter(
        repr([None if v is None or v != v else str(v) for v in row])
        for row in frame.toPandas().itertuples(index=False)
    ),
    "distinct": lambda frame: _rows(frame.distinct().collect()),
    "filter": lambda frame: _rows(frame.filter("1 = 1").collect()),
    "union": lambda frame: _rows(frame.union(frame).collect()),
    "cache": lambda frame: _cached(frame),
}


def _cached(frame: Any) -> Counter[str]:
    kept = frame.cache()
    try:
        return _rows(kept.collect())
    finally:
        kept.unpersist(True)


class SparkActions:
    """A session with the hook on, and one without us, over the same Delta tables.

    Args:
        spark: A session with Delta, whose application both share.
        pairs: How many pairs of a world are taken.
    """

    def __init__(self, spark: Any, pairs: int = PAIRS) -> None:
        self._spark = spark
        self._pairs = pairs
        self.done: Counter[str] = Counter()

    def check(self, world: World, accepted: list[Accepted]) -> Iterator[tuple[Accepted, Verdict]]:
        """Some of a world's pairs, each by a random action.

        Args:
            world: The world.
            accepted: Its pairs.
        """
        rng = Random(f"actions {world.seed}")
        sound = [p for p in accepted if _has_one_answer(p, world)]
        chosen = rng.sample(sound, min(self._pairs, len(sound)))
        if not chosen:
            return
        with self._tables(world) as (hooked, plain):
            for pair in chosen:
                action = rng.choice(sorted(ACTIONS))
                verdict = self._one(hooked, plain, pair, action)
                self.done[verdict.outcome] += 1
                yield pair, verdict

    def _one(self, hooked: Any, plain: Any, pair: Accepted, action: str) -> Verdict:
        name = pair.cache.cache.name
        act = ACTIONS[action]
        try:
            hooked.sql(pair.cache.cache.statement.rstrip(";"))
            hooked.sql(f"REFRESH RELATIONAL CACHE {name}")
        except CacheManagerError as error:
            return Verdict("skipped", f"no cache: {error}"[:200])
        try:
            before = cachemgr.counters(hooked).get("hits", 0)
            mine = _answer(hooked, pair.query, act)
            hit = cachemgr.counters(hooked).get("hits", 0) > before
            theirs = _answer(plain, pair.query, act)
        finally:
            hooked.sql(f"DROP RELATIONAL CACHE {name}")
        if theirs[0]:
            return Verdict("skipped", theirs[0])
        if mine != theirs:
            return Verdict("wrong", f"by {action}: {mine} instead of {theirs}")
        return Verdict("equal" if hit else "missed", action)

    @contextmanager
    def _tables(self, world: World) -> Iterator[tuple[Any, Any]]:
        folder = Path(tempfile.mkdtemp(prefix="cachemgr-fuzz-"))
        schema = f"fuzz_actions_{next(_numbers)}"
        hooked, plain = self._spark.newSession(), self._spark.newSession()
        plain.sql(f"CREATE SCHEMA {schema} LOCATION '{folder / 'tables'}'")
        try:
            for session in (hooked, plain):
                session.sql(f"USE {schema}")
                for key, value in world.conf.items():
                    if key != "spark.cachemgr.assumeExactAverages":
                        session.conf.set(key, value)
            for table in world.tables.values():
                columns = ", ".join(c.ddl for c in table.declared())
                plain.sql(f"CREATE TABLE {table.name} ({columns}) USING delta")
                plain.sql(f"INSERT INTO {table.name} {select_rows(table)}")
            plain.sql(f"CREATE VIEW vf AS {VIEW_TEXT}")
            hooked.conf.set("spark.cachemgr.metastore.url", f"sqlite:///{folder}/metastore.db")
            hooked.conf.set("spark.cachemgr.location", str(folder / "caches"))
            # what fails in deciding would else be a miss
            hooked.conf.set("spark.cachemgr.mode", "failFast")
            cachemgr.enable(hooked)
            try:
                for statement in filter(None, map(str.strip, world.joins.split(";"))):
                    with suppress(CacheManagerError):
                        hooked.sql(statement)
                yield hooked, plain
            finally:
                cachemgr.disable(hooked)
        finally:
            plain.sql(f"DROP SCHEMA {schema} CASCADE")
            shutil.rmtree(folder, ignore_errors=True)


def _has_one_answer(pair: Accepted, world: World) -> bool:
    by_order = _BY_ORDER.search(pair.query) or _BY_ORDER.search(pair.cache.cache.spec.sql())
    return not (by_order or world.approximate or pair.nested or "LIMIT" in pair.query.upper())


def _answer(session: Any, query: str, act: Callable[[Any], Counter[str]]) -> Answer:
    """What an action gives, or the class of what it raises."""
    try:
        return "", act(session.sql(query))
    except Exception as error:
        condition = getattr(error, "getCondition", lambda: None)()
        return f"raises {condition or type(error).__name__}", Counter()
