"""Functions that read or write a time by a pattern. The pattern stays as it is written: Spark alone
reads it (`matcher.sql.parse` keeps these calls from the parser).

In the form in which Spark resolves them: `to_date(s, f)` is the date of the timestamp that `s` is
by `f`, and a missing pattern of the Unix functions is written out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from matcher.model.expr import Call, Expr, Lit
from matcher.model.message import Number, Word
from matcher.model.reasons import ReasonCode
from matcher.sql.expressions.coerce import cast_to, refuse_char
from matcher.sql.expressions.scope import unsupported
from matcher.sql.expressions.types import TextSettings

_TIMES: Final = frozenset({"string", "date", "timestamp", "timestamp_ntz"})
_DEFAULT: Final = Lit("yyyy-MM-dd HH:mm:ss", "string")
_READS: Final = {
    "to_timestamp": "timestamp", "to_timestamp_ltz": "timestamp",
    "to_timestamp_ntz": "timestamp_ntz",
}  # fmt: skip
_UNIX: Final = frozenset({"unix_timestamp", "to_unix_timestamp"})
FORMATTED: Final = frozenset({"date_format", "to_date", "from_unixtime", *_READS, *_UNIX})


def formatted(name: str, args: Sequence[Expr], settings: TextSettings) -> Expr:
    """The canonical expression of a call.

    Args:
        name: the function, one of FORMATTED.
        args: its arguments.
        settings: the session's.

    Raises:
        NotSupported: arguments that the function does not take, or of types not known here.
    """
    for arg in args:
        refuse_char(arg)
    if len(args) == 1 and name in _READS:
        return cast_to(args[0], _READS[name], settings)
    if len(args) == 1 and name in ("from_unixtime", *_UNIX):
        args = (args[0], _DEFAULT)
    if len(args) != 2:
        raise unsupported(
            ReasonCode.UNSUPPORTED_EXPRESSION,
            "{name} of {number} arguments",
            name=Word(name),
            number=Number(len(args)),
        )
    pattern = cast_to(args[1], "string", settings)
    if name in ("date_format", "from_unixtime"):
        kind = "timestamp" if name == "date_format" else "bigint"
        value = cast_to(args[0], kind, settings)
        return Call(name, (value, pattern), "string", value.nullable or pattern.nullable)
    if args[0].type not in _TIMES:
        raise unsupported(
            ReasonCode.UNSUPPORTED_EXPRESSION,
            "{name} of {type}",
            name=Word(name),
            type=Word(args[0].type),
        )
    nullable = not settings.ansi or args[0].nullable or pattern.nullable
    if name in _UNIX:
        return Call(name, (args[0], pattern), "bigint", nullable)
    kind = _READS.get(name, "timestamp")
    # what to_timestamp gives is the session's choice, but not what these two do
    read = "to_timestamp_ltz" if kind == "timestamp" else "to_timestamp_ntz"
    found = Call(read, (args[0], pattern), kind, nullable)
    return cast_to(found, "date", settings) if name == "to_date" else found
