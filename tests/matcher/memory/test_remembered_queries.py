"""What is remembered of queries outlives changes of caches over other tables, and no others."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from matcher.index import registry as registry_module
from matcher.index.registry import Registry
from matcher.memory.bounded import Changes, Remembered
from matcher.model.expr import Agg, Call, Col, Lit
from matcher.model.ir import Block, CachePlan, Output, Relation
from matcher.normalize.stored_plan import plan_definition

TABLES = ("a", "b", "c")


def _column(rel: int, name: str) -> Col:
    return Col(rel, name, "bigint", nullable=False)


def block(tables: str, key: str = "g", low: int | None = None) -> Block:
    """SELECT key, SUM(v) over the tables, joined by k."""
    relations = tuple(Relation(f"file:/{t}", t) for t in tables)
    joins = [Call("eq", (_column(i, "k"), _column(i + 1, "k")), "boolean")
             for i in range(len(tables) - 1)]  # fmt: skip
    if low is not None:
        joins.append(Call("gt", (_column(0, key), Lit(low, "bigint")), "boolean"))
    keys = (_column(0, key),)
    total = Agg("sum", (_column(0, "v"),), "bigint")
    return Block(relations, tuple(joins), (Output(key, keys[0]), Output("s", total)), keys)


def cache(name: str, tables: str, key: str = "g", rows: int = 10) -> CachePlan:
    return replace(plan_definition(name, block(tables, key)), rows=rows)


@pytest.fixture
def looked_at(monkeypatch) -> list[str]:
    """The caches that are matched as for the first time."""
    found: list[str] = []
    matched = registry_module._matched

    def noted(query, plans, *given):
        plans = tuple(plans)
        found.extend(plan.name for plan in plans)
        return matched(query, plans, *given)

    monkeypatch.setattr(registry_module, "_matched", noted)
    return found


def test_a_change_elsewhere_is_no_reason_to_look_again(looked_at: list[str]) -> None:
    registry = Registry()
    for name, tables in (("one", "a"), ("two", "ab"), ("three", "c")):
        registry.put(cache(name, tables))
    assert registry.decide(block("a", low=1)).rewrite is not None
    looked_at.clear()
    registry.put(cache("three", "c", rows=99))
    registry.put(cache("four", "bc"))
    registry.drop("four")
    assert registry.decide(block("a", low=2)).rewrite is not None and looked_at == []
    registry.put(cache("two", "ab", rows=99))
    assert registry.decide(block("a", low=3)).rewrite is not None and "one" in looked_at


def test_a_miss_is_remembered_where_constants_do_not_decide_it(looked_at: list[str]) -> None:
    registry = Registry()
    registry.put(cache("one", "a"))

    def asked(low: int, key: str = "g") -> Block:
        found = block("a", key, low)
        return replace(found, outputs=(Output("s", Agg("max", (_column(0, "v"),), "bigint")),))

    first = registry.decide(asked(7))
    assert first.rewrite is None and first.reasons and looked_at
    looked_at.clear()
    assert registry.decide(asked(8)).reasons == first.reasons and looked_at == []
    registry.put(cache("two", "a"))
    assert registry.decide(asked(8)).rewrite is None and "two" in looked_at


def test_a_miss_that_names_a_constant_is_not(looked_at: list[str]) -> None:
    registry = Registry()
    limited = replace(block("a", low=50), outputs=block("a").outputs)
    registry.put(replace(plan_definition("one", limited), rows=10))
    for low in (7, 8):
        looked_at.clear()
        assert registry.decide(block("a", low=low)).rewrite is None and looked_at == ["one"]
    assert registry.decide(block("a", low=60)).rewrite is not None


def test_what_a_constant_has_decided_over_another_condition_is_not_remembered() -> None:
    """`a = 5 AND (a < 3 OR x > 0)` says that x is not NULL, and `a = 1 AND …` does not."""
    a, x = Col(0, "a", "bigint"), Col(0, "x", "bigint")
    keys, rows = (a, x), Agg("count", (), "bigint", False)
    outputs = (Output("a", a), Output("x", x), Output("n", rows))
    table = (Relation("file:/t", "t"),)
    plan = plan_definition("c", Block(table, (), outputs, keys))
    counted = (Output("n", Agg("count", (x,), "bigint", False)),)

    def asked(value: int) -> Block:
        either = (
            Call("lt", (a, Lit(3, "bigint")), "boolean"),
            Call("gt", (x, Lit(0, "bigint")), "boolean"),
        )
        only = Call("eq", (a, Lit(value, "bigint")), "boolean")
        return Block(table, (only, Call("or", either, "boolean")), counted, ())

    remembering, fresh = Registry(), Registry()
    for registry in (remembering, fresh):
        registry.put(replace(plan, rows=10))
    first = remembering.decide(asked(5)).rewrite
    then, alone = remembering.decide(asked(1)).rewrite, fresh.decide(asked(1)).rewrite
    assert first is not None and then is not None and alone is not None
    assert then.outputs == alone.outputs != first.outputs


def test_what_is_decided_is_what_one_without_memory_decides() -> None:
    """Random changes between random queries; explanations, too."""
    choose, registry, fresh = Random(5), Registry(), Registry()
    live: dict[str, CachePlan] = {}
    outcomes: set[str | None] = set()
    for step in range(600):
        if choose.random() < 0.4:
            name = f"c{choose.randrange(8)}"
            if name in live and choose.random() < 0.4:
                del live[name]
                registry.drop(name)
                fresh.drop(name)
            else:
                tables = "".join(choose.sample(TABLES, choose.randrange(1, 3)))
                live[name] = cache(name, tables, choose.choice("gh"), choose.randrange(1, 99))
                registry.put(live[name])
                fresh.put(live[name])
        fresh.forget_decisions()
        asked = block("".join(choose.sample(TABLES, choose.randrange(1, 4))), choose.choice("gh"),
                      choose.choice((None, 1, step)))  # fmt: skip
        found, wanted = registry.decide(asked), fresh.decide(asked)
        assert found.rewrite == wanted.rewrite
        outcomes.add(None if found.rewrite is None else found.rewrite.cache)
        told = registry.decide(asked, explain=True, most=3)
        assert told == fresh.decide(asked, explain=True, most=3)
        assert registry.why(asked, registry_module._DEFAULTS, found.reasons) == fresh.why(
            asked, registry_module._DEFAULTS, wanted.reasons
        )
    assert len(outcomes) == 9, "every cache served, and sometimes none"


def test_a_cache_keeps_few_of_the_constants_that_queries_compared_with() -> None:
    registry = Registry()
    registry.put(cache("one", "ab"))
    for low in range(2000):
        asked = block("ab", low=low)
        assert registry.decide(replace(asked, limit=low + 1)).rewrite is not None
    remembered = registry._plans["one"].context._canonical
    assert len(remembered) < 200


def test_what_was_found_out_before_a_change_is_not_kept_after_it() -> None:
    changes = Changes()
    memory: Remembered[list[str]] = Remembered(changes, capacity=2)
    since = changes.now
    changes.note(["a"])  # while somebody still decides by what was there
    late = memory.keep("key", ("a", "b"), since, list)
    assert late is not None and memory.get("key", ("a", "b")) is None
    fresh = memory.keep("key", ("a", "b"), changes.now, list)
    assert fresh is not None and memory.get("key", ("a", "b")) is fresh
    assert memory.keep("key", ("a", "b"), since, list) is None, "newer knowledge is there"
    changes.note(["c"])
    assert memory.get("key", ("a", "b")) is fresh
    assert memory.keep("key", ("a", "b"), changes.now, list) is fresh
