"""Catalyst expressions, as the plan document spells them, to the matcher's expressions.

Decides what a Catalyst class means. A class that is not known here becomes a `spark:` call, which
matches itself only; what no block may hold (a UDF, a subquery, rand()) raises `NotSupported`. An
expression that was resolved under other settings than the session's (inside a view that remembers
its own) is opaque too: written as SQL it would be resolved under the session's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeGuard

from matcher.catalyst import document as doc
from matcher.catalyst.aggregates import EVALUATED, aggregate_name, aggregate_params
from matcher.catalyst.document import Aggregate, Function, Settings
from matcher.model.codec import decode_value
from matcher.model.errors import NotSupported
from matcher.model.expr import OPAQUE_PREFIX, Agg, Call, Expr, Lit
from matcher.model.functions import is_known
from matcher.model.message import ColumnName, Word, listed
from matcher.model.reasons import ReasonCode
from matcher.model.values import cast
from matcher.predicates.captured_settings import WRAPPING_SUM, aggregate_as, means_the_same
from matcher.predicates.constant_folding import fold
from matcher.predicates.time_buckets import standard_unit
from matcher.predicates.time_windows import side_of, whole_of
from matcher.predicates.time_zones import fixed_offset
from matcher.predicates.tuples import in_tuples

Env = Mapping[int, "Expr | NotSupported"]

OPERATORS: Final[dict[str, str]] = {
    "EqualTo": "eq",
    "EqualNullSafe": "nseq",
    "LessThan": "lt",
    "LessThanOrEqual": "le",
    "GreaterThan": "gt",
    "GreaterThanOrEqual": "ge",
    "And": "and",
    "Or": "or",
    "Not": "not",
    "IsNull": "isnull",
    "IsNotNull": "isnotnull",
    "In": "in",
    "RLike": "rlike",
    "StartsWith": "startswith",
    "EndsWith": "endswith",
    "Contains": "contains",
    "CaseWhen": "case",
    "If": "case",
    "Coalesce": "coalesce",
    "Add": "add",
    "Subtract": "sub",
    "Multiply": "mul",
    "Divide": "div",
    "IntegralDivide": "idiv",
    "Remainder": "mod",
    "UnaryMinus": "neg",
}
# A struct's field by its name, where the struct has no other of that name.
FIELD: Final = "Field"
# Spark answers to several names; one expression must have one.
ALIASES: Final[dict[str, str]] = {
    "dayofmonth": "day",
    "ucase": "upper",
    "lcase": "lower",
    "substr": "substring",
    "pow": "power",
    "ceiling": "ceil",
    "char_length": "length",
    "character_length": "length",
    "signum": "sign",
    "date_diff": "datediff",
    "dateadd": "date_add",
}
# Where the name of a unit stands, which Spark reads in any case.
_UNITS: Final[dict[str, int]] = {"date_trunc": 0, "trunc": 1}
# What an operator is called where it gives NULL in place of an error.
_TRY_FORMS: Final = {
    "add": "try_add", "sub": "try_subtract", "mul": "try_multiply", "div": "try_divide",
    "mod": "try_mod",
}  # fmt: skip
_DEFAULT_PARAMS: Final[dict[str, tuple[str, ...]]] = {
    "hash": ("42",),
    "xxhash64": ("42",),
}
_REFUSED: Final[dict[str, tuple[ReasonCode, str]]] = {
    "NON_DETERMINISTIC": (
        ReasonCode.NON_DETERMINISTIC,
        "{name} gives another value each time",
    ),
    "UDF": (ReasonCode.UNSUPPORTED_EXPRESSION, "{name} is a user-defined function"),
    "SUBQUERY": (ReasonCode.UNSUPPORTED_EXPRESSION, "{name} is a subquery expression"),
    "OUTER_REFERENCE": (
        ReasonCode.UNSUPPORTED_EXPRESSION,
        "{name} refers to an outer query",
    ),
    "WINDOW": (ReasonCode.UNSUPPORTED_EXPRESSION, "{name} is a window function"),
    "GENERATOR": (ReasonCode.UNSUPPORTED_EXPRESSION, "{name} makes several rows of one"),
    "METADATA_COLUMN": (
        ReasonCode.UNSUPPORTED_EXPRESSION,
        "{name} tells where a row is stored",
    ),
}


def decode(data: Sequence[Any], env: Env, settings: Settings) -> Expr:
    """The expression of one document entry, its attributes replaced by what `env` has under their
    ids.

    Args:
        data: The nested list.
        env: Attribute id to its expression over base columns, or to the reason why it has none.
        settings: The session's.

    Raises:
        NotSupported: Something inside cannot be part of a block.
    """
    kind = doc.tag(data)
    if kind == doc.ATTRIBUTE:
        return _attribute(data, env)
    if kind == doc.LITERAL:
        value, type_ = doc.literal(data)
        return Lit(decode_value(value), type_)
    if kind == doc.ALIAS:
        return decode(doc.aliased(data), env, settings)
    if kind == doc.FUNCTION:
        found = doc.function(data)
        args = tuple([decode(arg, env, settings) for arg in found.args])
        return _call(found, args, settings)
    if kind == doc.AGGREGATE:
        return _aggregate(doc.aggregate(data), env, settings)
    unknown = (ReasonCode.UNSUPPORTED_EXPRESSION, "{name} is not supported")
    code, text = _REFUSED.get(doc.class_of(data), unknown)
    raise NotSupported(code, text, name=Word(doc.name_of(data)))


def _attribute(data: Sequence[Any], env: Env) -> Expr:
    found = env.get(doc.id_of(data))
    if found is None:
        raise NotSupported(
            ReasonCode.UNSUPPORTED_EXPRESSION,
            "column {column} comes from outside the block",
            column=ColumnName(doc.name_of(data)),
        )
    if isinstance(found, NotSupported):
        raise found
    return found


def _window_of(expr: Call) -> Expr:
    if expr.op == f"{OPAQUE_PREFIX}KnownNullable":
        return side_of(expr)
    return whole_of(expr) if _is_struct(expr) else expr


def _call(data: Function, args: tuple[Expr, ...], settings: Settings) -> Expr:
    if data.class_name in OPERATORS:
        return _operator(data, args, settings)
    special = _SPECIAL.get(data.class_name)
    found = None if special is None else special(data, args, settings)
    return _named(data, args, settings) if found is None else found


def _operator(data: Function, args: tuple[Expr, ...], settings: Settings) -> Expr:
    op, null = OPERATORS[data.class_name], bool(data.nullable)
    if op == "in" and all(map(_is_struct, args)):
        return in_tuples(args[0].children[1::2], [row.children[1::2] for row in args[1:]])
    if op == "not" and isinstance(args[0], Call) and args[0].op == "eq":
        return Call("ne", args[0].args, data.type, null)
    if op == "case":
        return Call(op, _without_null_else(args), data.type, null)
    modes = [_mode(p, settings) for p in data.params]
    as_usual = all(m == "session" for m in modes)
    if as_usual or (_says_the_same(modes) and means_the_same(op, args, data.type)):
        return Call(op, args, data.type, null)
    if modes == ["try"] and op in _TRY_FORMS:
        return Call(_TRY_FORMS[op], args, data.type, null)
    return _opaque(data, args)


def _named(data: Function, args: tuple[Expr, ...], settings: Settings) -> Expr:
    """A function by the name that people write."""
    name = ALIASES.get(data.name.lower(), data.name.lower())
    if "." in data.class_name or not is_known(name, len(args)):
        return _window_of(_opaque(data, args))
    if not _means_its_name(name, data, settings):
        return _opaque(data, args)
    if name == "substring" and len(args) == 3 and args[2] == _TO_THE_END:
        args = args[:2]
    found = Call(name, _one_spelling(name, args), data.type, bool(data.nullable))
    return (fold(found) if name == "date_add" else None) or found


def _cast_call(data: Function, args: tuple[Expr, ...], settings: Settings) -> Expr:
    return _cast(args, data.type, bool(data.nullable), data.params, settings)


def _like(data: Function, args: tuple[Expr, ...], settings: Settings) -> Expr:
    escape = () if list(data.params) == ["\\"] else tuple(data.params)
    return Call("like", args, data.type, bool(data.nullable), escape)


def _get_timestamp(data: Function, args: tuple[Expr, ...], settings: Settings) -> Expr | None:
    if data.type not in _READS or not _as_usual(data.params[1:], settings):
        return None
    return Call(_READS[data.type], args, data.type, bool(data.nullable))


def _field(data: Function, args: tuple[Expr, ...], settings: Settings) -> Expr:
    return Call("field", args, data.type, bool(data.nullable), tuple(data.params))


# Classes that are no operators, and not what their names say either.
_SPECIAL: Final[dict[str, Callable[[Function, tuple[Expr, ...], Settings], Expr | None]]] = {
    "Cast": _cast_call,
    "Like": _like,
    "GetTimestamp": _get_timestamp,
    FIELD: _field,
}
# The first parameter of GetTimestamp is only a name for its error message.
_READS: Final = {"timestamp": "to_timestamp_ltz", "timestamp_ntz": "to_timestamp_ntz"}


def _as_usual(params: Sequence[str], settings: Settings) -> bool:
    return all(_mode(p, settings) == "session" for p in params)


def _means_its_name(name: str, data: Function, settings: Settings) -> bool:
    """True if the function, written as SQL in this session, would have these parameters."""
    if data.class_name == "Size":  # whether size(NULL) is -1, which it is without ANSI alone
        return tuple(data.params) == ("false" if settings.ansi else "true",)
    return _as_usual(data.params, settings) or tuple(data.params) == _DEFAULT_PARAMS.get(name)


def _is_struct(expr: Expr) -> bool:
    """True for fields put together: names and values in turn."""
    return isinstance(expr, Call) and expr.op == f"{OPAQUE_PREFIX}CreateNamedStruct"


def _one_spelling(name: str, args: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Units in upper case, and neighbouring constants of a concatenation as one."""
    unit = _UNITS.get(name)
    if unit is not None:
        found = args[unit]
        if isinstance(found, Lit) and isinstance(found.value, str):
            upper = Lit(standard_unit(found.value.upper()), found.type)
            return (*args[:unit], upper, *args[unit + 1 :])
    if name != "concat":
        return args
    done: list[Expr] = []
    for arg in args:
        last = done[-1] if done else None
        if _is_text(last) and _is_text(arg):
            done[-1] = Lit(str(last.value) + str(arg.value), "string")
        else:
            done.append(arg)
    return tuple(done)


def _is_text(expr: Expr | None) -> TypeGuard[Lit]:
    return isinstance(expr, Lit) and expr.type == "string" and isinstance(expr.value, str)


def _without_null_else(args: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """A CASE without ELSE is NULL there, as IF(p, x, NULL) says in full."""
    last = args[-1]
    if len(args) % 2 and len(args) > 2 and isinstance(last, Lit) and last.value is None:
        return args[:-1]
    return args


_TO_THE_END: Final = Lit(2147483647, "int")


def _cast(
    args: tuple[Expr, ...],
    type_: str,
    nullable: bool,
    params: Sequence[str],
    settings: Settings,
) -> Expr:
    if args[0].type == type_:  # SimplifyCasts may not have seen it yet
        return args[0]
    modes = [_mode(p, settings) for p in params]
    same = _says_the_same(modes) and means_the_same("cast", args, type_)
    if same or all(m == "session" for m in modes):
        folded = _fold_moment(args[0], type_, settings)
        return folded or Call("cast", args, type_, nullable)
    if all(m in ("session", "try") for m in modes):
        return Call("try_cast", args, type_, nullable)
    return Call(f"{OPAQUE_PREFIX}Cast", args, type_, nullable, tuple(params))


def _fold_moment(arg: Expr, type_: str, settings: Settings) -> Lit | None:
    """A temporal constant cast by UnwrapCastInBinaryComparison, which Spark folds only later."""
    if not isinstance(arg, Lit) or arg.type not in ("date", "timestamp") or arg.value is None:
        return None
    return cast(arg, type_, utc=fixed_offset(settings.time_zone) == 0)


def _opaque(data: Function, args: tuple[Expr, ...]) -> Call:
    name = f"{OPAQUE_PREFIX}{data.class_name}"
    return Call(name, args, data.type, bool(data.nullable), tuple(data.params))


def _mode(param: str, settings: Settings) -> str:
    """`session` for what the same SQL text would mean again in this session, `try` for the try_
    form, `ansi` for what it would with the other ANSI setting, else `other`."""
    if param in ("TRY", "NumericEvalContext(TRY,true)", "NumericEvalContext(TRY,false)"):
        return "try"
    mode = "ANSI" if settings.ansi else "LEGACY"
    loss = "true" if settings.precision_loss else "false"
    usual = {
        mode,
        f"NumericEvalContext({mode},{loss})",
        f"Some({settings.time_zone})",
        "None",
        "true" if settings.ansi else "false",
    }
    if param in usual:
        return "session"
    mode = "LEGACY" if settings.ansi else "ANSI"
    return "ansi" if param in (mode, f"NumericEvalContext({mode},{loss})") else "other"


def _says_the_same(modes: Sequence[str]) -> bool:
    """True if the ANSI setting is all that is not the session's."""
    return "ansi" in modes and all(mode in ("ansi", "session") for mode in modes)


def _aggregate(data: Aggregate, env: Env, settings: Settings) -> Agg:
    cls, params, distinct = data.class_name, data.params, bool(data.distinct)
    args = tuple(decode(arg, env, settings) for arg in data.args)
    condition = None if data.filter is None else decode(data.filter, env, settings)
    func = aggregate_name(cls, data.name)
    kept: tuple[str, ...] = ()
    modes = [_mode(p, settings) for p in params]
    if cls not in EVALUATED:
        kept = aggregate_params(cls, tuple(params))
    elif modes == ["try"]:
        func = f"try_{func}"
    elif modes == ["ansi"]:
        func = aggregate_as(func, args[0].type, ansi=settings.ansi)
        kept = ("LEGACY",) if func == WRAPPING_SUM else ()
    elif "other" in modes:
        raise NotSupported(
            ReasonCode.UNSUPPORTED_EXPRESSION,
            "{aggregate} was resolved under other settings than the session's ({settings})",
            aggregate=Word(func),
            settings=listed(Word, params),
        )
    if func == "count" and not distinct and len(args) == 1:
        only = args[0]
        if isinstance(only, Lit) and only.value is not None:
            args = ()
    return Agg(func, args, data.type, bool(data.nullable), distinct, condition, kept)
