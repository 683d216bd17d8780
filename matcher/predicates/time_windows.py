"""`window(ts, …)`, the buckets of one width that follow each other without a gap.

Spark makes arithmetic of it before the hook sees a query: the microseconds since 1970 less what
they are more than a multiple of the width, and that plus the width, in a struct of `start` and
`end`. Here it is one call again, of a TIMESTAMP, with the width and the place of the first bucket
after 1970 as parameters, both in microseconds. No calendar and no time zone has a part in it.

Sliding windows, which overlap, put a row into several buckets: Spark expands the rows, and no block
holds that. `session_window` and windows of a TIMESTAMP_NTZ stay Spark's own expressions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from matcher.model.expr import OPAQUE_PREFIX, Call, Expr, Lit

WINDOW: Final = "window"
_STRUCT: Final = "struct<start:timestamp,end:timestamp>"
_ZERO: Final = Lit(0, "bigint")


@dataclass(frozen=True, slots=True)
class Buckets:
    """The buckets of a `window` call: of what, how wide, and where one of them starts."""

    of: Expr
    width: int
    origin: int


def read_window(expr: Expr) -> Buckets | None:
    """What a `window` call says; None for anything else."""
    if not isinstance(expr, Call) or expr.op != WINDOW:
        return None
    return Buckets(expr.args[0], int(expr.params[0]), int(expr.params[1]))


def holds_whole(wide: Buckets, fine: Buckets) -> bool:
    """True if each of the finer buckets lies within one of the wider ones.

    >>> hour, five = Buckets(_ZERO, 3600, 0), Buckets(_ZERO, 300, 0)
    >>> holds_whole(hour, five), holds_whole(five, hour)
    (True, False)
    >>> holds_whole(hour, Buckets(_ZERO, 300, 60)), holds_whole(hour, Buckets(_ZERO, 420, 0))
    (False, False)
    """
    aligned = (wide.origin - fine.origin) % fine.width == 0
    return wide.of == fine.of and wide.width % fine.width == 0 and aligned


def over(call: Expr, of: Expr) -> Call:
    """The `window` call of something else."""
    assert isinstance(call, Call)
    return Call(call.op, (of,), call.type, call.nullable, call.params)


def side_of(expr: Call) -> Expr:
    """The start or end of a bucket as a field of its `window`, where an expression is one; else
    the expression itself.

    Args:
        expr: What Spark makes of it, `KnownNullable(PreciseTimestampConversion(…))`.
    """
    micros = _inside(_inside(expr, "KnownNullable"), "PreciseTimestampConversion", "LongType")
    if micros is None:
        return expr
    found = _start(micros)
    if found is not None:
        return _field(found, "start")
    if isinstance(micros, Call) and micros.op == "add" and isinstance(micros.args[1], Lit):
        found = _start(micros.args[0])
        if found is not None and micros.args[1].value == found.width:  # else they overlap
            return _field(found, "end")
    return expr


def whole_of(expr: Call) -> Expr:
    """The `window` that a struct of its two sides is; else the expression itself.

    Args:
        expr: `CreateNamedStruct`.
    """
    if len(expr.args) != 4 or expr.type != _STRUCT:
        return expr
    sides = expr.args[1::2]
    names = [n.value if isinstance(n, Lit) else None for n in expr.args[::2]]
    if names != ["start", "end"] or not all(isinstance(s, Call) for s in sides):
        return expr
    fields = [s for s in sides if isinstance(s, Call) and s.op == "field"]
    if [f.params for f in fields] != [("start",), ("end",)] or fields[0].args != fields[1].args:
        return expr
    return fields[0].args[0] if read_window(fields[0].args[0]) is not None else expr


def _field(found: Buckets, name: str) -> Call:
    params = (str(found.width), str(found.origin))
    struct = Call(WINDOW, (found.of,), _STRUCT, False, params)
    return Call("field", (struct,), "timestamp", True, (name,))


def _inside(expr: Expr | None, cls: str, param: str | None = None) -> Expr | None:
    if not isinstance(expr, Call) or expr.op != OPAQUE_PREFIX + cls or len(expr.args) != 1:
        return None
    return expr.args[0] if expr.params == (() if param is None else (param,)) else None


def _start(micros: Expr) -> Buckets | None:
    """The buckets of which an expression is the start, in microseconds: `(t - last) - 0`."""
    outer = _operands(micros, "sub")
    inner = None if outer is None or outer[1] != _ZERO else _operands(outer[0], "sub")
    if inner is None:
        return None
    time, last = inner
    of = _inside(time, "PreciseTimestampConversion", "TimestampType")
    if of is None or of.type != "timestamp":
        return None
    # CASE WHEN r < 0 THEN r + width ELSE r END, with r = (t - origin) % width
    if not isinstance(last, Call) or last.op != "case" or len(last.args) != 3:
        return None
    rest = last.args[2]
    parts = _operands(rest, "mod")
    shifted = None if parts is None else _operands(parts[0], "sub")
    if parts is None or shifted is None or shifted[0] != time:
        return None
    width, origin = parts[1], shifted[1]
    if not isinstance(width, Lit) or not isinstance(origin, Lit):
        return None
    negative = Call("lt", (rest, _ZERO), "boolean")
    if last.args[:2] != (negative, Call("add", (rest, width), "bigint")):
        return None
    if not isinstance(width.value, int) or not isinstance(origin.value, int) or width.value <= 0:
        return None
    return Buckets(of, width.value, origin.value % width.value)


def _operands(expr: Expr, op: str) -> tuple[Expr, Expr] | None:
    if not isinstance(expr, Call) or expr.op != op or len(expr.args) != 2:
        return None
    return expr.args[0], expr.args[1]
