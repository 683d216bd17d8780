"""More guards asked directly: no text reaches them, or what they keep out shows only in a decision
that is remembered."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from sqlglot import exp

from cachemgr.text import offline
from matcher.index.registry import Registry
from matcher.model.errors import NotSupported, SqlInputError
from matcher.model.expr import FALSE, TRUE, Agg, Call, Col, Expr, Lit
from matcher.model.ir import Block, MatchOptions, Output, Relation, StoredColumn
from matcher.model.reasons import ReasonCode
from matcher.normalize.stored_plan import plan_definition
from matcher.predicates.context import PredicateContext
from matcher.predicates.domains import (
    EVERYTHING,
    NAN,
    Domain,
    Interval,
    literal_of,
    point,
    unscaled,
)
from matcher.predicates.implication import implies
from matcher.render.select import render_rewrite
from matcher.rules.attempt import PlanAttempt, ViewAttempt, spell
from matcher.rules.coarsen_time import coarsen_time
from matcher.rules.filter_by_image import as_predicate
from matcher.sql.expressions.expr import ExprBuilder
from matcher.sql.expressions.functions import call_function
from matcher.sql.expressions.scope import Scope
from matcher.sql.expressions.types import TextSettings
from matcher.sql.reader import parse_query
from matcher.sql.schema import Schema
from tests.matcher.fixture_cases import FOLDER

SCHEMA = Schema.parse((FOLDER / "_schema.sql").read_text())
T, K, V = Col(0, "t", "timestamp"), Col(0, "k", "int", False), Col(0, "v", "int")
SPAN = Col(0, "s", "interval day to second")
TABLE = (Relation("t", "t"),)


def test_points_are_no_more_than_asked_for() -> None:
    three = Domain((point("a"), point("b"), point("c")))
    assert three.points(3) == ("a", "b", "c")
    assert three.points(2) is None
    assert Domain((Interval(0, True, 9, True),)).points(9) is None


def test_what_has_no_constant() -> None:
    assert literal_of(NAN, "double") is None
    assert literal_of(None, "int") is None
    assert unscaled(Decimal("1.234"), 2) is None
    assert unscaled(Decimal("NaN"), 2) is None


def test_no_predicate_says_that_any_value_is_right() -> None:
    assert as_predicate(Col(0, "s", "string"), EVERYTHING) is None


def test_what_holds_of_nan_is_not_worked_out() -> None:
    x = Col(0, "x", "double")
    nan = PredicateContext((Call("eq", (x, Lit(float("nan"), "double")), "boolean"),))
    assert not implies(nan, Call("lt", (x, Lit(5.0, "double")), "boolean"))


def test_no_more_than_64_combinations_are_worked_out() -> None:
    def within(count: int) -> PredicateContext:
        sides = [
            Call(op, (Col(0, name, "int"), Lit(bound, "int")), "boolean")
            for name in "ab"
            for op, bound in (("ge", 1), ("le", count))
        ]
        return PredicateContext(sides)

    total = Call("mul", (Col(0, "a", "int"), Col(0, "b", "int")), "int")
    positive = Call("gt", (total, Lit(0, "int")), "boolean")
    assert implies(within(8), positive)
    assert not implies(within(9), positive)


def test_a_date_pattern_where_a_day_was_skipped() -> None:
    """The last day of December 1844 is no day of Manila: its midnight is one of 1845."""
    last = Call("last_day", (T,), "date")
    wanted = Call("date_format", (T, Lit("yyyy", "string")), "string")
    for zone, found in (("Asia/Manila", False), ("Europe/Berlin", True)):
        shared = PlanAttempt(None, None, MatchOptions(time_zone=zone), PredicateContext(()))  # type: ignore[arg-type]
        view = ViewAttempt(shared, available={last: StoredColumn("last", last)})
        assert (coarsen_time(view, wanted) is not None) is found


def test_days_added_in_another_unit() -> None:
    def build(node: exp.Expr) -> Expr:
        return Col(0, "d", "date") if isinstance(node, exp.Column) else Lit(1, "int")

    for unit, known in (("DAY", True), ("MONTH", False)):
        call = exp.TsOrDsAdd(this=exp.column("d"), expression=exp.Literal.number(1), unit=unit)
        if known:
            assert call_function(call, build, TextSettings()).type == "date"
            continue
        with pytest.raises(NotSupported, match="another unit than days"):
            call_function(call, build, TextSettings())


@pytest.mark.parametrize("text", ["(VALUES (1))", "SELECT '${x}' AS r FROM sales"])
def test_a_whole_text_that_is_no_block(text: str) -> None:
    assert parse_query(text, SCHEMA).reasons


def test_a_computed_unit_gives_no_block_by_itself() -> None:
    parsed = parse_query("SELECT TRUNC(sold_on, LOWER('MM')) AS r FROM sales", SCHEMA)
    assert parsed.roots[0].block is None


def test_a_text_that_is_nested_too_deeply() -> None:
    text = "SELECT " + "(" * 4000 + "1" + ")" * 4000 + " AS r"
    with pytest.raises(SqlInputError, match="nested too deeply"):
        parse_query(text, SCHEMA)


def _refused(agg: Agg, stored: tuple[Agg, ...], grouped: bool = True) -> list[ReasonCode]:
    outputs = [Output("k", K)]
    if grouped:
        outputs += [Output(f"m{i}", measure) for i, measure in enumerate(stored)]
    else:
        outputs += [Output(f"c{i}", arg) for i, arg in enumerate(agg.args)]
    keys = (K, V) if grouped else None
    registry = Registry()
    registry.put(plan_definition("c", Block(TABLE, (), tuple(outputs), keys)))
    query = Block(TABLE, (), (Output("k", K), Output("r", agg)), (K,))
    decision = registry.decide(query, MatchOptions(approximate_floats=True), explain=True)
    assert decision.rewrite is None
    return [reason.code for c in decision.candidates for reason in c.reasons]


COUNT = Agg("count", (SPAN,), "bigint", False)
SUM = Agg("sum", (SPAN,), SPAN.type)


@pytest.mark.parametrize(
    ("agg", "stored"),
    [
        (Agg("avg", (SPAN,), SPAN.type), (SUM, COUNT)),
        (Agg("mode", (V,), "int"), (Agg("sum", (V,), "bigint"),)),
    ],
)
def test_what_adds_up_in_no_way_that_is_known(agg: Agg, stored: tuple[Agg, ...]) -> None:
    assert _refused(agg, stored) == [ReasonCode.AGG_NOT_DERIVABLE]


def test_a_sum_of_intervals() -> None:
    assert _refused(Agg("sum", (SPAN,), SPAN.type), (SUM,)) == [ReasonCode.AGG_NOT_DERIVABLE]


def test_an_aggregate_that_is_not_known_from_rows() -> None:
    found = _refused(Agg("some_list", (V,), "array<int>"), (), grouped=False)
    assert found == [ReasonCode.AGG_NOT_DERIVABLE]


def test_an_average_of_different_keys_that_a_joined_table_repeats() -> None:
    """However few rows the cache has, a joined table brings values of its own."""
    schema = "CREATE TABLE f (k INT, g INT); CREATE TABLE d (g INT, x INT)"
    cache = "CREATE RELATIONAL CACHE c AS SELECT k, g, COUNT(*) AS n FROM f GROUP BY k, g"
    workspace = offline.prepare(schema, cache)
    registry = Registry()
    registry.put(replace(workspace.plans["c"], rows=3))
    query = "SELECT k, AVG(DISTINCT x) AS r FROM f JOIN d ON f.g = d.g GROUP BY k"
    block = parse_query(query, workspace.schema).roots[0].block
    assert block is not None
    decision = registry.decide(block, explain=True)
    assert decision.rewrite is None
    codes = {reason.code for c in decision.candidates for reason in c.reasons}
    assert ReasonCode.AVG_NOT_EXACT in codes


def test_a_constant_that_stands_in_two_places_is_not_filled_in() -> None:
    """The first query names its constant once and uses it thrice; the second has three."""
    cache = (
        "CREATE RELATIONAL CACHE c AS SELECT store_id, qty, SUM(units) AS u FROM sales "
        "GROUP BY store_id, qty"
    )
    workspace = offline.prepare((FOLDER / "_schema.sql").read_text(), cache)
    shared = (
        "SELECT store_id, SUM(units) AS u FROM (SELECT store_id, units, qty, qty < 5 AS p "
        "FROM sales) s WHERE p AND (p OR NOT p OR qty IS NULL) GROUP BY store_id"
    )
    apart = (
        "SELECT store_id, SUM(units) AS u FROM sales "
        "WHERE qty < 6 AND (qty < 7 OR NOT qty < 8 OR qty IS NULL) GROUP BY store_id"
    )
    blocks = [parse_query(text, workspace.schema).roots[0].block for text in (shared, apart)]
    texts = []
    for block in blocks:
        assert block is not None
        for _ in range(2):
            found = workspace.registry.decide(block).rewrite
            assert found is not None
        texts.append(render_rewrite(found, "c"))
    assert "`qty` < 5" in texts[0] and "`qty` < 6" in texts[1]


def test_one_constant_of_two_conditions_is_not_filled_in() -> None:
    """One condition said twice is one filter; two that look alike may differ in their constants."""
    g, h, v = (Col(0, name, "bigint", False) for name in "ghv")
    total = Output("s", Agg("sum", (v,), "bigint"))
    registry = Registry()
    stored = Block(TABLE, (), (Output("g", g), Output("h", h), total), (g, h))
    registry.put(plan_definition("c", stored))
    ten = Lit(10, "bigint")
    for first, second in ((ten, ten), (Lit(7, "bigint"), Lit(9, "bigint"))):
        both = tuple(Call("le", (h, bound), "boolean") for bound in (first, second))
        query = Block(TABLE, both, (Output("g", g), total), (g,))
        for _ in range(2):
            found = registry.decide(query).rewrite
            assert found is not None
            assert f"(h <= {first.value}L)" in {spell(part) for part in found.filters}


def test_a_number_with_a_suffix_that_stands_nowhere_in_the_text() -> None:
    """Whether `-128` overflows follows from how the number was written, and that is not known."""
    made = exp.Neg(this=exp.cast(exp.Literal.number(128), "TINYINT"))
    with pytest.raises(NotSupported):
        ExprBuilder(Scope(""), TextSettings()).build(made)


def test_true_and_false_are_what_they_say() -> None:
    assert implies(PredicateContext((FALSE,)), Call("gt", (V, Lit(1, "int")), "boolean"))
    assert implies(PredicateContext(()), TRUE)


def test_an_argument_that_is_spelled_like_a_function() -> None:
    parsed = parse_query("SELECT SOUNDEX('bigint') AS r FROM sales", SCHEMA)
    assert [r.detail for r in parsed.roots[0].reasons] == ["function soundex is not known"]


def test_the_keys_of_a_full_join_of_two_types() -> None:
    schema = Schema.parse("CREATE TABLE a (k INT, x INT); CREATE TABLE b (k BIGINT, y INT)")
    parsed = parse_query("SELECT x, y FROM a FULL JOIN b USING (k)", schema)
    details = [reason.detail for reason in parsed.roots[0].reasons]
    assert "FULL JOIN … USING (k) of int and bigint" in details


def test_a_covariance_of_which_a_part_is_not_stored() -> None:
    x, y = Col(0, "x", "double"), Col(0, "y", "double")
    agg = Agg("covar_pop", (x, y), "double")
    outputs = (Output("k", K), Output("m", agg))
    plan = plan_definition("c", Block(TABLE, (), outputs, (K, V)))
    lacking = tuple(m for m in plan.measures if not m.hidden)
    query = Block(TABLE, (), (Output("k", K), Output("r", agg)), (K,))
    for measures, hit in ((plan.measures, True), (lacking, False)):
        registry = Registry()
        registry.put(replace(plan, measures=measures))
        found = registry.decide(query, MatchOptions(approximate_floats=True), explain=True)
        assert (found.rewrite is not None) is hit
