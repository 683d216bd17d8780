"""Aggregate calls of the text door: parsed nodes to `Agg` with Spark's result types.

In the form in which Spark's optimiser leaves them: BOOL_AND is MIN, ANY_VALUE is FIRST, COUNT_IF is
a COUNT, and DISTINCT is gone where repeated values change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from sqlglot import exp

from matcher.model.expr import FALSE, IGNORE_NULLS, Agg, Call, Expr, Lit
from matcher.model.message import Word
from matcher.model.reasons import ReasonCode
from matcher.model.types import INTEGRAL, avg_type, sum_type
from matcher.sql.expressions.coerce import cast_to
from matcher.sql.expressions.functions import Build, name_of
from matcher.sql.expressions.logic import as_boolean
from matcher.sql.expressions.scope import unsupported
from matcher.sql.expressions.types import UNKNOWN, TextSettings, is_numeric

_BY_CLASS: Final[dict[type[exp.Expr], str]] = {
    exp.Sum: "sum", exp.Avg: "avg", exp.Min: "min", exp.Max: "max", exp.CountIf: "count_if",
    exp.LogicalAnd: "min", exp.LogicalOr: "max", exp.Any: "max",
    exp.First: "first", exp.FirstValue: "first", exp.AnyValue: "first",
    exp.Last: "last", exp.LastValue: "last", exp.ArgMax: "max_by", exp.ArgMin: "min_by",
    exp.BitwiseAndAgg: "bit_and", exp.BitwiseOrAgg: "bit_or", exp.BitwiseXorAgg: "bit_xor",
    exp.Stddev: "stddev_samp", exp.StddevSamp: "stddev_samp", exp.StddevPop: "stddev_pop",
    exp.Variance: "var_samp", exp.VariancePop: "var_pop", exp.CovarPop: "covar_pop",
    exp.CovarSamp: "covar_samp", exp.Corr: "corr", exp.Skewness: "skewness",
    exp.Kurtosis: "kurtosis", exp.ArrayUniqueAgg: "collect_set",
    exp.ApproxDistinct: "approx_count_distinct", exp.Quantile: "percentile",
    exp.Median: "percentile",
}  # fmt: skip
_KLL_KINDS: Final = ("bigint", "float", "double")
_BY_NAME: Final[dict[str, str]] = {
    "mean": "avg", "std": "stddev_samp", "every": "min", "some": "max",
    **{n: n for n in ("try_sum", "try_avg", "hll_sketch_agg", "hll_union_agg")},
    **{n: n for kind in _KLL_KINDS for n in (f"kll_sketch_agg_{kind}", f"kll_merge_agg_{kind}")},
}  # fmt: skip
_BOOLEAN: Final = (exp.LogicalAnd, exp.LogicalOr, exp.Any)
_MOMENTS: Final = frozenset(
    "stddev_samp stddev_pop var_samp var_pop covar_pop covar_samp corr skewness kurtosis".split()
)
# Spark drops DISTINCT where repeated values change nothing (EliminateDistinct).
SAME_IF_DISTINCT: Final = frozenset(
    "min max bit_and bit_or first last collect_set approx_count_distinct".split()
)
# They show the NULLs that others skip, unless it is said; of others RESPECT NULLS says that.
_OF_ONE_ROW: Final = ("first", "last")
_SKETCHED: Final = ("int", "bigint", "string", "binary")
_SECOND: Final = ("expression", "quantile", "accuracy")


def is_aggregate(node: exp.Expr) -> bool:
    """True if the node is an aggregate call, known here or not."""
    if isinstance(node, (exp.IgnoreNulls, exp.RespectNulls)):
        return is_aggregate(node.this)
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in _BY_NAME
    if isinstance(node, exp.Any):
        return isinstance(node.this, exp.Paren)
    return isinstance(node, exp.AggFunc) or isinstance(node, (exp.LogicalAnd, exp.LogicalOr))


def aggregate(node: exp.Expr, build: Build, settings: TextSettings, filter: Expr | None) -> Agg:
    """The aggregate call that a parsed one is.

    Raises:
        NotSupported: an aggregate that is not known here.
    """
    skip, keep = isinstance(node, exp.IgnoreNulls), isinstance(node, exp.RespectNulls)
    if isinstance(node, (exp.IgnoreNulls, exp.RespectNulls)):
        node = node.this
    arguments, extra = _arguments(node)
    distinct = bool(arguments) and isinstance(arguments[0], exp.Distinct)
    if distinct:
        arguments = [*arguments[0].expressions, *arguments[1:]]
    if isinstance(node, exp.Count) and not (skip or keep):
        return _count(arguments, distinct, build, filter)
    named = isinstance(node, exp.Anonymous)
    func = _BY_NAME.get(node.name.lower()) if named else _BY_CLASS.get(type(node))
    if func is None or extra or not arguments or ((skip or keep) and func not in _OF_ONE_ROW):
        raise unsupported(
            ReasonCode.UNSUPPORTED_EXPRESSION,
            "aggregate {name}",
            name=Word(name_of(node)),
        )
    args = tuple(build(a) for a in arguments)
    if any(a.type == UNKNOWN for a in args):
        raise unsupported(ReasonCode.UNSUPPORTED_EXPRESSION, "aggregate of a column not known")
    if isinstance(node, exp.Median):
        args = (*args, Lit(0.5, "double"))
    if isinstance(node, _BOOLEAN) or func == "count_if" or (named and func in ("min", "max")):
        args = tuple(as_boolean(a, settings) for a in args)
    found = _typed(func, args, settings)
    if found is None:
        kinds = ", ".join(a.type for a in args)
        raise unsupported(
            ReasonCode.UNSUPPORTED_EXPRESSION,
            "aggregate {name} of {kinds}",
            name=Word(name_of(node)),
            kinds=Word(kinds),
        )
    params = (IGNORE_NULLS,) if skip else found.params
    distinct = distinct and func not in SAME_IF_DISTINCT
    return Agg(found.func, found.args, found.type, found.nullable, distinct, filter, params)


def _arguments(node: exp.Expr) -> tuple[list[exp.Expr], list[str]]:
    """The arguments in Spark's order, and the names of parts that are not known here."""
    if isinstance(node, exp.Anonymous):
        return list(node.expressions), []
    first = node.this.this if isinstance(node, exp.Any) else node.this
    found = [] if first is None else [first]
    found += [node.args[key] for key in _SECOND if node.args.get(key) is not None]
    known = ("this", "expressions", "big_int", *_SECOND)
    extra = [k for k, v in node.args.items() if v and k not in known]
    return [*found, *node.expressions], extra


def _count(arguments: list[exp.Expr], distinct: bool, build: Build, filter: Expr | None) -> Agg:
    starred = [a for a in arguments if isinstance(a, exp.Star) or a.find(exp.Star)]
    if starred and (distinct or len(arguments) > 1 or not isinstance(arguments[0], exp.Star)):
        raise unsupported(ReasonCode.UNSUPPORTED_EXPRESSION, "COUNT over *, other than COUNT(*)")
    args = () if starred else tuple(build(a) for a in arguments)
    if not distinct and all(isinstance(a, Lit) and a.value is not None for a in args):
        args = ()  # COUNT(1) is COUNT(*)
    return Agg("count", args, "bigint", False, distinct, filter)


def _typed(func: str, args: Sequence[Expr], settings: TextSettings) -> Agg | None:
    """The call with Spark's casts and result type; None for what Spark or we do not take."""
    first = args[0]
    if func in _MOMENTS:
        if len(args) != (2 if func.startswith(("covar", "corr")) else 1):
            return None
        if not all(is_numeric(a.type) for a in args):
            return None
        return Agg(func, tuple(cast_to(a, "double", settings) for a in args), "double")
    special = _TYPED.get(func)
    if special is not None:
        return special(func, args, settings)
    if len(args) != 1:
        return None
    if func == "count_if":  # as COUNT(NULLIF(p, FALSE)), which Spark simplifies to this
        arg = Call(
            "case", (Call("not", (first,), "boolean"), Lit(None, "boolean"), first), "boolean"
        )
        return Agg("count", (arg,), "bigint", False)
    if func.startswith("bit_"):
        return Agg(func, (first,), first.type) if first.type in INTEGRAL else None
    if func == "collect_set":
        return Agg(func, (first,), f"array<{first.type}>", False)
    return Agg(func, (first,), first.type)


def _added(func: str, args: Sequence[Expr], settings: TextSettings) -> Agg | None:
    arg = args[0]
    if arg.type in ("string", "void"):
        arg = cast_to(arg, "double", settings)
    result = sum_type(arg.type) if func.endswith("sum") else avg_type(arg.type)
    return None if result is None or len(args) > 1 else Agg(func, (arg,), result)


def _picked(func: str, args: Sequence[Expr], settings: TextSettings) -> Agg | None:
    return Agg(func, tuple(args), args[0].type) if len(args) == 2 else None


def _estimated(func: str, args: Sequence[Expr], settings: TextSettings) -> Agg | None:
    return Agg(func, tuple(args), "bigint", False) if len(args) == 1 else None


def _sketch(func: str, args: Sequence[Expr], settings: TextSettings) -> Agg | None:
    if func.startswith("kll"):
        fits = args[0].type == ("binary" if "merge" in func else func.rsplit("_", 1)[1])
        sized = all(isinstance(a, Lit) and a.type == "int" for a in args[1:])
        return Agg(func, tuple(args), "binary") if fits and sized and len(args) < 3 else None
    default = Lit(12, "int") if func == "hll_sketch_agg" else FALSE
    if len(args) == 1:
        args = (args[0], default)
    fits = args[0].type in (_SKETCHED if func == "hll_sketch_agg" else ("binary",))
    known = isinstance(args[1], Lit) and args[1].type == default.type
    return Agg(func, tuple(args), "binary", False) if fits and known and len(args) == 2 else None


def _percentile(func: str, args: Sequence[Expr], settings: TextSettings) -> Agg | None:
    if len(args) != 2 or not isinstance(args[1], Lit) or not is_numeric(args[0].type):
        return None
    share = cast_to(args[1], "double", settings)
    return Agg(func, (args[0], share, Lit(1, "bigint")), "double")


_TYPED: Final[dict[str, Callable[[str, Sequence[Expr], TextSettings], Agg | None]]] = {
    **dict.fromkeys(("sum", "avg", "try_sum", "try_avg"), _added),
    **dict.fromkeys(("max_by", "min_by"), _picked),
    "approx_count_distinct": _estimated,
    "percentile": _percentile,
    **{name: _sketch for name in _BY_NAME.values() if name.startswith(("hll", "kll"))},
}
