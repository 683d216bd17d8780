"""Bounds of whole numbers, and sums of them that DOUBLE holds exactly."""

from __future__ import annotations

from matcher.model.expr import Call, Col, Lit
from matcher.model.integer_bounds import expression_bounds, is_exact


def test_bounds_of_expressions() -> None:
    x, y = Col(0, "x", "bigint"), Col(0, "y", "bigint")
    known = {x: (-3, 5), y: (2, 4)}
    five = Lit(5, "bigint")

    def bounds(op: str, *args: Col | Lit) -> tuple[int, int] | None:
        return expression_bounds(Call(op, args, "bigint"), known)

    assert bounds("sub", x, y) == (-7, 3) and bounds("add", x, five) == (2, 10)
    assert bounds("neg", x) == (-5, 3) and bounds("coalesce", x, five) == (-3, 5)
    assert bounds("div", x, y) is None and bounds("add", x, Col(0, "z", "bigint")) is None
    wide = {x: (0, 1 << 62)}
    assert expression_bounds(Call("add", (x, x), "bigint"), wide) is None, "it wraps around"


def test_sums_that_double_holds_exactly() -> None:
    x = Col(0, "x", "bigint")
    assert is_exact(x, {x: (-(1 << 52), 3)}, 2) and is_exact(x, {x: (0, 0)}, 1 << 62)
    assert not is_exact(x, {x: (-(1 << 52), 3)}, 3), "the absolute values count, not the sum"
    assert not is_exact(x, {}, 0), "nothing is known of it"
