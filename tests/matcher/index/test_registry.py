"""The index proposes every cache that could serve, forgets what is dropped, and never blocks its
readers."""

from __future__ import annotations

from dataclasses import replace
from threading import Thread
from typing import Any

import pytest

from bench.population import col, query, registry_of
from matcher.index import registry as registry_module
from matcher.index.registry import Registry
from matcher.model.expr import Agg, Call, Lit
from matcher.model.ir import Block, CachePlan, Output, Relation, Rewrite
from matcher.model.reasons import Reason, ReasonCode
from matcher.normalize.normal_query import NormalQuery
from matcher.normalize.prepared_plan import PreparedPlan
from matcher.normalize.stored_plan import plan_definition
from matcher.render.select import render_rewrite

T = (Relation("file:/t", "t"),)


def simple(name: str, *keys: str, predicates: tuple = (), rows: int | None = None) -> CachePlan:
    """SELECT keys, SUM(lo_revenue) FROM t WHERE … GROUP BY keys."""
    outputs = [Output(k, _t(k)) for k in keys] + [Output("s", _revenue())]
    block = Block(T, predicates, tuple(outputs), tuple(_t(k) for k in keys))
    return replace(plan_definition(name, block), rows=rows)


def _t(name: str):
    column = col(name)
    return type(column)(0, column.name, column.type, column.nullable)


def _revenue() -> Agg:
    return Agg("sum", (_t("lo_revenue"),), "bigint")


def ask(*keys: str, predicates: tuple = ()) -> Block:
    outputs = [Output(k, _t(k)) for k in keys] + [Output("r", _revenue())]
    return Block(T, predicates, tuple(outputs), tuple(_t(k) for k in keys))


def equals(name: str, value: str) -> Call:
    return Call("eq", (_t(name), Lit(value, "string")), "boolean")


def winner(registry: Registry, block: Block, **options) -> str | None:
    found = registry.decide(block, **options).rewrite
    return None if found is None else found.cache


@pytest.mark.parametrize("count", [1, 60, 400])
def test_the_index_loses_no_candidate(count: int) -> None:
    registry = registry_of(count)
    for block in (query(), query("ASIA"), query("ASIA", 1995)):
        thorough = registry.decide(block, explain=True)
        registry.forget_decisions()
        for _ in range(2):  # first sight, then the remembered shape
            quick = registry.decide(block)
            assert quick.rewrite == thorough.rewrite


def test_remembered_shapes_follow_the_constants() -> None:
    registry = Registry()
    registry.put(simple("asia", "d_yearmonth", predicates=(equals("s_region", "ASIA"),), rows=10))
    registry.put(simple("all", "d_yearmonth", "s_region", rows=1000))
    for _ in range(2):
        for region, expected in (("ASIA", "asia"), ("AFRICA", "all"), ("EUROPE", "all")):
            block = ask("d_yearmonth", predicates=(equals("s_region", region),))
            assert winner(registry, block) == expected
            text = render_rewrite(registry.decide(block).rewrite, "`x`")
            assert (f"'{region}'" in text) == (expected == "all")


def test_a_constant_in_an_aggregate_is_part_of_the_shape() -> None:
    registry = Registry()
    doubled = Agg("sum", (Call("mul", (_t("lo_revenue"), Lit(2, "bigint")), "bigint"),), "bigint")
    key = Output("k", _t("s_region"))
    registry.put(plan_definition("c", Block(T, (), (key, Output("s", doubled)), (key.expr,))))
    tripled = Agg("sum", (Call("mul", (_t("lo_revenue"), Lit(3, "bigint")), "bigint"),), "bigint")
    for agg, hit in ((doubled, True), (tripled, False), (doubled, True)):
        block = Block(T, (), (key, Output("s", agg)), (key.expr,))
        assert (winner(registry, block) == "c") is hit


def test_the_cheapest_wins_and_the_next_one_after_a_refusal() -> None:
    registry = Registry()
    for name, rows in (("b", 10), ("a", 10), ("big", 500)):
        registry.put(simple(name, "s_region", rows=rows))
    stale = Reason(ReasonCode.STALE, "old")

    def clear(refused: set[str]):
        return lambda rewrite: stale if rewrite.cache in refused else f"checked {rewrite.cache}"

    for _ in range(2):
        assert winner(registry, ask("s_region")) == "a"
        assert winner(registry, ask("s_region"), clear=clear({"a"})) == "b"
        assert winner(registry, ask("s_region"), clear=clear({"a", "b"})) == "big"
        for explain in (False, True):
            found = registry.decide(ask("s_region"), clear=clear({"a"}), explain=explain)
            assert found.served == (found.rewrite, "checked b")
        nothing = registry.decide(ask("s_region"), clear=clear({"a", "b", "big"}))
        assert nothing.rewrite is nothing.served is None and nothing.reasons == (stale,)


def test_replace_and_drop_take_effect_at_once() -> None:
    registry = Registry()
    registry.put(simple("c", "s_region"))
    assert winner(registry, ask("s_region")) == "c"
    registry.put(simple("c", "c_region"))
    assert winner(registry, ask("s_region")) is None
    assert winner(registry, ask("c_region")) == "c"
    registry.drop("c")
    assert winner(registry, ask("c_region")) is None
    assert registry.names() == () and registry.tables() == frozenset()
    registry.drop("c")


def test_a_query_over_unknown_tables_says_so() -> None:
    registry = registry_of(10)
    block = replace(ask("s_region"), relations=(Relation("file:/else", "elsewhere"),))
    decision = registry.decide(block)
    assert decision.rewrite is None
    assert decision.reasons[0].code is ReasonCode.NO_CACHE_FOR_TABLES
    assert "elsewhere" in decision.reasons[0].detail


def test_readers_see_a_whole_registry_while_it_changes() -> None:
    registry = registry_of(50)
    failures: list[object] = []
    done = False

    def read() -> None:
        while not done:
            found = registry.decide(query()).rewrite
            if not isinstance(found, Rewrite):
                failures.append(found)

    readers = [Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for i in range(300):
        registry.put(simple(f"extra_{i % 7}", "s_region"))
        registry.drop(f"extra_{(i + 3) % 7}")
    done = True
    for reader in readers:
        reader.join()
    assert failures == []


def between(name: str, low: int, high: int) -> tuple:
    operand = _t(name)
    bounds = (("ge", low), ("le", high))
    return tuple(Call(op, (operand, Lit(v, "int")), "boolean") for op, v in bounds)


def outside(name: str, low: int, high: int) -> Call:
    operand = _t(name)
    parts = tuple(
        Call(op, (operand, Lit(v, "int")), "boolean") for op, v in (("lt", low), ("ge", high))
    )
    return Call("or", parts, "boolean")


@pytest.mark.parametrize(
    "family",
    [
        [between("d_year", 1993, 1993), between("d_year", 1992, 1997), between("d_year", 5, 5)],
        [(outside("d_year", 5, 5),), (outside("d_year", 5, 7),), (outside("d_year", 9, 2),)],
        [
            between("d_year", 1, 1) + between("d_year", 1, 1),
            between("d_year", 1, 2) + between("d_year", 3, 9),
        ],
    ],
    ids=["a range that is one value", "an OR that is always true", "the same constant twice"],
)
@pytest.mark.parametrize("keys", [("s_region",), ("s_region", "d_year")])
def test_other_constants_are_served_as_at_first_sight(
    family: list[tuple], keys: tuple[str, ...]
) -> None:
    """Each order of arrival gives what a registry without a memory gives."""
    plan = simple("c", "s_region", "d_year")
    for start in range(len(family)):
        registry = Registry()
        registry.put(plan)
        for predicates in family[start:] + family[:start]:
            fresh = Registry()
            fresh.put(plan)
            block = ask(*keys, predicates=predicates)
            first = fresh.decide(block).rewrite
            again = registry.decide(block).rewrite
            assert first is not None and again is not None
            # a condition that happens to be true of every row may stay; none may be lost
            assert set(first.filters) <= set(again.filters) <= set(predicates)
            # aggregating groups of one row again is only needless; leaving it out would be wrong
            if first.group_keys is not None:
                assert (again.outputs, again.group_keys) == (first.outputs, first.group_keys)


def test_an_empty_range_teaches_nothing_about_others() -> None:
    """A contradiction implies even `IS NULL`; the next constants must be looked at anew."""
    nobody = Call("isnull", (_nullable("k"),), "boolean")
    key, total = Output("s_region", _t("s_region")), Output("s", _revenue())
    cache = Block(T, (nobody,), (key, total), (key.expr,))
    registry = Registry()
    registry.put(plan_definition("c", cache))
    for low, high, hit in ((5, 3, None), (3, 5, None), (5, 3, None)):
        operand = _nullable("k")
        bounds = tuple(
            Call(op, (operand, Lit(v, "int")), "boolean") for op, v in (("ge", low), ("le", high))
        )
        found = registry.decide(Block(T, bounds, (key, total), (key.expr,))).rewrite
        if low <= high:
            assert found is hit, "rows with a value are not in a cache of those without"


def _nullable(name: str):
    return type(_t("s_region"))(0, name, "int", True)


def test_rows_of_a_query_are_never_looked_for_in_caches_of_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registry = registry_of(1_000)
    tried: list[str] = []
    original = registry_module.match_plan

    def counted(query: NormalQuery, plan: PreparedPlan, *rest: Any, **named: Any) -> Any:
        tried.append(plan.name)
        return original(query, plan, *rest, **named)

    monkeypatch.setattr(registry_module, "match_plan", counted)
    rows = replace(query(), outputs=(Output("d_year", col("d_year")),), group_keys=None)
    assert registry.decide(rows).rewrite is None and tried == []
    assert registry.decide(query()).rewrite is not None and tried


def test_a_name_in_another_case_is_that_of_the_cache_that_came_last() -> None:
    """A cache that is renamed, or replaced, is there by its new name before the old one goes."""
    registry = Registry()
    registry.put(simple("s.totals", "d_year"))
    registry.put(simple("s.Totals", "d_year"))
    registry.drop("s.totals")
    assert registry.spelled("S.TOTALS") == "s.Totals" and registry.names() == ("s.Totals",)
    registry.drop("s.totals")
    assert registry.spelled("s.totals") == "s.Totals"
    registry.drop("s.Totals")
    assert registry.spelled("s.totals") is None
