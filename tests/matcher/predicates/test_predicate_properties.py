"""Random predicate pairs over rows with NULLs and extremes: what is said to be implied must hold,
and what is filtered after must give the query's rows.

`PREDICATE_EXAMPLES=20000` asks for more than the quick setting of the suite.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from functools import reduce
from itertools import product
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from matcher.index.registry import Registry
from matcher.model.expr import TRUE, Agg, Call, Col, Expr, Lit, columns, transform
from matcher.model.ir import Block, CachePlan, Measure, Output, Relation, StoredColumn
from matcher.predicates.context import PredicateContext
from matcher.predicates.implication import implies
from tests.matcher.evaluate import evaluate

EXAMPLES = int(os.environ.get("PREDICATE_EXAMPLES", "60"))
QUICK = settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
BIG = (1 << 31) - 1


def days(text: str) -> int:
    return (date.fromisoformat(text) - date(1970, 1, 1)).days


NUMBERS = [None, -BIG - 1, -1, 0, 1, 2, 3, BIG]
COLUMNS: dict[str, tuple[str, list[Any]]] = {
    "a": ("int", NUMBERS),
    "b": ("int", NUMBERS),
    "c": ("decimal(3,1)", [None, *map(Decimal, ("-99.9", "-0.1", "0.0", "0.1", "1.0", "99.9"))]),
    "p": ("double", [None, float("-inf"), -1.5, -0.0, 0.0, 1.5, float("inf"), float("nan")]),
    "n": (
        "string",
        [None, "", "a", "ab", "abc", "ab%", "a_c", "b", "\ud7ff", "a\U0010ffff", "\U0010ffffz"],
    ),
    "d": (
        "date",
        [None, *map(days, ("0001-01-01", "1993-12-31", "1994-01-01", "1994-01-31", "1994-02-01",
                           "1994-12-31", "1995-01-01", "9999-12-31"))],
    ),
    "o": ("boolean", [None, True, False]),
}  # fmt: skip
COLS = {name: Col(0, name, kind) for name, (kind, _) in COLUMNS.items()}


def call(op: str, *args: Expr, params: tuple[str, ...] = (), kind: str = "boolean") -> Call:
    return Call(op, args, kind, params=params)


def constants(name: str) -> st.SearchStrategy[Lit]:
    kind, values = COLUMNS[name]
    known = [v for v in values if v is not None]
    return st.sampled_from(known).map(lambda v: Lit(v, kind))


def comparisons(name: str) -> st.SearchStrategy[Expr]:
    column = COLS[name]
    ops = st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge", "nseq"])
    same = [c for c in COLS.values() if c.type == column.type and c != column]
    other: st.SearchStrategy[Expr] = constants(name)
    if same:
        other = other | st.sampled_from(same)
    lists = st.lists(constants(name) | st.just(Lit(None, column.type)), min_size=1, max_size=4)
    return (
        st.builds(call, ops, st.just(column), other)
        | st.builds(call, ops, constants(name), st.just(column))
        | st.builds(call, st.sampled_from(["isnull", "isnotnull"]), st.just(column))
        | lists.map(lambda items: call("in", column, *items))
    )


def patterns() -> st.SearchStrategy[Expr]:
    texts = st.sampled_from(
        ["a%", "%", "", "ab", "a_c", "a\\_c", "a\\%%", "%b%", "ab\\%", "_", "a%c", "%c", "b%"]
    )
    column = COLS["n"]
    starts = st.sampled_from(["a", "ab", "\ud7ff", "\U0010ffff", "b"])
    return (
        texts.map(lambda t: call("like", column, Lit(t, "string")))
        | st.sampled_from(["a!_c", "a!%%"]).map(
            lambda t: call("like", column, Lit(t, "string"), params=("!",))
        )
        | st.builds(
            lambda op, t: call(op, column, Lit(t, "string")),
            st.sampled_from(["startswith", "endswith", "contains"]),
            starts,
        )
    )


def functions() -> st.SearchStrategy[Expr]:
    """Comparisons of functions that the matcher reads through, and of some that it must not."""
    ops = st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge", "nseq"])
    day, text, number = COLS["d"], COLS["n"], COLS["a"]
    years = st.sampled_from([1, 1993, 1994, 1995, 9999]).map(lambda v: Lit(v, "int"))
    months = st.sampled_from([1, 2, 12]).map(lambda v: Lit(v, "int"))
    firsts = constants("d")
    unit = st.sampled_from(["YEAR", "MONTH"]).map(lambda u: Lit(u, "string"))
    short = st.sampled_from(["", "a", "ab", "b", "\ud7ff"]).map(lambda t: Lit(t, "string"))
    wide = st.sampled_from(["0.50", "1.00", "-1.25", "2147483647.00", "3000000000.00"])
    halves = st.sampled_from([0.5, 1.0, float("nan"), float("inf"), float("-inf"), -1.5, 3e9])
    return (
        st.builds(call, ops, st.just(call("year", day, kind="int")), years)
        | st.builds(call, ops, st.just(call("month", day, kind="int")), months)
        | st.builds(call, ops, unit.map(lambda u: call("trunc", day, u, kind="date")), firsts)
        | st.builds(
            lambda op, size, t: call(
                op, call("substring", text, Lit(1, "int"), Lit(size, "int"), kind="string"), t
            ),
            ops, st.integers(1, 2), short,
        )
        | st.builds(
            lambda op, v: call(
                op, call("cast", number, kind="decimal(12,2)"), Lit(Decimal(v), "decimal(12,2)")
            ),
            ops, wide,
        )
        | st.builds(
            lambda op, v: call(op, call("cast", number, kind="double"), Lit(v, "double")),
            ops, halves,
        )
    )  # fmt: skip


def leaves(names: list[str]) -> st.SearchStrategy[Expr]:
    parts: list[st.SearchStrategy[Expr]] = [comparisons(name) for name in names]
    parts.append(st.sampled_from([TRUE, Lit(False, "boolean"), Lit(None, "boolean")]))
    if "n" in names:
        parts.append(patterns())
    if "d" in names:
        parts.append(functions())
    if "o" in names:
        parts.append(st.just(COLS["o"]))
    if "p" in names:
        parts.append(st.just(call("isnan", COLS["p"])))
    return reduce(lambda x, y: x | y, parts)


def trees(names: list[str]) -> st.SearchStrategy[Expr]:
    flags = st.sampled_from([TRUE, Lit(False, "boolean")])
    combine: Callable[..., Expr] = call
    return st.recursive(
        leaves(names),
        lambda inner: (
            st.builds(combine, st.sampled_from(["and", "or"]), inner, inner)
            | inner.map(lambda p: call("not", p))
            | inner.map(lambda p: call("isnull", p))
            | st.builds(lambda p, flag: call("nseq", p, flag), inner, flags)
            | st.builds(lambda p, flag: call("coalesce", p, flag), inner, flags)
            | st.builds(lambda c, v, e: call("case", c, v, e), inner, inner, inner)
            | st.builds(lambda c, v: call("case", c, v), inner, inner)
        ),
        max_leaves=5,
    )


GROUPS = [
    ["a"],
    ["a", "b"],
    ["a", "o"],
    ["n"],
    ["d"],
    ["d", "n", "a"],
    ["p"],
    ["c", "a"],
    ["p", "o"],
]
worlds = st.sampled_from(GROUPS).flatmap(
    lambda names: st.tuples(st.lists(trees(names), max_size=3), st.lists(trees(names), max_size=2))
)


def rows(names: list[str]) -> list[dict[str, Any]]:
    return [
        dict(zip(names, values, strict=True))
        for values in product(*(COLUMNS[name][1] for name in names))
    ]


def read_by(predicates: list[Expr]) -> list[str]:
    return sorted({column.name for p in predicates for column in columns(p)})


def passing(predicates: list[Expr], table: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [r for r in table if all(evaluate(p, r) is True for p in predicates)]


@QUICK
@given(worlds)
def test_an_implied_predicate_holds_in_every_row_that_passes(world) -> None:
    query, view = world
    table = rows(read_by(query + view))
    context = PredicateContext(query)
    for predicate in view:
        if implies(context, predicate):
            for row in passing(query, table):
                assert evaluate(predicate, row) is True, (query, predicate, row)


@QUICK
@given(worlds)
def test_what_is_known_of_columns_is_true_of_every_row(world) -> None:
    query = world[0]
    context = PredicateContext(query)
    names = read_by(query)
    left = passing(query, rows(names))
    for name in names:
        operand = context.canonical(COLS[name])
        pinned = context.constant(operand)
        for row in left:
            if pinned is not None:
                assert row[name] == pinned.value, (query, pinned)
            if context.never_null(operand):
                assert row[name] is not None, query


@QUICK
@given(worlds)
def test_a_rewrite_over_the_views_rows_gives_the_querys_rows(world) -> None:
    query, view = world
    names = read_by(query + view)
    table = rows(names)
    relation = Relation("t", "t")
    stored = tuple(StoredColumn(f"s_{n}", COLS[n]) for n in names)
    plan = CachePlan("v", (relation,), tuple(view), keys=None, columns=stored)
    outputs = tuple(Output(n, COLS[n]) for n in names)
    registry = Registry()
    registry.put(plan)
    rewrite = registry.decide(Block((relation,), tuple(query), outputs)).rewrite
    if rewrite is None:
        return
    kept = [{f"s_{n}": r[n] for n in names} for r in passing(view, table)]
    found = [
        tuple(evaluate(o.expr, r) for o in rewrite.outputs)
        for r in passing(list(rewrite.filters), kept)
    ]
    wanted = [tuple(r[n] for n in names) for r in passing(query, table)]
    assert sorted(map(repr, found)) == sorted(map(repr, wanted)), (query, view, rewrite.filters)


@QUICK
@given(st.sampled_from(["YEAR", "MONTH"]), st.lists(trees(["d"]), min_size=1, max_size=2))
def test_a_filter_asked_of_a_stored_function_keeps_the_same_rows(unit: str, query) -> None:
    """The view keeps `year(d)` or `trunc(d, 'MONTH')` and not d; filters on d must be exact."""
    day = COLS["d"]
    bucket = (
        call("year", day, kind="int")
        if unit == "YEAR"
        else call("trunc", day, Lit("MONTH", "string"), kind="date")
    )
    relation = Relation("t", "t")
    stored = (
        StoredColumn("k", bucket),
        StoredColumn("s_n", COLS["n"]),
        StoredColumn("s_a", COLS["a"]),
    )
    registry = Registry()
    registry.put(CachePlan("v", (relation,), (), keys=None, columns=stored))
    block = Block((relation,), tuple(query), (Output("k", bucket),))
    rewrite = registry.decide(block).rewrite
    if rewrite is None:
        return
    names = sorted({"d", *read_by(query)})
    table = rows(names)
    kept = [{"k": evaluate(bucket, r), **{f"s_{n}": r[n] for n in names}} for r in table]
    found = [evaluate(rewrite.outputs[0].expr, r) for r in passing(list(rewrite.filters), kept)]
    wanted = [evaluate(bucket, r) for r in passing(query, table)]
    assert sorted(map(repr, found)) == sorted(map(repr, wanted)), (query, rewrite.filters)


def other_constants(predicate: Expr, pick: Callable[[list[Any]], Any]) -> Expr:
    """The predicate with each constant that a column is compared with replaced by another."""
    known = {kind: [v for v in values if v is not None] for kind, values in COLUMNS.values()}

    def visit(node: Expr) -> Expr | None:
        if isinstance(node, Lit) and node.value is not None and node.type in known:
            return Lit(pick(known[node.type]), node.type)
        return None

    return transform(predicate, visit)


@QUICK
@given(worlds, st.randoms(use_true_random=False), st.booleans())
def test_a_remembered_decision_is_right_for_the_next_constants(world, random, grouped) -> None:
    """The same registry is asked again with other constants: what it fills in must be right."""
    query, view = world
    again = [other_constants(p, random.choice) for p in query]
    names = read_by(query + view) or ["a"]
    relation = Relation("t", "t")
    stored = tuple(StoredColumn(f"s_{n}", COLS[n]) for n in names)
    outputs = tuple(Output(n, COLS[n]) for n in names)
    counted = Agg("count", (), "bigint", nullable=False)
    plan = CachePlan("v", (relation,), tuple(view), keys=None, columns=stored)
    keys: tuple[Expr, ...] | None = None
    if grouped:
        keys = tuple(COLS[n] for n in names)
        outputs = (*outputs, Output("rows", counted))
        measure = Measure("__rows", counted, hidden=True)
        plan = CachePlan("v", (relation,), tuple(view), keys=stored, measures=(measure,))
    registry = Registry()
    registry.put(plan)
    table = rows(names)
    kept = [{f"s_{n}": r[n] for n in names} for r in passing(view, table)]
    for predicates in (query, again, query):
        rewrite = registry.decide(Block((relation,), tuple(predicates), outputs, keys)).rewrite
        if rewrite is None:
            continue
        # each row is its own group, so that the rows of a view are those of a grouped one
        found = [
            tuple(evaluate(o.expr, r) for o in rewrite.outputs[: len(names)])
            for r in passing(list(rewrite.filters), kept)
        ]
        wanted = [tuple(r[n] for n in names) for r in passing(predicates, table)]
        assert sorted(map(repr, found)) == sorted(map(repr, wanted)), (predicates, rewrite)
