"""What a definition stores, and which definitions are refused with the construct's name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from matcher.model.codec import decode_plan, encode_plan
from matcher.model.errors import DefinitionNotSupported
from matcher.model.expr import Agg, Call, Col, Lit
from matcher.model.ir import Block, Output, Relation, SortKey
from matcher.normalize.stored_block import stored_block
from matcher.normalize.stored_plan import grouping_id, plan_definition
from matcher.render.select import render_stored

A, B = Col(0, "a", "int"), Col(0, "b", "string")
X, Y = Col(0, "x", "int"), Col(0, "y", "bigint", nullable=False)
T = (Relation("db.t", "t"),)
MANY = Call("gt", (Agg("sum", (X,), "bigint"), Lit(5, "bigint")), "boolean")


def agg(func: str, *args, type: str = "bigint") -> Agg:
    return Agg(func, args, type)


def block(*outputs: Output, keys=(A, B), sets=None) -> Block:
    return Block(T, (), outputs, keys, sets)


def test_hidden_columns_are_what_rolling_up_needs() -> None:
    plan = plan_definition(
        "c",
        block(
            Output("a", A),
            Output("m", agg("avg", X, type="double")),
            Output("s", agg("sum", Y)),
            Output("z", agg("max", X, type="int")),
        ),
    )
    hidden = {m.name: m.agg for m in plan.measures if m.hidden}
    assert hidden == {
        "__rows": agg("count"),
        "__sum_0": agg("sum", X),
        "__count_0": agg("count", X),
    }
    assert [(k.name, k.hidden) for k in plan.keys or ()] == [("a", False), ("__key_1", True)]
    assert plan.visible == ("a", "m", "s", "z")


def test_the_hidden_sum_of_a_big_average_cannot_fail_the_refresh() -> None:
    """Spark averages BIGINT in DOUBLE; a plain SUM beside it could overflow where AVG does not."""
    plan = plan_definition("c", block(Output("a", A), Output("m", agg("avg", Y, type="double"))))
    hidden = {m.name: m.agg.func for m in plan.measures if m.hidden}
    assert hidden["__sum_0"] == "try_sum"
    assert "TRY_SUM(t0.`y`)" in render_stored(plan, ["t"])


def test_a_visible_count_is_not_stored_twice() -> None:
    plan = plan_definition("c", block(Output("a", A), Output("b", B), Output("n", agg("count"))))
    assert [m.name for m in plan.measures] == ["n"]


def test_repeated_grouping_sets_are_stored_once_in_any_order() -> None:
    sets = ((0, 1), (0,), (1, 0), (0, 1, 0))
    plan = plan_definition("c", block(Output("a", A), Output("b", B), sets=sets))
    assert [(s.grouping_id, s.keys) for s in plan.grouping_sets] == [(0, (0, 1)), (1, (0,))]
    text = render_stored(plan, ["t"])
    assert text.count("GROUPING SETS ((t0.`a`, t0.`b`), (t0.`a`))") == 1


@pytest.mark.parametrize(
    ("keys", "count", "number"), [((0, 1, 2), 3, 0), ((), 3, 7), ((0,), 3, 3), ((2,), 3, 6)]
)
def test_grouping_ids_have_the_first_key_highest(keys: tuple, count: int, number: int) -> None:
    assert grouping_id(keys, count) == number


@pytest.mark.parametrize(
    ("definition", "code"),
    [
        (block(Output("__a", A)), "RESERVED_COLUMN"),
        (block(Output("a", A), Output("x", X)), "OUTPUT_NOT_STORED"),
        (block(Output("a", Call("add", (A, X), "bigint"))), "OUTPUT_NOT_STORED"),
        (block(Output("a", Call("spark:Foo", (A,), "int")), keys=None), "EXPRESSION_NOT_SUPPORTED"),
        (block(Output("a", A), keys=(A, Lit(1, "int"))), "CONSTANT_KEY"),
        (replace(block(Output("a", A)), limit=3), "CLAUSE_NOT_SUPPORTED"),
        (
            replace(block(Output("a", A)), order_by=(SortKey(X),), limit=3),
            "ORDER_KEY_NOT_STORED",
        ),
        (
            replace(block(Output("s", agg("sum", X)), keys=()), having=(MANY,)),
            "CLAUSE_NOT_SUPPORTED",
        ),
        (replace(block(Output("a", A), sets=((0,), ())), having=(MANY,)), "CLAUSE_NOT_SUPPORTED"),
        (
            replace(block(Output("a", A)), having=(MANY,), order_by=(SortKey(A),), limit=3),
            "CLAUSE_NOT_SUPPORTED",
        ),
        (
            replace(block(Output("a", A)), having=(Call("spark:Foo", (A,), "boolean"),)),
            "EXPRESSION_NOT_SUPPORTED",
        ),
    ],
)
def test_refused_definitions_name_the_construct(definition: Block, code: str) -> None:
    with pytest.raises(DefinitionNotSupported) as caught:
        plan_definition("c", definition)
    assert caught.value.code == code


def test_a_char_column_is_named_and_not_how_spark_reads_it() -> None:
    how = ("CharVarcharCodegenUtils", "readSidePadding", "true")
    padded = Call("spark:StaticInvoke", (A, Lit(5, "int")), "string", True, how)
    with pytest.raises(DefinitionNotSupported, match=r"MAX\(a \(CHAR\)\), which reads a CHAR col"):
        plan_definition("c", block(Output("m", Agg("max", (padded,), "string"))))


RATIO = Call("div", (agg("sum", X), agg("count", X)), "double")


def test_an_output_over_aggregates_is_computed_of_what_is_stored() -> None:
    again = Output("b", Call("add", (agg("sum", X), Lit(1, "bigint")), "bigint"))
    plan = plan_definition("c", block(Output("a", A), Output("r", RATIO), again, keys=(A,)))
    assert [(m.name, m.agg.func) for m in plan.measures if not m.hidden] == [
        ("__agg_0", "sum"),
        ("__agg_1", "count"),
    ]
    parts = (Col(0, "__agg_0", "bigint"), Col(0, "__agg_1", "bigint"))
    assert [o.name for o in plan.shown] == ["a", "r", "b"]
    assert plan.shown[1].expr == Call("div", parts, "double")
    assert plan.visible == ("a",)


def test_an_aggregate_that_is_shown_is_what_an_output_is_computed_of() -> None:
    plan = plan_definition("c", block(Output("r", RATIO), Output("n", agg("count", X)), keys=(A,)))
    parts = (Col(0, "__agg_0", "bigint"), Col(0, "n", "bigint"))
    assert plan.shown[0].expr == Call("div", parts, "double")


def test_keys_once_more_computed_and_constants() -> None:
    outputs = (
        Output("a", A),
        Output("again", A),
        Output("next", Call("add", (A, Lit(1, "int")), "int")),
        Output("one", Lit(1, "int")),
    )
    plan = plan_definition("c", block(*outputs, keys=(A,)))
    assert [k.name for k in plan.keys or ()] == ["a"]
    assert [o.expr for o in plan.shown] == [
        Col(0, "a", "int"),
        Col(0, "a", "int"),
        Call("add", (Col(0, "a", "int"), Lit(1, "int")), "int"),
        Lit(1, "int"),
    ]


def test_what_a_table_cannot_call_a_column_is_stored_under_a_name_of_ours() -> None:
    shown = (Output("a", A), Output("A", B), Output("sum(x)", agg("sum", X)), Output("", RATIO))
    plan = plan_definition("c", block(*shown))
    assert [k.name for k in plan.keys or ()] == ["a", "__col_1"]
    assert [m.name for m in plan.measures if not m.hidden] == ["__col_2", "__agg_0"]
    assert [o.name for o in plan.as_shown()] == ["a", "A", "sum(x)", ""]
    plain = plan_definition("c", block(Output("a b", A), Output("x", X), keys=None))
    assert [c.name for c in plain.columns] == ["__col_0", "x"]
    assert [o.expr for o in plain.shown] == [Col(0, "__col_0", "int"), Col(0, "x", "int")]


def test_a_definition_that_is_stored_under_its_own_names_shows_nothing_else() -> None:
    plan = plan_definition("c", block(Output("a", A), Output("s", agg("sum", X)), keys=(A,)))
    assert plan.shown == ()
    assert plan.as_shown() == (
        Output("a", Col(0, "a", "int")),
        Output("s", Col(0, "s", "bigint")),
    )


def test_which_set_a_row_is_of_is_told_by_the_number_that_is_stored() -> None:
    grouping = Call("grouping", (), "tinyint", False, ("1",))
    number = Call("add", (Call("grouping_id", (), "bigint"), Lit(1, "bigint")), "bigint")
    outputs = (Output("a", A), Output("g", grouping), Output("n", number))
    plan = plan_definition("c", block(*outputs, sets=((0, 1), (0,), ())))
    stored = Col(0, "__grouping_id", "bigint")
    test = Call("in", (stored, Lit(1, "bigint"), Lit(3, "bigint")), "boolean")
    one, zero = Lit(1, "tinyint"), Lit(0, "tinyint")
    assert plan.shown[1].expr == Call("case", (test, one, zero), "tinyint")
    assert plan.shown[2].expr == Call("add", (stored, Lit(1, "bigint")), "bigint")


def test_a_key_is_stored_once_though_distinct_names_it_twice() -> None:
    plan = plan_definition("c", block(Output("a", A), Output("b", A), keys=(A, A)))
    assert [k.name for k in plan.keys or ()] == ["a"]


def test_having_is_stored_with_what_it_is_about() -> None:
    plan = plan_definition("c", replace(block(Output("a", A), keys=(A,)), having=(MANY,)))
    assert plan.having == (MANY,) and plan.holds_some
    assert [(m.name, m.agg) for m in plan.measures if not m.hidden] == [("__agg_0", agg("sum", X))]
    assert plan.as_shown() == (Output("a", Col(0, "a", "int")),)
    assert render_stored(plan, ["t"]).endswith("HAVING (SUM(t0.`x`) > 5L)")
    assert stored_block(plan).having == (MANY,)
    encoded = encode_plan(plan)
    assert encoded["version"] == "4"  # a program that knows nothing of HAVING must not read it
    assert decode_plan(encoded) == plan
