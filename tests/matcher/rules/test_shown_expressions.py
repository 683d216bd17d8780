"""Expressions in messages: whole, unless nobody would read them to the end."""

from __future__ import annotations

from matcher.model.expr import Call, Col, Expr, Lit
from matcher.render.select import readable


def test_of_a_long_expression_the_beginning_and_the_end_are_shown() -> None:
    expr: Expr = Col(0, "first", "int")
    for number in range(40):
        expr = Call("add", (expr, Lit(number, "int")), "int")
    assert "…" not in readable(expr)
    listed = Call("in", (Col(0, "first", "int"), *(Lit(n, "int") for n in range(9_000))), "boolean")
    shown = readable(listed)
    assert len(shown) < 1_000 and "first" in shown[:10]
    assert " … " in shown and shown.rstrip(")").endswith("8999")
