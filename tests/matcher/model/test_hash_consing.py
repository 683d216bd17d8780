"""What may be one object and what may not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.population import plans
from matcher.index.index_keys import mentioned
from matcher.model.codec import decode_plan, encode_plan
from matcher.model.expr import Agg, Call, Col, Expr, Lit
from matcher.model.hash_consing import Sharing
from matcher.model.ir import Block, OuterJoin, Output, Relation, Side
from matcher.normalize.prepared_plan import PreparedPlan
from matcher.normalize.relation_numbers import Interner
from matcher.normalize.stored_plan import plan_definition

COLUMN = Col(0, "a", "int")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (COLUMN, Col(0, "a", "int", nullable=False)),
        (COLUMN, Col(0, "a", "bigint")),
        (COLUMN, Col(1, "a", "int")),
        (Lit(1, "int"), Lit(True, "int")),
        (Lit(None, "string"), Lit("None", "string")),
        (Lit(0.0, "double"), Lit(-0.0, "double")),
        (Call("neg", (COLUMN,), "int"), Call("neg", (COLUMN,), "int", nullable=False)),
        (Call("f", (COLUMN,), "int", params=("x",)), Call("f", (COLUMN,), "int")),
        (Agg("sum", (COLUMN,), "bigint"), Agg("sum", (COLUMN,), "bigint", distinct=True)),
        (Agg("f", (COLUMN, COLUMN), "int"), Agg("f", (COLUMN,), "int", filter=COLUMN)),
    ],
    ids=repr,
)
def test_noop_what_differs_in_any_attribute_stays_apart(one: Expr, other: Expr) -> None:
    share = Sharing()
    share(COLUMN)
    assert share(one) is one and share(other) is other


def test_a_column_that_may_be_null_elsewhere_does_not_pass_for_one_that_may_not() -> None:
    share = Sharing()
    strict = share(Col(0, "a", "int", nullable=False))
    loose = share(Col(0, "a", "int"))
    one, other = (Call("neg", (c,), "int", nullable=False) for c in (strict, loose))
    assert one == other
    assert share(one) is one and share(other) is other


def test_what_became_of_an_object_is_told_for_it_alone_and_by_place() -> None:
    share = Sharing()
    loose, strict = COLUMN, Col(0, "a", "int", nullable=False)
    made = [Col(number, "a", "int") for number in range(4)]
    found = [
        share.moved(expr, place, lambda _, new=new: new)
        for (expr, place), new in zip(
            ((loose, (7,)), (loose, (8,)), (strict, (7,)), (loose, (7,))), made, strict=True
        )
    ]
    assert [made.index(expr) for expr in found] == [0, 1, 2, 0]


def test_the_order_that_a_full_join_gives_to_a_coalesce_stays_in_its_plan() -> None:
    a, b = (Col(rel, "k", "int") for rel in (0, 1))
    on = Call("eq", (a, b), "boolean")
    swapped = Call("coalesce", (b, a), "int")
    relations = (Relation("file:/a", "a"), Relation("file:/b", "b"))
    block = Block(relations, (), (Output("k", swapped),))
    full = OuterJoin("full", (0, 1), (on,), (), (Side((0,), ()), Side((1,), ())))
    share, intern = Sharing(), Interner()
    plain = plan_definition("plain", replace(block, predicates=(on,)))
    hung = plan_definition("hung", replace(block, outer=(full,)))
    for first, second in ((plain, hung), (hung, plain)):
        for plan in (first, second):
            ((stored, _),) = PreparedPlan(plan, intern, share).columns
            assert stored == (swapped if plan is plain else Call("coalesce", (a, b), "int"))


def test_noop_what_one_plan_knows_of_null_is_not_told_of_the_column_of_another() -> None:
    share, intern = Sharing(), Interner()
    loose, strict = (share(Col(0, "a", "int", nullable=n)) for n in (True, False))
    positive = Call("gt", (strict, Lit(0, "int")), "boolean", nullable=False)
    block = Block((Relation("file:/a", "a"),), (positive,), (Output("a", loose),))
    for said in (block, replace(block, predicates=())):
        ((stored, _),) = PreparedPlan(plan_definition("c", said), intern, share).columns
    assert stored.nullable


def test_plans_of_the_same_tables_share_all_that_they_say_alike() -> None:
    share, intern = Sharing(), Interner()
    first, second = (decode_plan(encode_plan(p), share) for p in list(plans(2)))
    assert first == next(iter(plans(1)))
    pairs = zip(first.predicates, second.predicates, strict=True)
    assert first.predicates and all(a is b for a, b in pairs)
    prepared = [PreparedPlan(plan, intern, share) for plan in (first, second)]
    mine, theirs = (p.predicates for p in prepared)
    assert all(a is b for a, b in zip(mine, theirs, strict=True))
    alone = PreparedPlan(first, Interner())
    assert mentioned(alone) == mentioned(prepared[0]) and alone.predicates == mine
