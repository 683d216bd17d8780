"""What does not merge, and what is not stored as partial rows, with the reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from matcher.examples import block_of, plan_of
from matcher.index.registry import Registry
from matcher.model.expr import FALSE, TRUE, Agg, Call, Col, Lit
from matcher.model.ir import (
    Block,
    CachePlan,
    MatchOptions,
    OuterJoin,
    Output,
    Relation,
    Rewrite,
    SortKey,
)
from matcher.model.reasons import Reason, ReasonCode
from matcher.normalize.stored_plan import plan_definition
from matcher.partials.collapse import merged_rows, net_partials, render_collapsed
from matcher.partials.linear import why_not_linear
from matcher.partials.merge import merge
from matcher.partials.partial_rows import why_not_partials
from matcher.partials.split import States, split

T = Relation("default.t", "t")
MERGE, ADDED, SIGNED = "NOT_MERGEABLE", False, True
K, X, D = Col(0, "k", "int"), Col(0, "x", "bigint"), Col(0, "d", "double")
LONG, LESS = Col(0, "l", "decimal(29,2)"), Col(0, "m", "decimal(28,2)")
S = Col(0, "sketch", "binary")
TEXT = Col(0, "s", "string collate UNICODE_CI")


def grouped(*aggs: Agg, keys: tuple[Col, ...] = (K,)) -> Block:
    outputs = tuple(Output(f"o{i}", e) for i, e in enumerate((*keys, *aggs)))
    return Block((T,), (), outputs, group_keys=keys)


def refusal(block: Block, options: MatchOptions | None = None) -> str:
    """The code of the refusal by the split or else the merge; empty if there is none."""
    options = options or MatchOptions()
    states = split(block, options)
    found = states if isinstance(states, Reason) else merge(block, states, options)
    return found.code.value if isinstance(found, Reason) else ""


@pytest.mark.parametrize(
    ("agg", "code"),
    [
        (Agg("try_sum", (X,), "bigint"), "NOT_MERGEABLE"),
        (Agg("mode", (K,), "int"), "NOT_MERGEABLE"),
        (Agg("collect_list", (K,), "array<int>"), "NOT_MERGEABLE"),
        (Agg("wrapping_sum", (X,), "bigint"), "NOT_MERGEABLE"),
        (Agg("spark:Custom", (X,), "bigint"), "NOT_MERGEABLE"),
        (Agg("collect_list", (X,), "array<bigint>", distinct=True), "NOT_MERGEABLE"),
        (Agg("sum", (Col(0, "i", "interval day"),), "interval day"), "NOT_MERGEABLE"),
        (Agg("sum", (D,), "double"), "FLOAT_NOT_EXACT"),
        (Agg("avg", (D,), "double"), "FLOAT_NOT_EXACT"),
        (Agg("sum", (D,), "double", distinct=True), "FLOAT_NOT_EXACT"),
        (Agg("var_pop", (D,), "double"), "FLOAT_NOT_EXACT"),
        (Agg("corr", (D, D), "double"), "FLOAT_NOT_EXACT"),
        (Agg("kurtosis", (D,), "double"), "FLOAT_NOT_EXACT"),
        (Agg("sum", (LONG,), "decimal(38,2)"), "MAY_OVERFLOW"),
        (Agg("avg", (LONG,), "decimal(33,6)"), "MAY_OVERFLOW"),
        (Agg("sum", (LESS,), "decimal(38,2)"), ""),
        (Agg("avg", (LESS,), "decimal(32,6)"), "AVG_NOT_EXACT"),
        (Agg("avg", (X,), "double"), "AVG_NOT_EXACT"),
        (Agg("avg", (K,), "double"), "AVG_NOT_EXACT"),
        (Agg("min", (TEXT,), TEXT.type), "AGG_NOT_DERIVABLE"),
        (
            Agg("percentile", (D, Lit(0.5, "double"), Lit(1, "bigint")), "double"),
            "AGG_NOT_DERIVABLE",
        ),
        (Agg("sum", (Call("spark:ScalaUDF", (X,), "bigint"),), "bigint"), "UNSUPPORTED_EXPRESSION"),
        (Agg("hll_union_agg", (S, TRUE), "binary", False), "NOT_MERGEABLE"),
        (Agg("hll_union_agg", (S, FALSE), "binary", False), ""),
        (Agg("theta_union_agg", (S, Lit(12, "int")), "binary", False), "NOT_MERGEABLE"),
        (Agg("min", (D,), "double"), ""),
        (Agg("count", (X,), "bigint", distinct=True), ""),
    ],
    ids=repr,
)
@pytest.mark.parametrize("ansi", [True, False])
def test_aggregates(agg: Agg, code: str, ansi: bool) -> None:
    assert refusal(grouped(agg), MatchOptions(ansi=ansi)) == code


def test_floats_where_inexact_results_are_allowed() -> None:
    options = MatchOptions(approximate_floats=True)
    for func in ("sum", "avg", "var_pop", "stddev_samp", "skewness"):
        assert refusal(grouped(Agg(func, (D,), "double")), options) == ""


def test_a_group_key_of_which_any_spelling_may_be_shown() -> None:
    count = Agg("count", (), "bigint", nullable=False)
    assert refusal(grouped(count, keys=(TEXT,))) == "UNSUPPORTED_EXPRESSION"


def test_an_average_of_whole_numbers_is_exact_by_what_is_known_of_all_parts() -> None:
    block = grouped(Agg("avg", (K,), "double"), keys=(X,))
    states = split(block, MatchOptions())
    assert isinstance(states, States)
    assert states.averaged == {"c0": X, "c1": K}
    for known, merged in (((), False), (("c0",), False), (("c1",), True)):
        found = merge(block, states, MatchOptions(), exact_sums=known)
        assert isinstance(found, Rewrite) is merged


@pytest.mark.parametrize("ansi", [True, False])
def test_an_average_of_a_cache_with_finer_groups(ansi: bool) -> None:
    """The states ask it for the sum that it stores for its own AVG."""
    stored = plan(Agg("avg", (X,), "double"), keys=(K, LESS))
    hidden = next(m.name for m in stored.measures if m.agg.func == "try_sum")
    options = MatchOptions(ansi=ansi)
    states = split(grouped(Agg("avg", (X,), "double")), options)
    assert isinstance(states, States)
    for known in ((), (hidden,)):
        registry = Registry()
        registry.put(replace(stored, exact_sums=frozenset(known)))
        found = registry.decide(states.block, options).rewrite
        assert (found is not None) is bool(known)


def test_a_full_join() -> None:
    other = Relation("default.u", "u")
    join = OuterJoin("full", (0, 1), (Call("eq", (K, Col(1, "k", "int")), "boolean"),))
    block = Block((T, other), (), (Output("k", K),), outer=(join,))
    assert refusal(block) == "NOT_MERGEABLE"
    assert "in a FULL JOIN" in reason_of(why_not_linear(block, 0)).detail


def test_grouping_sets_with_a_constant_as_key() -> None:
    count = Output("n", Agg("count", (), "bigint"))
    block = Block((T,), (), (count,), (K, Lit(1, "int")), ((0, 1), (0,)))
    assert refusal(block) == "GROUPING_SETS_IN_QUERY"


def test_a_global_aggregate_that_shows_no_aggregate() -> None:
    block = Block((T,), (), (Output("one", Lit(1, "int")),), group_keys=())
    assert refusal(block) == "UNSUPPORTED_EXPRESSION"


def reason_of(found: Reason | None) -> Reason:
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("query", "not_linear"),
    [
        ("SELECT qty FROM sales", ""),
        ("SELECT qty FROM sales JOIN items USING (item)", ""),
        ("SELECT qty FROM sales LEFT JOIN items USING (item)", "items"),
        ("SELECT qty FROM sales LEFT SEMI JOIN items USING (item)", "items"),
        ("SELECT qty FROM sales LEFT ANTI JOIN items USING (item)", "items"),
        ("SELECT id FROM sales s WHERE EXISTS (SELECT 1 FROM items WHERE item = s.id)", "items"),
        ("SELECT a.qty FROM sales a JOIN sales b ON a.id = b.item", "sales sales"),
        ("SELECT a.qty FROM sales a LEFT SEMI JOIN sales b ON a.id = b.item", "sales sales"),
    ],
)  # fmt: skip
def test_tables_that_a_block_is_linear_in(query: str, not_linear: str) -> None:
    block = block_of(query)
    reasons = [why_not_linear(block, i) for i in range(len(block.relations))]
    names = [r.name for r, why in zip(block.relations, reasons, strict=True) if why is not None]
    assert " ".join(names) == not_linear
    assert {why.code for why in reasons if why is not None} <= {ReasonCode.DELTA_NOT_LINEAR}


@pytest.mark.parametrize(
    ("definition", "signed", "code", "detail"),
    [
        ("SUM(qty) AS q, COUNT(*) AS n", SIGNED, "", ""),
        ("SUM(price) AS q, AVG(price) AS a", SIGNED, "", ""),
        ("BIT_XOR(item) AS b", SIGNED, "", ""),
        ("BIT_XOR(qty) AS b, COUNT(qty) AS n", SIGNED, "", ""),
        ("BIT_XOR(qty) AS b", ADDED, "", ""),
        ("BIT_XOR(qty) AS b", SIGNED, MERGE, "does not count its arguments"),
        ("MAX(qty) AS q, MIN(note) AS m, BOOL_AND(qty > 1) AS o", ADDED, "", ""),
        ("MAX(qty) AS q", SIGNED, MERGE, "rows are taken away"),
        ("BOOL_OR(qty > 1) AS q", SIGNED, MERGE, "rows are taken away"),
        ("BIT_AND(qty) AS q", SIGNED, MERGE, "rows are taken away"),
        ("HLL_SKETCH_AGG(qty) AS q", ADDED, "", ""),
        ("HLL_SKETCH_AGG(qty) AS q", SIGNED, MERGE, "rows are taken away"),
        ("COUNT(DISTINCT qty) AS q", ADDED, MERGE, "does not add up"),
        ("ANY_VALUE(qty) AS q", ADDED, MERGE, "does not follow"),
        ("MAX_BY(qty, id) AS q", ADDED, MERGE, "does not follow"),
        ("COLLECT_SET(qty) AS q", ADDED, MERGE, "does not follow"),
        ("MEDIAN(qty) AS q", ADDED, MERGE, "does not follow"),
        ("TRY_SUM(qty) AS q", ADDED, MERGE, "TRY_SUM"),
        ("SUM(ratio) AS q", ADDED, "FLOAT_NOT_EXACT", "DOUBLE"),
        ("VAR_POP(qty) AS q", ADDED, "FLOAT_NOT_EXACT", "DOUBLE"),
        ("AVG(qty) AS q", ADDED, "AVG_NOT_EXACT", "2^53"),
        ("SUM(CAST(price AS DECIMAL(29,2))) AS q", ADDED, "MAY_OVERFLOW", "one part"),
        ("AVG(CAST(price AS DECIMAL(20,2))) AS q", ADDED, "AVG_NOT_EXACT", "digits"),
        ("SELECT id, qty FROM sales", ADDED, "", ""),
        ("SELECT id, qty FROM sales", SIGNED, MERGE, "single rows"),
        ("SELECT id, qty FROM sales ORDER BY qty LIMIT 5", ADDED, MERGE, "first rows"),
        ("SELECT item FROM sales GROUP BY item ORDER BY item LIMIT 5", ADDED, MERGE, "first rows"),
    ],
)  # fmt: skip
def test_plans_as_partial_rows(definition: str, signed: bool, code: str, detail: str) -> None:
    if not definition.startswith("SELECT"):
        definition = f"SELECT item, {definition} FROM sales GROUP BY item"
    plan, options = plan_of(definition), MatchOptions()
    reason = why_not_partials(plan, options, signed=signed)
    assert (reason.code.value if reason else "") == code
    assert detail in (reason.detail if reason else "")
    if signed and plan.keys is not None and not code:
        assert "HAVING" in net_partials(plan, ["TABLE a"], ["TABLE b"], options)
    if reason is not None:
        with pytest.raises(ValueError, match=r"."):
            merged_rows(plan, ["TABLE a"], ["TABLE b"] if signed else [], options)
    if code and not signed:
        with pytest.raises(ValueError, match=r"."):
            render_collapsed(plan, "c", options)


def plan(*aggs: Agg, keys: tuple[Col, ...] = (K,)) -> CachePlan:
    return plan_definition("c", grouped(*aggs, keys=keys))


def test_an_average_of_whole_numbers_asks_for_its_sum() -> None:
    stored = plan(Agg("avg", (X,), "double"))
    hidden = next(m.name for m in stored.measures if m.agg.func == "try_sum")
    for known, code in ((set(), "AVG_NOT_EXACT"), ({hidden}, "")):
        proven = replace(stored, exact_sums=frozenset(known))
        reason = why_not_partials(proven, MatchOptions(), signed=True)
        assert (reason.code.value if reason else "") == code
    without = replace(stored, measures=tuple(m for m in stored.measures if m.name != hidden))
    assert (
        "computed from its sum"
        in reason_of(why_not_partials(without, MatchOptions(), signed=False)).detail
    )


def test_averages_of_decimals_where_quotients_keep_all_digits() -> None:
    stored = plan(Agg("avg", (Col(0, "p", "decimal(9,2)"),), "decimal(13,6)"))
    assert why_not_partials(stored, MatchOptions(), signed=True) is None
    other = MatchOptions(decimal_precision_loss=False)
    assert reason_of(why_not_partials(stored, other, signed=True)).code.value == "AVG_NOT_EXACT"


def test_groups_that_do_not_count_their_rows() -> None:
    stored = plan(Agg("max", (X,), "bigint"))
    bare = replace(stored, measures=stored.measures[:1])
    assert (
        "does not count the rows"
        in reason_of(why_not_partials(bare, MatchOptions(), signed=False)).detail
    )


def test_keys_and_extremes_under_a_collation() -> None:
    count = Agg("count", (), "bigint", nullable=False)
    for stored in (plan(count, keys=(TEXT,)), plan(Agg("min", (TEXT,), TEXT.type))):
        found = reason_of(why_not_partials(stored, MatchOptions(), signed=False))
        assert found.code is ReasonCode.NOT_MERGEABLE


def test_a_cache_with_a_full_join() -> None:
    other = Relation("default.u", "u")
    join = OuterJoin("full", (0, 1), (Call("eq", (K, Col(1, "k", "int")), "boolean"),))
    stored = replace(plan(Agg("count", (), "bigint")), relations=(T, other), outer=(join,))
    assert "FULL JOIN" in reason_of(why_not_partials(stored, MatchOptions(), signed=False)).detail


def test_the_first_rows_are_asked_of_each_part() -> None:
    block = Block((T,), (), (Output("k", K),), order_by=(SortKey(X),), limit=5, offset=2)
    states = split(block, MatchOptions())
    assert isinstance(states, States)
    assert (states.block.limit, states.block.offset, len(states.block.outputs)) == (7, None, 2)
    found = merge(block, states, MatchOptions())
    assert isinstance(found, Rewrite) and (found.limit, found.offset) == (5, 2)


def test_a_limit_without_order_is_not_asked_of_parts() -> None:
    block = Block((T,), (), (Output("k", K),), limit=5)
    states = split(block, MatchOptions())
    assert isinstance(states, States) and states.block.limit is None
