"""Functions of the text door: parsed nodes to Spark's names, argument casts and result types.

The parser renames and re-orders some functions, so each is listed with its arguments in Spark's
order. What is not listed is refused by name: an unknown function may be a user's own, with any
type and any meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from sqlglot import exp

from matcher.model.expr import Call, Expr, Lit
from matcher.model.message import Word
from matcher.model.operators import NULL_FOR_NULL_ONLY
from matcher.model.reasons import ReasonCode
from matcher.model.types import decimal_parts, decimal_type
from matcher.predicates.constant_folding import fold
from matcher.predicates.time_buckets import standard_unit
from matcher.sql.expressions.arrays import SKETCHES, array_size, sort_array
from matcher.sql.expressions.coerce import cast_to, compare, refuse_char, refuse_mixed_strings
from matcher.sql.expressions.formats import FORMATTED, formatted
from matcher.sql.expressions.scope import unsupported
from matcher.sql.expressions.types import (
    UNKNOWN,
    TextSettings,
    common_type,
    is_numeric,
    rounded_type,
)

# class → (Spark name, argument keys in Spark's order, type that each argument is cast to, result)
_PLAIN: Final[dict[type[exp.Expr], tuple[str, tuple[str, ...], tuple[str, ...], str]]] = {
    exp.Year: ("year", ("this",), ("date",), "int"),
    exp.Quarter: ("quarter", ("this",), ("date",), "int"),
    exp.Month: ("month", ("this",), ("date",), "int"),
    exp.Day: ("day", ("this",), ("date",), "int"),
    exp.DayOfMonth: ("day", ("this",), ("date",), "int"),
    exp.DayOfWeek: ("dayofweek", ("this",), ("date",), "int"),
    exp.DayOfYear: ("dayofyear", ("this",), ("date",), "int"),
    exp.WeekOfYear: ("weekofyear", ("this",), ("date",), "int"),
    exp.LastDay: ("last_day", ("this",), ("date",), "date"),
    exp.DateDiff: ("datediff", ("this", "expression"), ("date", "date"), "int"),
    exp.AddMonths: ("add_months", ("this", "expression"), ("date", "int"), "date"),
    exp.Hour: ("hour", ("this",), ("timestamp",), "int"),
    exp.Minute: ("minute", ("this",), ("timestamp",), "int"),
    exp.Second: ("second", ("this",), ("timestamp",), "int"),
    exp.UnixDate: ("unix_date", ("this",), ("date",), "int"),
    exp.Upper: ("upper", ("this",), ("string",), "string"),
    exp.Lower: ("lower", ("this",), ("string",), "string"),
    exp.Length: ("length", ("this",), ("string",), "int"),
    exp.Ascii: ("ascii", ("this",), ("string",), "int"),
    exp.Left: ("left", ("this", "expression"), ("string", "int"), "string"),
    exp.Right: ("right", ("this", "expression"), ("string", "int"), "string"),
    exp.Repeat: ("repeat", ("this", "times"), ("string", "int"), "string"),
    exp.Replace: (
        "replace", ("this", "expression", "replacement"), ("string", "string", "string"), "string",
    ),
    exp.Translate: (
        "translate", ("this", "from_", "to"), ("string", "string", "string"), "string",
    ),
    exp.Substring: ("substring", ("this", "start", "length"), ("string", "int", "int"), "string"),
    exp.StartsWith: ("startswith", ("this", "expression"), ("string", "string"), "boolean"),
    exp.EndsWith: ("endswith", ("this", "expression"), ("string", "string"), "boolean"),
    exp.Contains: ("contains", ("this", "expression"), ("string", "string"), "boolean"),
    exp.RegexpLike: ("rlike", ("this", "expression"), ("string", "string"), "boolean"),
    exp.IsNan: ("isnan", ("this",), ("double",), "boolean"),
    exp.Sqrt: ("sqrt", ("this",), ("double",), "double"),
    exp.Exp: ("exp", ("this",), ("double",), "double"),
    exp.Ln: ("ln", ("this",), ("double",), "double"),
    exp.Pow: ("power", ("this", "expression"), ("double", "double"), "double"),
    exp.MD5: ("md5", ("this",), ("binary",), "string"),
}  # fmt: skip
_BY_NAME: Final[dict[str, tuple[str, tuple[str, ...], str]]] = {
    "weekday": ("weekday", ("date",), "int"),
    "make_date": ("make_date", ("int", "int", "int"), "date"),
    "bigint": ("cast", (), "bigint"),
    "smallint": ("cast", (), "smallint"),
    "tinyint": ("cast", (), "tinyint"),
    **SKETCHES,
    "isnull": ("isnull", (), "boolean"),
    "isnotnull": ("isnotnull", (), "boolean"),
}
_NON_DETERMINISTIC_NODES: Final = tuple(
    getattr(exp, name)
    for name in (
        "Rand", "Randn", "Uuid", "Shuffle", "CurrentDate", "CurrentTimestamp", "CurrentTime",
        "CurrentDatetime", "CurrentUser", "SessionUser", "CurrentCatalog", "CurrentDatabase",
        "CurrentSchema", "CurrentTimezone", "Localtimestamp", "Localtime", "CurrentTimestampLTZ",
    )
    if hasattr(exp, name)
)  # fmt: skip
_NON_DETERMINISTIC_NAMES: Final = frozenset(
    {
        "now", "random", "monotonically_increasing_id", "spark_partition_id", "input_file_name",
        "input_file_block_start", "input_file_block_length", "current_database", "current_catalog",
        "current_schema", "current_user", "user", "session_user", "current_timezone", "version",
        "curdate", "localtimestamp", "uuid", "rand", "randn", "shuffle", "reflect", "java_method",
        "try_reflect", "unix_timestamp", "current_date", "current_timestamp", "randstr", "uniform",
    }
)  # fmt: skip
_OF_NOW: Final = frozenset({"unix_timestamp"})  # without an argument
# the bare words that Spark reads as functions where no column has the name
SESSION_WORDS: Final = frozenset(
    {"current_date", "current_timestamp", "current_user", "user", "session_user", "localtimestamp"}
)
_EXTRACT: Final = {
    "YEAR": ("year", "date"), "YEARS": ("year", "date"), "QUARTER": ("quarter", "date"),
    "MONTH": ("month", "date"), "WEEK": ("weekofyear", "date"), "DAY": ("day", "date"),
    "YEAROFWEEK": ("yearofweek", "date"),
    "DAYOFWEEK": ("dayofweek", "date"), "DOW": ("dayofweek", "date"), "DOY": ("dayofyear", "date"),
    "HOUR": ("hour", "timestamp"), "MINUTE": ("minute", "timestamp"),
}  # fmt: skip

# Spark takes a TIMESTAMP_NTZ for these as it is.
_OF_WALL_CLOCKS: Final = frozenset({"hour", "minute", "second"})

Build = Callable[[exp.Expr], Expr]


def call_function(node: exp.Func, build: Build, settings: TextSettings) -> Expr:
    """The canonical call that a parsed function is.

    Args:
        node: the parsed function; not an aggregate.
        build: turns an argument into an expression.
        settings: the session's.

    Raises:
        NotSupported: a function that is not known here, or not deterministic.
    """
    refuse_non_deterministic(node)
    plain = _PLAIN.get(type(node))
    if plain is not None:
        name, keys, kinds, result = plain
        if any(v for k, v in node.args.items() if k not in keys and k != "safe"):
            raise unsupported(
                ReasonCode.UNSUPPORTED_EXPRESSION,
                "{name} with further arguments",
                name=Word(name),
            )
        given = [node.args.get(k) for k in keys]
        args = [build(_unwrap(a)) for a in given if a is not None]
        return _call(name, args, kinds, result, settings)
    special = _SPECIAL.get(type(node))
    if special is not None:
        return special(node, build, settings)
    if isinstance(node, exp.Anonymous):
        known = _BY_NAME.get(node.name.lower())
        args = [build(a) for a in node.expressions]
        if node.name.lower() in FORMATTED:
            return formatted(node.name.lower(), args, settings)
        if known is not None and known[0] == "cast" and len(args) == 1:
            return cast_to(args[0], known[2], settings)
        if known is not None and known[0] in ("isnull", "isnotnull") and len(args) == 1:
            return Call(known[0], (args[0],), "boolean", False)
        if known is not None and len(args) == len(known[1]):
            return _call(known[0], args, known[1], known[2], settings)
    raise unsupported(
        ReasonCode.UNSUPPORTED_EXPRESSION,
        "function {name} is not known",
        name=Word(name_of(node)),
    )


def name_of(node: exp.Expr) -> str:
    """The function's name as people know it."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    return node.sql("spark").split("(")[0].lower()


def is_scalar(node: exp.Anonymous) -> bool:
    """True if the call is one of a function here that the parser does not know."""
    return node.name.lower() in _BY_NAME or node.name.lower() in FORMATTED


def refuse_non_deterministic(node: exp.Expr) -> None:
    """Raises NotSupported for a function whose value depends on chance, the clock or the
    session."""
    named = isinstance(node, exp.Anonymous) and node.name.lower() in _NON_DETERMINISTIC_NAMES
    if isinstance(node, exp.Anonymous) and node.name.lower() in _OF_NOW:
        named = not node.expressions
    if named or isinstance(node, _NON_DETERMINISTIC_NODES):
        raise unsupported(
            ReasonCode.NON_DETERMINISTIC,
            "{name}() differs from run to run or by session",
            name=Word(name_of(node)),
        )


def _unwrap(node: exp.Expr) -> exp.Expr:
    """The parser puts a conversion to DATE around arguments of date functions; the cast is added
    by type instead."""
    implied = isinstance(node, exp.TsOrDsToDate) and not node.args.get("safe")
    return node.this if implied and not node.args.get("format") else node


def _call(
    name: str, args: Sequence[Expr], kinds: Sequence[str], result: str, settings: TextSettings
) -> Expr:
    for arg in args:
        refuse_char(arg)
        if arg.type == UNKNOWN:
            raise unsupported(
                ReasonCode.UNSUPPORTED_EXPRESSION,
                "{name} of a column not known",
                name=Word(name),
            )
        if name in ("substring", "left", "length", "right", "replace") and arg.type == "binary":
            raise unsupported(
                ReasonCode.UNSUPPORTED_EXPRESSION,
                "{name} of BINARY",
                name=Word(name),
            )
    cast = tuple(
        a if name in _OF_WALL_CLOCKS and a.type == "timestamp_ntz" else cast_to(a, k, settings)
        for a, k in zip(args, kinds, strict=False)
    )
    if name == "left":
        nullable = any(a.nullable for a in cast)
        return Call("substring", (cast[0], Lit(1, "int"), cast[1]), "string", nullable)
    folded = fold(Call(name, cast, result))
    # only functions that are known to return NULL for nothing but NULL are never NULL
    nullable = name not in NULL_FOR_NULL_ONLY or any(a.nullable for a in cast)
    return folded or Call(name, cast, result, nullable)


def add_days(day: Expr, count: Expr, name: str, settings: TextSettings) -> Expr:
    """`date_add` or `date_sub`."""
    return _call(name, [day, count], ("date", "int"), "date", settings)


# -- functions with rules of their own ----------------------------------------------------------


def _ts_or_ds_add(node: exp.Func, build: Build, settings: TextSettings) -> Expr:
    count = node.args["expression"]
    if str(node.args.get("unit") or "DAY").upper() != "DAY":
        raise unsupported(ReasonCode.UNSUPPORTED_EXPRESSION, "date_add of another unit than days")
    if (
        isinstance(count, exp.Mul)
        and isinstance(count.expression, exp.Neg)
        and count.expression.this.name == "1"
    ):  # how the parser spells date_sub
        return add_days(build(_unwrap(node.this)), build(count.this), "date_sub", settings)
    return add_days(build(_unwrap(node.this)), build(count), "date_add", settings)


def _to_date(node: exp.Func, build: Build, settings: TextSettings) -> Expr:
    return cast_to(build(node.this), "date", settings)


def _date_trunc(node: exp.Func, build: Build, settings: TextSettings) -> Expr:
    unit = Lit(standard_unit(node.args["unit"].name.upper()), "string")
    return _call(
        "date_trunc", [unit, build(node.this)], ("string", "timestamp"), "timestamp", settings
    )


def _trunc(node: exp.Func, build: Build, settings: TextSettings) -> Expr:
    unit = node.args["unit"]
    if not (isinstance(unit, exp.Var) or (isinstance(unit, exp.Literal) and unit.is_string)):
        raise unsupported(ReasonCode.UNSUPPORTED_EXPRESSION, "trunc with a computed unit")
    day = build(_unwrap(node.this))
    return _call(
        "trunc",
        [day, Lit(standard_unit(unit.name.upper()), "string")],
        ("date", "string"),
        "date",
        settings,
    )


def _extract(node: exp.Func, build: Build, settings: TextSettings) -> Expr:
    known = _EXTRACT.get(node.name.upper())
    if known is None:
        raise unsupported(
            ReasonCode.UNSUPPORTED_EXPRESSION,
            "EXTRACT({unit} …)",
            unit=Word(node.name),
        )
    return _call(known[0], [build(_unwrap(node.args["expression"]))], (known[1],), "int", settings)


def _coalesce(node: exp.Func, build: Build, settings: TextSettings) -> Expr:
    args = one_type([build(a) for a in (node.this, *node.expressions)], "coalesce", settings)
    if len(args) == 1:
        return args[0]
    return Call("coalesce", tuple(args), args[0].type, all(a.nullable for a in args))


def _extreme(node: exp.Func, build: Build, settings: TextSettings) -> Expr:
    name = "greatest" if isinstance(node, exp.Greatest) else "least"
    args = one_type([build(a) for a in (node.this, *node.expressions)], name, settings)
    return Call(name, tuple(args), args[0].type, all(a.nullable for a in args))


def _concat(node: exp.Expr, build: Build, settings: TextSettings) -> Expr:
    nodes = node.expressions or [node.this, node.args["expression"]]
    flat: list[Expr] = []
    for arg in (build(n) for n in nodes):
        refuse_char(arg)
        if arg.type == "binary" or arg.type.startswith("array") or arg.type == UNKNOWN:
            raise unsupported(
                ReasonCode.UNSUPPORTED_EXPRESSION,
                "concat of {type}",
                type=Word(arg.type),
            )
        text = cast_to(arg, "string", settings)
        flat += text.args if isinstance(text, Call) and text.op == "concat" else (text,)
    merged: list[Expr] = []
    for part in flat:
        last = merged[-1] if merged else None
        if isinstance(part, Lit) and isinstance(last, Lit) and None not in (part.value, last.value):
            merged[-1] = Lit(str(last.value) + str(part.value), "string")
        else:
            merged.append(part)
    if len(merged) == 1:
        return merged[0]
    return Call("concat", tuple(merged), "string", any(a.nullable for a in merged))


def _trim(node: exp.Func, build: Build, settings: TextSettings) -> Expr:
    if node.args.get("expression") is not None:
        raise unsupported(ReasonCode.UNSUPPORTED_EXPRESSION, "trim of given characters")
    where = str(node.args.get("position") or "").upper()
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(where, "trim")
    return _call(name, [build(node.this)], ("string",), "string", settings)


def _pad(node: exp.Func, build: Build, settings: TextSettings) -> Expr:
    name = "lpad" if node.args.get("is_left") else "rpad"
    fill = node.args.get("fill_pattern")
    pattern: Expr = build(fill) if fill is not None else Lit(" ", "string")
    args = [build(node.this), build(node.args["expression"]), pattern]
    return _call(name, args, ("string", "int", "string"), "string", settings)


def _position(node: exp.Func, build: Build, settings: TextSettings) -> Expr:
    where = node.args.get("position")
    text, part = build(node.this), build(node.args["substr"])
    if where is None:
        return _call("instr", [text, part], ("string", "string"), "int", settings)
    return _call("locate", [part, text, build(where)], ("string", "string", "int"), "int", settings)


def _round(node: exp.Func, build: Build, settings: TextSettings) -> Expr:
    value = build(node.this)
    places = node.args.get("decimals")
    count = build(places) if places is not None else Lit(0, "int")
    kind = (
        rounded_type(value.type, count.value)
        if isinstance(count, Lit) and isinstance(count.value, int)
        else None
    )
    if kind is None:
        raise unsupported(
            ReasonCode.UNSUPPORTED_EXPRESSION,
            "round of {type}",
            type=Word(value.type),
        )
    return Call("round", (value, count), kind, True)


def _whole(node: exp.Func, build: Build, settings: TextSettings) -> Expr:
    name = "ceil" if isinstance(node, exp.Ceil) else "floor"
    value = build(node.this)
    parts = decimal_parts(value.type)
    if node.args.get("decimals") is not None or not (parts or value.type in ("double", "bigint")):
        raise unsupported(
            ReasonCode.UNSUPPORTED_EXPRESSION,
            "{name} of {type}",
            name=Word(name),
            type=Word(value.type),
        )
    kind = "bigint"
    if parts is not None:
        kind = decimal_type(parts[0] - parts[1] + 1, 0) if parts[1] else value.type
    return Call(name, (value,), kind, value.nullable)


def _abs(node: exp.Func, build: Build, settings: TextSettings) -> Expr:
    value = build(node.this)
    if not is_numeric(value.type):
        raise unsupported(
            ReasonCode.UNSUPPORTED_EXPRESSION,
            "abs of {type}",
            type=Word(value.type),
        )
    return Call("abs", (value,), value.type, value.nullable)


def _nullif(node: exp.Func, build: Build, settings: TextSettings) -> Expr:
    value = build(node.this)
    equal = compare("eq", value, build(node.args["expression"]), settings)
    return Call("case", (equal, Lit(None, value.type), value), value.type, True)


def _nvl2(node: exp.Func, build: Build, settings: TextSettings) -> Expr:
    test = Call("isnotnull", (build(node.this),), "boolean", False)
    return case([test], [build(node.args["true"]), build(node.args["false"])], True, settings)


def case(
    conditions: list[Expr], values: list[Expr], has_else: bool, settings: TextSettings
) -> Expr:
    """CASE over conditions and one value each, plus the ELSE value last."""
    values = one_type(values, "CASE", settings)
    flat: list[Expr] = []
    for condition, value in zip(conditions, values, strict=False):
        flat += (condition, value)
    if has_else and not (isinstance(values[-1], Lit) and values[-1].value is None):
        flat.append(values[-1])
    else:
        has_else = False
    nullable = not has_else or any(v.nullable for v in values)
    return Call("case", tuple(flat), values[0].type, nullable)


def one_type(args: list[Expr], what: str, settings: TextSettings) -> list[Expr]:
    """The arguments cast to their common type.

    Raises:
        NotSupported: they have none that is known here.
    """
    refuse_mixed_strings(args, what, settings)
    wanted = args[0].type
    for arg in args:
        refuse_char(arg)
        found = common_type(wanted, arg.type, settings)
        if found is None or UNKNOWN in (wanted, arg.type):
            raise unsupported(
                ReasonCode.UNSUPPORTED_EXPRESSION,
                "{what} of {wanted} and {type}",
                what=Word(what),
                wanted=Word(wanted),
                type=Word(arg.type),
            )
        wanted = found
    return [cast_to(a, wanted, settings) for a in args]


_SPECIAL: Final[dict[type[exp.Expr], Callable[[exp.Func, Build, TextSettings], Expr]]] = {
    exp.TsOrDsAdd: _ts_or_ds_add, exp.TsOrDsToDate: _to_date, exp.TimestampTrunc: _date_trunc,
    exp.DateTrunc: _trunc, exp.Extract: _extract, exp.Coalesce: _coalesce, exp.Greatest: _extreme,
    exp.Least: _extreme, exp.Concat: _concat, exp.Trim: _trim, exp.Pad: _pad, exp.Nvl2: _nvl2,
    exp.StrPosition: _position, exp.Round: _round, exp.Ceil: _whole, exp.Floor: _whole,
    exp.Abs: _abs, exp.Nullif: _nullif, exp.ArraySize: array_size, exp.ArraySort: sort_array,
}  # fmt: skip
concat = _concat
