"""The few functions that queries put around COLLECT_SET and around sketches, for the text door."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlglot import exp

from matcher.model.expr import TRUE, Call, Expr
from matcher.model.message import Word
from matcher.model.reasons import ReasonCode
from matcher.sql.expressions.scope import unsupported
from matcher.sql.expressions.types import TextSettings

# name → (name, types of the arguments, result)
SKETCHES: Final[dict[str, tuple[str, tuple[str, ...], str]]] = {
    "hll_sketch_estimate": ("hll_sketch_estimate", ("binary",), "bigint"),
    **{
        name: (name, ("binary", "double")[: 2 if "quantile" in name else 1], result)
        for name, result in (
            ("kll_sketch_get_n_bigint", "bigint"),
            ("kll_sketch_get_n_double", "bigint"),
            ("kll_sketch_get_quantile_bigint", "bigint"),
            ("kll_sketch_get_quantile_double", "double"),
        )
    },
}
Build = Callable[[exp.Expr], Expr]


def array_size(node: exp.Func, build: Build, settings: TextSettings) -> Expr:
    """SIZE and CARDINALITY."""
    array = _array(node, build)
    return Call("size", (array,), "int", array.nullable)


def sort_array(node: exp.Func, build: Build, settings: TextSettings) -> Expr:
    """SORT_ARRAY, ascending; ARRAY_SORT, which puts NULLs last, is another function."""
    first = node.args.get("nulls_first")
    if not isinstance(first, exp.Boolean) or not first.this or node.args.get("expression"):
        raise unsupported(ReasonCode.UNSUPPORTED_EXPRESSION, "array_sort")
    array = _array(node, build)
    return Call("sort_array", (array, TRUE), array.type, array.nullable)


def _array(node: exp.Func, build: Build) -> Expr:
    array = build(node.this)
    if not array.type.startswith("array<"):
        raise unsupported(
            ReasonCode.UNSUPPORTED_EXPRESSION,
            "an array function of {type}",
            type=Word(array.type),
        )
    return array
