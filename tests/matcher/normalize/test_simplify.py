"""What a block knows of NULL, put into its expressions: as Catalyst does, and no further."""

from __future__ import annotations

import pytest

from matcher.model.expr import Agg, Call, Col, Expr, Lit
from matcher.model.ir import Block
from matcher.sql.reader import parse_query
from matcher.sql.schema import Schema

SCHEMA = Schema.parse(
    "CREATE TABLE t (a INT NOT NULL, b INT, s STRING); CREATE TABLE u (k INT NOT NULL)"
)
A, B = Col(0, "a", "int", False), Col(0, "b", "int")


def block(query: str) -> Block:
    (root,) = parse_query(query, SCHEMA, None).roots
    assert root.block is not None, root.reasons
    return root.block


def first(query: str) -> Expr:
    return block(query).outputs[0].expr


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT coalesce(a, 0) AS x FROM t", A),
        ("SELECT coalesce(b, a, 0) AS x FROM t", Call("coalesce", (B, A), "int", False)),
        ("SELECT coalesce(b, 0) AS x FROM t WHERE b > 1", B),
        ("SELECT CASE WHEN a IS NULL THEN 1 ELSE a END AS x FROM t", A),
        ("SELECT CASE WHEN a IS NULL THEN a END AS x FROM t", Lit(None, "int")),
        ("SELECT a IS NULL AS x FROM t", Lit(False, "boolean")),
        ("SELECT b IS NOT NULL AS x FROM t WHERE b <> 1", Lit(True, "boolean")),
        ("SELECT COUNT(a) AS x FROM t", Agg("count", (), "bigint", False)),
        ("SELECT COUNT(b) AS x FROM t", Agg("count", (B,), "bigint", False)),
        ("SELECT COUNT(DISTINCT a) AS x FROM t", Agg("count", (A,), "bigint", False, True)),
        ("SELECT COUNT(u.k) AS x FROM t LEFT JOIN u ON t.a = u.k",
         Agg("count", (Col(1, "k", "int"),), "bigint", False)),
    ],
)  # fmt: skip
def test_outputs(query: str, expected: Expr) -> None:
    assert first(query) == expected


def test_a_predicate_does_not_take_itself_away() -> None:
    assert block("SELECT a FROM t WHERE b IS NOT NULL AND b > 1").predicates == (
        Call("isnotnull", (B,), "boolean", False),
        Call("gt", (B, Lit(1, "int")), "boolean"),
    )


def test_a_key_that_a_set_leaves_out_may_be_null() -> None:
    found = block(
        "SELECT a, coalesce(a, 0) AS x, COUNT(a) AS n FROM t GROUP BY a GROUPING SETS ((a), ())"
    )
    assert found.outputs[1].expr == Call("coalesce", (A, Lit(0, "int")), "int", False)
    assert found.outputs[2].expr == Agg("count", (), "bigint", False)
