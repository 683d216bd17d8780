"""Decisions that use up their steps, and stars of many roles."""

from __future__ import annotations

import pytest

from matcher.index.registry import Registry
from matcher.model import budget
from matcher.model.ir import Block, MatchOptions
from matcher.model.reasons import ReasonCode
from matcher.normalize.mappings import mappings
from matcher.normalize.normal_query import NormalQuery
from matcher.normalize.stored_plan import plan_definition
from matcher.sql.reader import parse_query
from matcher.sql.schema import Schema

DATES, CUSTOMERS = 12, 5
_KEYS = [*(f"d{i}_key" for i in range(DATES)), *(f"c{i}_key" for i in range(CUSTOMERS))]
SCHEMA = Schema.parse(
    "CREATE TABLE dates (datekey INT NOT NULL PRIMARY KEY, year INT, month INT, week INT);"
    "CREATE TABLE customer (custkey INT NOT NULL PRIMARY KEY, region STRING, nation STRING);"
    "CREATE TABLE fact (id BIGINT, qty INT, price DECIMAL(9, 2), "
    + ", ".join(f"{key} INT NOT NULL" for key in _KEYS)
    + "".join(
        f", CONSTRAINT f{i} FOREIGN KEY ({key}) REFERENCES "
        f"{'dates (datekey)' if key[0] == 'd' else 'customer (custkey)'} RELY"
        for i, key in enumerate(_KEYS)
    )
    + ");"
)
_D = [f"JOIN dates d{i} ON f.d{i}_key = d{i}.datekey" for i in range(DATES)]
_C = [f"JOIN customer c{i} ON f.c{i}_key = c{i}.custkey" for i in range(CUSTOMERS)]
STAR = " ".join(["FROM fact f", *_D, *_C])
ALL_KEYS = ", ".join(f"f.{key}" for key in _KEYS)
ONE_ROLE = f"SELECT d7.year, SUM(qty) AS q {STAR} WHERE d7.month < 6 GROUP BY d7.year"
THREE_ROLES = (
    f"SELECT d2.year, c3.region, SUM(qty) AS q {STAR} WHERE d5.month = 6 "
    "GROUP BY d2.year, c3.region"
)
CACHES = {
    "one": f"SELECT d7.year, d7.month, SUM(qty) AS q {STAR} GROUP BY d7.year, d7.month",
    "three": "SELECT d2.year AS y, d5.month AS m, c3.region, SUM(qty) AS q "
    f"{STAR} GROUP BY d2.year, d5.month, c3.region",
}
NARROW = {
    "one": f"SELECT d7.year, d7.month, {ALL_KEYS}, SUM(qty) AS q FROM fact f {_D[7]} "
    f"GROUP BY d7.year, d7.month, {ALL_KEYS}",
    "three": f"SELECT d2.year AS y, d5.month AS m, c3.region, {ALL_KEYS}, SUM(qty) AS q "
    f"FROM fact f {_D[2]} {_D[5]} {_C[3]} "
    f"GROUP BY d2.year, d5.month, c3.region, {ALL_KEYS}",
}
# no keys of the roles that they do not read
ALONE = {
    "one": f"SELECT d7.year, d7.month, SUM(qty) AS q FROM fact f {_D[7]} "
    "GROUP BY d7.year, d7.month",
    "three": "SELECT d2.year AS y, d5.month AS m, c3.region, SUM(qty) AS q "
    f"FROM fact f {_D[2]} {_D[5]} {_C[3]} GROUP BY d2.year, d5.month, c3.region",
}
OTHERS = {
    f"other{i}": f"SELECT d.month, SUM(price) AS s FROM fact f JOIN dates d "
    f"ON f.d{i % DATES}_key = d.datekey WHERE d.week > {i} GROUP BY d.month"
    for i in range(98)
}
UTC = MatchOptions(time_zone="UTC", keys=SCHEMA.joins())


def block(text: str) -> Block:
    (located,) = parse_query(text, SCHEMA).walk()
    assert located.block is not None, located.reasons
    return located.block


def registry(caches: dict[str, str]) -> Registry:
    found = Registry()
    for name, text in caches.items():
        found.put(plan_definition(name, block(text), SCHEMA.joins()))
    return found


@pytest.mark.parametrize(
    "caches",
    [CACHES, NARROW, ALONE],
    ids=["over the star", "over their roles", "over their roles alone"],
)
@pytest.mark.parametrize(
    ("query", "names"), [(ONE_ROLE, {"one", "three"}), (THREE_ROLES, {"three"})]
)
def test_a_star_of_17_roles_among_100_caches_hits(
    caches: dict[str, str], query: str, names: set[str]
) -> None:
    with budget.unhurried(), budget.decision():
        decision = registry({**OTHERS, **caches}).decide(block(query), UTC)
        assert decision.rewrite is not None, decision.reasons
        assert decision.rewrite.cache in names
        assert budget.spent().steps < budget.DECISION_STEPS // 2


def test_roles_are_told_apart_by_what_they_are_joined_by() -> None:
    found = registry({**CACHES, "narrow": NARROW["three"]})
    base = block(ONE_ROLE)
    relations = found._relations(base)
    assert relations is not None
    query = NormalQuery(base, relations)
    for name in ("one", "three", "narrow"):
        ways = list(mappings(query, found._plans[name], partly=True))
        assert len(ways) == 1, name


def test_occurrences_that_nothing_tells_apart_are_drawn_one_by_one() -> None:
    """12 of them over 2 have 132 ways, and 12! of numbering those that are left."""
    pairs = registry({"pairs": "SELECT a.id, b.qty FROM fact a, fact b WHERE a.qty > 1"})
    copies = ", ".join(f"fact f{i}" for i in range(12))
    base = block(f"SELECT f0.id FROM {copies} WHERE f3.qty > 1")
    relations = pairs._relations(base)
    assert relations is not None
    query = NormalQuery(base, relations)
    ways = mappings(query, pairs._plans["pairs"], partly=True)
    seen = {way.relations for way, _ in zip(ways, range(200), strict=False)}
    assert len(seen) == 132


def test_what_used_up_its_steps_is_remembered_until_something_changes() -> None:
    found = registry(CACHES)
    few = MatchOptions(time_zone="UTC", most_steps=30)
    query = block(ONE_ROLE)

    def steps(options: MatchOptions) -> tuple[int, bool, set[ReasonCode]]:
        with budget.decision(options.most_steps, 100.0):
            decision = found.decide(query, options)
            codes = {reason.code for reason in decision.reasons}
            return budget.spent().steps, decision.rewrite is not None, codes

    first, hit, codes = steps(few)
    assert first > 30 and not hit and ReasonCode.TOO_MANY_STEPS in codes
    again, hit, codes = steps(few)
    assert again == 0 and not hit and codes == {ReasonCode.TOO_MANY_STEPS}
    _, hit, _ = steps(MatchOptions(time_zone="UTC", most_steps=20_000))  # another setting
    assert hit
    unrelated = block("SELECT region, COUNT(*) AS n FROM customer GROUP BY region")
    found.put(plan_definition("other", unrelated, SCHEMA.joins()))
    anew, _, _ = steps(few)
    assert anew > 30  # customer is one of the query's tables


def test_time_that_ran_out_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    found, query = registry(CACHES), block(ONE_ROLE)
    with monkeypatch.context() as fault:
        now = iter(range(10**9))
        fault.setattr("matcher.model.budget._TICKS", 1)
        fault.setattr("matcher.model.budget.time.thread_time", lambda: float(next(now)))
        with budget.decision(20_000), pytest.raises(budget.OutOfTime):
            found.decide(query, UTC)
    with budget.decision(20_000):
        assert found.decide(query, UTC).rewrite is not None


def test_a_block_of_too_many_nodes_is_none() -> None:
    listed = ", ".join(map(str, range(19_000)))
    (located,) = parse_query(
        f"SELECT SUM(qty) AS q FROM fact WHERE id IN ({listed}) AND price IN ({listed})", SCHEMA
    ).walk()
    assert located.block is None or located.reasons
    assert ReasonCode.QUERY_TOO_LARGE in {reason.code for reason in located.reasons}
