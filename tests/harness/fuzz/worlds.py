"""One world's pairs: generated and decided (`generated`), then executed and counted (`settle`).

Everything follows from the world's seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from cachemgr.text.offline import Workspace, answer
from tests.harness.fuzz import ledger
from tests.harness.fuzz.decide import (
    Accepted,
    Invalid,
    Prepared,
    Refusal,
    decide,
    decide_as_a_session,
    prepare_cache,
    prepared,
    together,
)
from tests.harness.fuzz.doors_listed import Compared, no_row
from tests.harness.fuzz.groups import grouped_cache, regrouped
from tests.harness.fuzz.nested import nested
from tests.harness.fuzz.oracle import Missed, could_hit
from tests.harness.fuzz.queries import query, relit
from tests.harness.fuzz.shrink import shrink
from tests.harness.fuzz.spark_judge import Verdict
from tests.harness.fuzz.world import World, world

CACHES = 12
QUERIES = 20
_SIBLINGS = 0.45  # of the caches are near another one of the world
_OFFERED = 2  # siblings that an accepted query is offered to: one original, several pairs
_AGAIN = 0.6  # of the accepted queries are asked again with other literals, and executed
_NESTED = 0.06  # of the pairs are also answered from a cache over their cache
_REPEATED = 0.1  # of the pairs whose shape this world had already are executed


class Doors(Protocol):
    """Compares the blocks and choices of both doors over a world's tables."""

    def load(self, world: World) -> None: ...

    def caches(self, pairs: Iterable[Prepared]) -> list[Compared]: ...

    def queries(self, asked: list[tuple[Workspace, str]]) -> list[Compared]: ...


class Judge(Protocol):
    """Executes accepted pairs over a world's tables."""

    def load(self, world: World) -> None: ...

    def judge(self, world: World, accepted: list[Accepted]) -> list[Verdict]: ...


@dataclass
class Totals:
    """What a run has counted so far."""

    numbers: Counter[str] = field(default_factory=Counter)
    pairs: list[ledger.Pair] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    differs: list[str] = field(default_factory=list)
    listed: Counter[str] = field(default_factory=Counter)
    invalid: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    missed: list[Missed] = field(default_factory=list)
    oracle: dict[str, Counter[str]] = field(default_factory=dict)


@dataclass
class Generated:
    """A world's decided pairs. `again` are next literals, answered from remembered shapes."""

    world: World
    accepted: list[Accepted] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    invalid: list[Invalid] = field(default_factory=list)
    again: list[Accepted] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    repeated: int = 0

    @property
    def caches(self) -> dict[str, Prepared]:
        """The caches by name."""
        return {p.cache.cache.name: p.cache for p in [*self.accepted, *self.refused]}


def generate(made: World, caches: int, queries: int) -> Iterator[Accepted | Refusal | Invalid]:
    """The pairs of one world, decided: each query with the cache that it is near, and where it is
    a hit with some of that one's siblings."""
    rng = Random(f"pairs {made.seed}")
    families: list[list[Prepared]] = []
    for number in range(caches):
        family = rng.choice(families) if families and rng.random() < _SIBLINGS else []
        pair = prepare_cache(rng, made, f"c{number}", family[0].cache if family else None)
        if pair is None:
            continue
        if not family:
            families.append(family)
        family.append(pair)
    for family in families:
        for pair in family:
            others = [p for p in family if p is not pair]
            for _ in range(queries):
                spec = query(rng, made, pair.cache)
                found = decide(pair, spec)
                yield found
                if isinstance(found, Accepted):
                    for other in rng.sample(others, min(len(others), _OFFERED)):
                        yield decide(other, spec)
    yield from over_groups(made, caches, queries)


def over_groups(made: World, caches: int, queries: int) -> Iterator[Accepted | Refusal | Invalid]:
    """The pairs of caches over groups; of a source of their own, or all others would be others."""
    rng = Random(f"groups {made.seed}")
    for number in range(max(1, caches // 3)):
        drawn, groups = grouped_cache(rng, made, f"g{number}")
        pair = prepared(made, drawn)
        for _ in range(queries if pair is not None else 0):
            assert pair is not None
            yield decide(pair, regrouped(rng, query(rng, made, pair.cache), groups))


def generated(seed: int, caches: int = CACHES, queries: int = QUERIES) -> Generated:
    """The decided pairs of one seed, and what a session over all of its caches answers."""
    made = world(seed)
    found = Generated(made)
    rng = Random(f"repeated {seed}")
    shapes: set[str] = set()
    for one in generate(made, caches, queries):
        if isinstance(one, Refusal):
            found.refused.append(one)
        elif isinstance(one, Invalid):
            found.invalid.append(one)
        elif one.shape not in shapes or rng.random() < _REPEATED:
            shapes.add(one.shape)
            found.accepted.append(one)
        else:
            found.repeated += 1
    _ask_a_session(found)
    rng = Random(f"nested {seed}")
    chosen = [p for p in found.accepted if rng.random() < _NESTED]
    found.accepted += filter(None, (nested(rng, made, p, i) for i, p in enumerate(chosen)))
    return found


def _ask_a_session(found: Generated) -> None:
    """The same queries and their next literals, decided as a session does over all caches."""
    pairs = found.caches
    if not pairs:
        return
    made = found.world
    workspace = together(made, list(pairs.values()))
    rng = Random(f"literals {made.seed}")
    asked: set[str] = set()
    for pair in found.accepted:
        if pair.query in asked:
            continue
        asked.add(pair.query)
        hit = isinstance(decide_as_a_session(workspace, pairs, pair.spec), Accepted)
        if not (hit or _has_no_row(pair)):
            found.lost.append(f"seed {made.seed}\n{pair.cache.cache.statement}\n{pair.query}")
        again = relit(rng, made, pair.spec)
        if again != pair.spec and rng.random() < _AGAIN:
            next_one = decide_as_a_session(workspace, pairs, again)
            if isinstance(next_one, Accepted):
                found.again.append(next_one)


def _has_no_row(pair: Accepted) -> bool:
    """True of a query whose conditions contradict one another: what answers that is all the same,
    and the index need not find it."""
    blocks = answer(pair.cache.workspace, pair.query).parsed.walk()
    return any(b.block is not None and no_row(b.block) for b in blocks)


def run_world(
    seed: int, judge: Judge, totals: Totals, caches: int = CACHES, queries: int = QUERIES,
    oracle: int = 0,
) -> None:  # fmt: skip
    """Generate, decide and execute the pairs of one seed."""
    settle(generated(seed, caches, queries), judge, totals, oracle)


def settle(found: Generated, judge: Judge, totals: Totals, oracle: int = 0) -> None:
    """Execute what was accepted, and count."""
    made, numbers = found.world, totals.numbers
    _count(found, totals)
    judge.load(made)
    verdicts = judge.judge(made, found.accepted + found.again)
    for number, (pair, verdict) in enumerate(
        zip(found.accepted + found.again, verdicts, strict=True)
    ):
        own = number < len(found.accepted)
        if verdict.outcome == "skipped":
            totals.skipped[verdict.detail[:100]] += 1
        if not own:
            numbers["templates"] += verdict.outcome == "equal"
        else:
            numbers["skipped" if verdict.outcome == "skipped" else "executed"] += 1
        if verdict.outcome == "equal" and own:
            key = ledger.digest(pair.shape)
            totals.pairs.append(ledger.Pair(key, pair.tags, pair.compensations))
        elif verdict.outcome == "wrong":
            totals.wrong.append(_wrong(made, judge, pair, verdict, own))
    if oracle:
        _ask_oracle(found, totals, oracle)


def compare_doors(found: Generated, doors: Doors, totals: Totals, share: int) -> None:
    """The definitions of a world's caches and one query in `share` through both doors."""
    made, rng = found.world, Random(f"doors {found.world.seed}")
    doors.load(made)
    caches = list(found.caches.values())
    decided = [*found.accepted, *found.refused]
    asked = [p for p in decided if rng.random() * share < 1]
    compared = [
        *zip((p.cache.statement for p in caches), doors.caches(caches), strict=True),
        *zip(
            (f"{p.cache.cache.statement}\n{p.query}" for p in asked),
            doors.queries([(p.cache.workspace, p.query) for p in asked]),
            strict=True,
        ),
    ]
    totals.numbers["doors"] += len(asked)
    for text, one in compared:
        if one.listed:
            totals.listed[one.listed] += 1
        elif one.differences:
            told = "\n  ".join(one.differences)
            totals.differs.append(f"seed {made.seed}\n{text}\n  {told}")


class Actions(Protocol):
    """Gives some of a world's queries to a session with the hook on."""

    def check(
        self, world: World, accepted: list[Accepted]
    ) -> Iterator[tuple[Accepted, Verdict]]: ...


def try_actions(found: Generated, actions: Actions, totals: Totals) -> None:
    """Some accepted pairs of a world in a session with the hook on, by random actions."""
    made = found.world
    for pair, verdict in actions.check(made, found.accepted):
        totals.numbers[f"actions {verdict.outcome}"] += 1
        if verdict.outcome == "skipped":
            totals.skipped[verdict.detail[:100]] += 1
        elif verdict.outcome == "wrong":
            totals.wrong.append(
                f"-- seed {made.seed}, in a session\n{made.ddl}\n{made.joins}"
                f"{pair.cache.cache.statement}\n-- query\n{pair.query};\n-- {verdict.detail}"
            )


def _count(found: Generated, totals: Totals) -> None:
    for refusal in found.refused:
        totals.reasons.update({code for code, _ in refusal.reasons})
    totals.invalid.update(i.message[:80] for i in found.invalid)
    totals.lost += found.lost
    decided = len(found.accepted) + found.repeated
    totals.numbers["accepted"] += decided
    totals.numbers["generated"] += decided + len(found.refused) + len(found.invalid)


def _wrong(made: World, judge: Judge, pair: Accepted, verdict: Verdict, own: bool) -> str:
    small, told = (shrink(made, judge, pair), "") if own else (pair, " (by a remembered shape)")
    detail = judge.judge(made, [small])[0].detail if own else verdict.detail
    used = "\n".join(
        f"-- {t.name}: {t.rows}" for t in made.tables.values() if t.name in small.query
    )
    return (
        f"-- seed {made.seed}{told}\n{made.ddl}\n{made.joins}{small.cache.cache.statement}\n"
        f"{'-- nested: ' + small.nested if small.nested else ''}\n"
        f"-- query\n{small.query};\n-- rewritten\n{small.rewritten};\n"
        f"-- conf {made.conf}\n{used}\n-- {detail or verdict.detail}"
    )


def _ask_oracle(found: Generated, totals: Totals, share: int) -> None:
    """Which refused pairs could have hit; one in `share` is asked, and counted `share` times."""
    for pair in found.accepted:
        for tag in pair.tags:
            totals.oracle.setdefault(tag, Counter())["matched"] += 1
        totals.numbers["oracle_matched"] += 1
    rng = Random(f"oracle {found.world.seed}")
    for refusal in found.refused:
        if rng.random() * share >= 1:
            continue
        totals.numbers["oracle_asked"] += 1
        missed = could_hit(found.world, refusal)
        if missed is not None:
            totals.missed.append(missed)
            totals.numbers["oracle_missed"] += share
            for tag in missed.tags:
                totals.oracle.setdefault(tag, Counter())["missed"] += share
