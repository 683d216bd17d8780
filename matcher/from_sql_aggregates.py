"""Aggregate calls of the text door: parsed nodes to `Agg` with Spark's result types."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from matcher.expr import Agg, Expr, Lit
from matcher.from_sql_coerce import cast_to
from matcher.from_sql_functions import Build, name_of
from matcher.from_sql_scope import unsupported
from matcher.from_sql_types import UNKNOWN, TextSettings, is_numeric
from matcher.reasons import ReasonCode
from matcher.types import avg_type, sum_type

_SAME: Final[dict[type[exp.Expr], str]] = {
    exp.Min: "min", exp.Max: "max", exp.First: "first", exp.FirstValue: "first", exp.Last: "last",
    exp.LastValue: "last", exp.AnyValue: "any_value",
}  # fmt: skip
_MOMENTS: Final[dict[type[exp.Expr], str]] = {
    exp.Stddev: "stddev_samp", exp.StddevSamp: "stddev_samp", exp.StddevPop: "stddev_pop",
    exp.Variance: "var_samp", exp.VariancePop: "var_pop",
}  # fmt: skip
_ANONYMOUS: Final[dict[str, type[exp.Expr]]] = {
    "mean": exp.Avg, "std": exp.StddevSamp, "every": exp.LogicalAnd, "some": exp.LogicalOr,
}  # fmt: skip


def is_aggregate(node: exp.Expr) -> bool:
    """True if the node is an aggregate call, known here or not."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in _ANONYMOUS or node.name.lower() in ("try_sum", "try_avg")
    return isinstance(node, exp.AggFunc) or isinstance(node, (exp.LogicalAnd, exp.LogicalOr))


def aggregate(node: exp.Expr, build: Build, settings: TextSettings, filter: Expr | None) -> Agg:
    """The aggregate call that a parsed one is.

    Raises:
        NotSupported: an aggregate that is not known here.
    """
    kind: type[exp.Expr] = type(node)
    arguments = [node.this, *node.expressions] if node.this is not None else list(node.expressions)
    if isinstance(node, exp.Anonymous):
        kind = _ANONYMOUS.get(node.name.lower(), exp.Anonymous)
        arguments = list(node.expressions)
    distinct = bool(arguments) and isinstance(arguments[0], exp.Distinct)
    if distinct:
        arguments = list(arguments[0].expressions)
    if kind is exp.Count:
        return _count(arguments, distinct, build, filter)
    extra = [k for k, v in node.args.items() if v and k not in ("this", "expressions", "big_int")]
    if len(arguments) != 1 or extra:
        raise unsupported(ReasonCode.UNSUPPORTED_EXPRESSION, f"aggregate {name_of(node)}")
    return _one_argument(node, kind, build(arguments[0]), distinct, settings, filter)


def _count(arguments: list[exp.Expr], distinct: bool, build: Build, filter: Expr | None) -> Agg:
    starred = [a for a in arguments if isinstance(a, exp.Star) or a.find(exp.Star)]
    if starred and (distinct or len(arguments) > 1 or not isinstance(arguments[0], exp.Star)):
        raise unsupported(ReasonCode.UNSUPPORTED_EXPRESSION, "COUNT over *, other than COUNT(*)")
    args = () if starred else tuple(build(a) for a in arguments)
    if not distinct and all(isinstance(a, Lit) and a.value is not None for a in args):
        args = ()  # COUNT(1) is COUNT(*)
    return Agg("count", args, "bigint", False, distinct, filter)


def _one_argument(
    node: exp.Expr, kind: type[exp.Expr], arg: Expr, distinct: bool,
    settings: TextSettings, filter: Expr | None,
) -> Agg:  # fmt: skip
    if arg.type == UNKNOWN:
        raise unsupported(ReasonCode.UNSUPPORTED_EXPRESSION, "aggregate of a column not known")
    if kind is exp.CountIf:
        return Agg("count_if", (arg,), "bigint", False, distinct, filter)
    if kind in (exp.LogicalAnd, exp.LogicalOr):
        name = "bool_and" if kind is exp.LogicalAnd else "bool_or"
        return Agg(name, (arg,), "boolean", True, distinct, filter)
    same = _SAME.get(kind)
    if same is not None:
        # the smallest and the largest are the same with and without DISTINCT
        return Agg(same, (arg,), arg.type, True, distinct and same not in ("min", "max"), filter)
    if kind in (exp.Sum, exp.Avg):
        if arg.type in ("string", "void"):
            arg = cast_to(arg, "double", settings)
        result = sum_type(arg.type) if kind is exp.Sum else avg_type(arg.type)
        if result is not None:
            return Agg("sum" if kind is exp.Sum else "avg", (arg,), result, True, distinct, filter)
    moment = _MOMENTS.get(kind)
    if moment is not None and is_numeric(arg.type):
        return Agg(moment, (cast_to(arg, "double", settings),), "double", True, distinct, filter)
    raise unsupported(ReasonCode.UNSUPPORTED_EXPRESSION, f"aggregate {name_of(node)} of {arg.type}")
