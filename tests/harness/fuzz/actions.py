"""Accepted pairs once more as users have them: tables and caches in Delta, the query given to a
session with the hook on, and its rows asked for by a random action; then what is told of it, in
other settings, and as a write. In some worlds tables, columns and caches have names to be quoted.

A pair that is looked at so closely costs seconds, so few of a world's are; others are only asked
for, three times with other constants. What an action may answer in more than one way is left out:
LIMIT without a total order, sums of floating point in another order.
"""

from __future__ import annotations

import itertools
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

import cachemgr
from cachemgr.errors import CacheManagerError
from cachemgr.spark import api
from tests.harness.fuzz.caches import Cache
from tests.harness.fuzz.decide import Accepted
from tests.harness.fuzz.odd_names import Names, lost_by_names, names, refused_name
from tests.harness.fuzz.spark_judge import _BY_ORDER, Verdict, select_rows
from tests.harness.fuzz.world import VIEW_TEXT, World
from tests.harness.sessions.settings import Drawn, having
from tests.harness.sessions.told import (
    WHOLE_TEXTS,
    Counted,
    counted,
    grown,
    wrong_of_explain,
    wrong_of_the_plan,
)

_CLOSELY: Final = 3  # pairs of a world are looked at so
_WRITES: Final = 0.5  # of the pairs are also written
_FEW_TIMES: Final = 3
_TIMES: Final = 12  # a query is asked with other constants
_UNTIL_HELD: Final = 5  # of these, what is read is held
_numbers = itertools.count(1)
_LITERAL: Final = re.compile(
    r"(?<![\w.'`])(?P<number>\d+)(?![\w.'`])|(?P<before>\w*)'(?P<word>(?:[^'\\]|'')*)'"
)
_WORDS: Final = ("", "a", "zz", "A", "mark0_0", "it''s", '["l",1,"int"]')

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

    def __init__(self, spark: Any, pairs: int) -> None:
        self._spark = spark
        self._pairs = pairs
        self._drawn = Drawn(spark)
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
        closely = chosen[:_CLOSELY]
        odd = names(world)
        with self._tables(world, odd) as tried:
            for _, of_one in itertools.groupby(sorted(chosen, key=_statement), _statement):
                pairs = list(of_one)
                with tried.refreshed(pairs[0].cache.cache) as lost:
                    for pair in pairs:
                        verdict = Verdict("skipped", lost)
                        told = lost_by_names(world, pair, odd) if odd.of else ""
                        if told:
                            verdict = Verdict("wrong", f"lost under odd names: {told}")
                        elif not lost:
                            verdict = tried.one(rng, pair, closely=pair in closely)
                        self.done[verdict.outcome] += 1
                        yield pair, verdict
            self.done += tried.counts

    @contextmanager
    def _tables(self, world: World, odd: Names) -> Iterator[Tried]:
        folder = Path(tempfile.mkdtemp(prefix="cachemgr-fuzz-"))
        schema = f"fuzz_actions_{next(_numbers)}"
        hooked, plain = self._spark.newSession(), self._spark.newSession()
        plain.sql(f"CREATE SCHEMA {schema} LOCATION '{folder / 'tables'}'")
        properties = " TBLPROPERTIES ('delta.columnMapping.mode' = 'name')" if odd.mapping else ""
        try:
            for session in (hooked, plain):
                session.sql(f"USE {schema}")
                for key, value in world.conf.items():
                    if key != "spark.cachemgr.assumeExactAverages":
                        session.conf.set(key, value)
            for table in world.tables.values():
                columns = ", ".join(c.ddl for c in table.declared())
                text = f"CREATE TABLE {table.name} ({columns}) USING delta{properties}"
                plain.sql(odd.text(text))
                plain.sql(odd.text(f"INSERT INTO {table.name} {select_rows(table)}"))
            plain.sql(odd.text(f"CREATE VIEW vf AS {VIEW_TEXT}"))
            hooked.conf.set("spark.cachemgr.metastore.url", f"sqlite:///{folder}/metastore.db")
            hooked.conf.set("spark.cachemgr.location", str(folder / "caches"))
            # what fails in deciding would else be a miss
            hooked.conf.set("spark.cachemgr.mode", "failFast")
            for key, value in WHOLE_TEXTS.items():
                hooked.conf.set(key, value)
            cachemgr.enable(hooked)
            try:
                for statement in filter(None, map(str.strip, world.joins.split(";"))):
                    with suppress(CacheManagerError):
                        hooked.sql(odd.text(statement))
                yield Tried(hooked, plain, folder, odd, self._drawn)
            finally:
                cachemgr.disable(hooked)
        finally:
            plain.sql(f"DROP SCHEMA {schema} CASCADE")
            shutil.rmtree(folder, ignore_errors=True)


@dataclass
class Tried:
    """The two sessions over the tables of one world.

    Args:
        hooked: The one with the hook on.
        plain: The one without us.
        folder: Where tables and caches lie.
        odd: What tables, columns and caches are called.
        drawn: What settings are drawn from.
        found: What the last query counted.
        counts: Queries with other constants that hit, by the ways in which they did.
    """

    hooked: Any
    plain: Any
    folder: Path
    odd: Names
    drawn: Drawn
    found: Counted = field(default_factory=Counted)
    counts: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def refreshed(self, cache: Cache) -> Iterator[str]:
        """A cache while its pairs are asked for; given is why there is none, or nothing.

        Args:
            cache: As the world made it.
        """
        name = self.odd.text(cache.name)
        try:
            self.hooked.sql(self.odd.text(cache.statement.rstrip(";")))
        except CacheManagerError as error:
            yield f"no cache: {error}"[:200]
            return
        try:
            self.hooked.sql(f"REFRESH RELATIONAL CACHE {name}")
        except CacheManagerError as error:
            yield f"no cache: {error}"[:200]
        else:
            yield ""
        finally:
            self.hooked.sql(f"DROP RELATIONAL CACHE {name}")

    def one(self, rng: Random, pair: Accepted, closely: bool) -> Verdict:
        """One pair over a cache that is refreshed, by a random action and with other constants.

        Args:
            rng: What is random.
            pair: The pair.
            closely: Also what is told of it; in other settings; as a write.
        """
        refused = self._refuses(rng, pair) if closely else ""
        if refused:
            return Verdict("wrong", refused)
        query = self.odd.text(pair.query)
        action = rng.choice(sorted(ACTIONS))
        act = ACTIONS[action]
        before = cachemgr.counters(self.hooked).get("hits", 0)
        mine = _answer(self.hooked, query, act)
        hit = cachemgr.counters(self.hooked).get("hits", 0) > before
        theirs = _answer(self.plain, query, act)
        if theirs[0]:
            return Verdict("skipped", theirs[0])
        if mine != theirs:
            return Verdict("wrong", f"by {action}: {mine} instead of {theirs}")
        looks = (self._told, self._in_settings, self._again, self._written)
        for look in looks if closely else (self._with_others,):
            wrong = look(rng, query)
            if wrong:
                return Verdict("wrong", wrong)
        return Verdict("equal" if hit else "missed", action)

    def _refuses(self, rng: Random, pair: Accepted) -> str:
        """A cache of a name that no door could carry is refused, and leaves nothing."""
        if not self.odd.of:
            return ""
        name, select = refused_name(rng), pair.cache.cache.spec.sql()
        try:
            self.hooked.sql(self.odd.text(f"CREATE RELATIONAL CACHE {name} AS {select}"))
        except CacheManagerError:
            return ""
        return f"a cache has the name {name}"

    def _told(self, rng: Random, query: str) -> str:
        """Counters and EXPLAIN REWRITE say what the executed plan reads."""
        explained = cachemgr.explain(self.hooked, query)
        frame = self.hooked.sql(query)
        self.found = counted(self.hooked, partial(_collected, frame))
        again = cachemgr.explain(self.hooked, query)
        if (again.hit, again.caches) != (explained.hit, explained.caches):
            return f"asking changes what is told:\n{explained.text()}\n{again.text()}"
        return wrong_of_explain(explained, self.found) or wrong_of_the_plan(
            frame, self.found, str(self.folder / "caches"), str(self.folder / "tables")
        )

    def _in_settings(self, rng: Random, query: str) -> str:
        """Settings that change no row cost no hit; under those that may the rows are Spark's."""
        collect = ACTIONS["collect"]
        plain = _answer(self.plain, query, collect)
        for draw in (self.drawn.harmless, self.drawn.respelled):
            with having(draw(rng), self.hooked) as taken:
                before = cachemgr.counters(self.hooked)
                mine = _answer(self.hooked, query, collect)
                found = grown(before, cachemgr.counters(self.hooked))
                if mine != plain:
                    return f"with {taken}: {mine} instead of {plain}"
                if found != self.found:
                    told = cachemgr.explain(self.hooked, query).text()
                    return f"with {taken}: {found} instead of {self.found}\n{told}"
        with having(self.drawn.telling(rng), self.hooked, self.plain) as taken:
            mine, theirs = (_answer(s, query, collect) for s in (self.hooked, self.plain))
        if mine != theirs and not (mine[0] and theirs[0]):
            return f"with {taken}: {mine} instead of {theirs}"
        return ""

    def _again(self, rng: Random, query: str) -> str:
        """With other constants, often enough for its sets to be held and its decision kept."""
        pins = api._of(self.hooked).session.application.pins
        for number in range(_TIMES):
            asked = other_constants(rng, query) if number % 3 else query
            wrong = self._differs(asked)
            if wrong:
                return wrong
            if number < _UNTIL_HELD:
                wait(list(pins._asked.values()), timeout=10)
        return ""

    def _with_others(self, rng: Random, query: str) -> str:
        """With other constants."""
        others = (other_constants(rng, query) for _ in range(_FEW_TIMES))
        return next(filter(None, map(self._differs, others)), "")

    def _differs(self, asked: str) -> str:
        before = cachemgr.counters(self.hooked)
        mine, theirs = (_answer(s, asked, ACTIONS["collect"]) for s in (self.hooked, self.plain))
        # what Spark raises of a row that a join drops is judged by `spark_judge` alone
        if mine != theirs and (mine[0] or not theirs[0]):
            return f"asked again as {asked}: {mine} instead of {theirs}"
        now = cachemgr.counters(self.hooked)
        for told in ("hits", "local_hits", "prepared_hits"):
            self.counts[told] += now[told] - before[told]
        return ""

    def _written(self, rng: Random, query: str) -> str:
        """A write is as many decisions as its query, and writes its rows."""
        if rng.random() > _WRITES:
            return ""
        inserts = rng.random() < 0.5
        answers = []
        for number, session in enumerate((self.plain, self.hooked)):
            table = f"written{number}"
            texts = [f"CREATE TABLE {table} USING delta AS {query}"]
            if inserts:
                self.plain.sql(f"DROP TABLE IF EXISTS {table}")
                texts = [f"{texts[0]} LIMIT 0", f"INSERT INTO {table} {query}"]
                if "LIMIT" in query or _error(self.plain, texts.pop(0)):
                    return ""
            try:
                before = cachemgr.counters(self.hooked)
                error = _error(session, texts[0])
                found = grown(before, cachemgr.counters(self.hooked))
                rows = _answer(self.plain, f"SELECT * FROM {table}", ACTIONS["collect"])
                answers.append((error, rows))
            finally:
                self.plain.sql(f"DROP TABLE IF EXISTS {table}")
        if answers[0] != answers[1]:
            return f"by {texts[0]}: {answers[1]} instead of {answers[0]}"
        if not answers[0][0] and found != self.found:
            return f"by {texts[0]}: told was {found}, and of the query {self.found}"
        return ""


def other_constants(rng: Random, query: str) -> str:
    """A query with others in place of some of its whole numbers, strings and days."""

    def other(found: re.Match[str]) -> str:
        if rng.random() < 0.4:
            return found[0]
        if found["number"] is not None:
            return str(max(0, int(found["number"]) + rng.choice((-1, 0, 1, 7))))
        if found["before"].upper() == "DATE":
            day = rng.randrange(10, 30), rng.randrange(1, 13), rng.randrange(1, 29)
            return "DATE'20{}-{:02}-{:02}'".format(*day)
        return found[0] if found["before"] else f"'{rng.choice(_WORDS)}'"

    head, where, rest = query.partition(" WHERE ")
    return head + where + _LITERAL.sub(other, rest)


def _collected(frame: Any) -> None:
    with suppress(ValueError, OverflowError):  # of PySpark, of years that Python has not
        frame.collect()


def _statement(pair: Accepted) -> str:
    return pair.cache.cache.statement


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


def _error(session: Any, statement: str) -> str:
    """The class of what a statement raises; empty if nothing."""
    return _answer(session, statement, lambda frame: Counter())[0]
