"""ANDs and ORs in each other take time by how many there are, and not by how deep they are."""

from __future__ import annotations

import time

from matcher.model.expr import Call, Col, Expr, Lit
from matcher.predicates.canonical import spell


def _test(number: int, op: str = "gt") -> Expr:
    column = Col("f", f"a{number}", "int")
    return Call(op, (column, Lit(number, "int")), "boolean", nullable=True)


def _nested(depth: int) -> Expr:
    """AND and OR by turns, each with one comparison more."""
    found = _test(0)
    for number in range(1, depth):
        op = "and" if number % 2 else "or"
        found = spell(Call(op, (found, _test(number)), "boolean", nullable=True))
    return found


def test_the_opposite_of_deep_junctions_is_spelt_in_the_time_of_its_parts() -> None:
    """It took four times as long with every second level: minutes for twenty."""
    inner = _nested(60)
    started = time.thread_time()
    opposite = spell(Call("not", (inner,), "boolean", nullable=True))
    assert time.thread_time() - started < 0.5
    assert spell(Call("not", (opposite,), "boolean", nullable=True)) == inner


def test_opposites_side_by_side_are_still_told() -> None:
    both = Call("or", (_test(1), _test(1, "le")), "boolean", nullable=True)
    assert "isnotnull" in repr(spell(both))
    deep = Call("and", (_nested(5), both), "boolean", nullable=True)
    assert "isnotnull" in repr(spell(Call("and", (_nested(5), spell(both)), deep.type, True)))
