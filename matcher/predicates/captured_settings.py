"""Expressions that were resolved under other settings than the session's: a view keeps those of its
creation (the time zone, ANSI), and Spark analyses its body under them.

Some mean the same under both: a cast that has a value for every argument, sums of FLOAT and DOUBLE,
a division by a constant other than zero. What overflows, or fails and is NULL without ANSI, does
not; nor what reads a time zone.
"""

from __future__ import annotations

from typing import Final

from matcher.model.errors import NotSupported
from matcher.model.expr import OPAQUE_PREFIX, Call, Expr, Lit, walk
from matcher.model.message import Setting, Sql
from matcher.model.reasons import Reason, ReasonCode
from matcher.model.types import FLOATS, INTEGRAL, MAX_DECIMAL, decimal_parts
from matcher.predicates.raising import has_value_for_all

# SUM of whole numbers without ANSI: what overflows starts again from the other end.
WRAPPING_SUM: Final = "wrapping_sum"
_ANSI: Final = "spark.sql.ansi.enabled"
_ZONE: Final = "spark.sql.session.timeZone"
_TEXTS: Final = frozenset({*INTEGRAL, *FLOATS, "boolean", "date", "timestamp", "timestamp_ntz"})
# It would take more than 2^47 rows for their sum to leave BIGINT.
_SMALL: Final = frozenset({"tinyint", "smallint"})


def ansi_of(param: str) -> bool | None:
    """Whether an argument of an expression says ANSI; None if it says neither that nor the
    opposite.

    >>> ansi_of("NumericEvalContext(LEGACY,true)"), ansi_of("ANSI"), ansi_of("Some(UTC)")
    (False, True, None)
    """
    mode = param.removeprefix("NumericEvalContext(").split(",")[0]
    return {"ANSI": True, "LEGACY": False}.get(mode)


def means_the_same(op: str, args: tuple[Expr, ...], type: str) -> bool:
    """True of an operator or cast that gives the same with ANSI and without, for all values.

    Args:
        op: `cast`, or the matcher's name of the operator.
        args: Its arguments.
        type: Of its value.
    """
    parts = decimal_parts(type)
    exact = parts is not None and parts[0] < MAX_DECIMAL  # no digit was cut off
    if op == "cast":
        source = args[0].type
        if type == "string":  # of decimals ANSI writes all digits
            return source in _TEXTS
        return type != "binary" and has_value_for_all(source, type)
    if op in ("add", "sub", "mul"):
        return type in FLOATS or exact
    if len(args) < 2 or not isinstance(args[1], Lit) or args[1].value in (None, 0, -1):
        return False
    if op == "div":
        return type in FLOATS
    return op in ("mod", "idiv") and type in INTEGRAL


def aggregate_as(func: str, kind: str, *, ansi: bool) -> str:
    """The name under which an aggregate call that was resolved with the other ANSI setting means
    in the session what it does.

    Args:
        func: `sum` or `avg`.
        kind: The type of its argument.
        ansi: The session's setting.

    Raises:
        NotSupported: There is none.
    """
    if kind in FLOATS or kind in _SMALL or (func == "avg" and kind in INTEGRAL):
        return func
    if ansi and decimal_parts(kind) is not None:
        return f"try_{func}"  # NULL for what overflows, as without ANSI
    if ansi and kind in INTEGRAL:
        return WRAPPING_SUM
    found = differing_ansi(f"{func}({kind})", ansi=ansi)
    raise NotSupported(found.code, "{why}", why=found.fault)


def differing_ansi(what: str, *, ansi: bool) -> Reason:
    """Why an expression is not matched that was resolved with the other ANSI setting."""
    return _differs(what, _ANSI, str(not ansi).lower(), str(ansi).lower())


def differing(expr: Expr, *, ansi: bool, time_zone: str) -> Reason | None:
    """Which setting of a view's keeps an expression from meaning in the session what it does there;
    None if no setting does.

    Args:
        expr: What no stored column gives.
        ansi: The session's setting.
        time_zone: The session's time zone, "" where it is not known.
    """
    for node in walk(expr):
        if not isinstance(node, Call) or not node.op.startswith(OPAQUE_PREFIX):
            continue
        what = node.op.removeprefix(OPAQUE_PREFIX)
        for param in node.params:
            zone = param[5:-1] if param.startswith("Some(") else ""
            if zone and time_zone and zone != time_zone and ("/" in zone or zone == zone.upper()):
                return _differs(what, _ZONE, zone, time_zone)
            if ansi_of(param) is (not ansi):
                return differing_ansi(what, ansi=ansi)
    return None


def _differs(what: str, key: str, there: str, here: str) -> Reason:
    return Reason(
        ReasonCode.SETTINGS_DIFFER,
        "{call} was resolved under {key} = {there}, which a view keeps from its creation, and "
        "it is {here} in this session",
        "create the view again under {key} = {here}, or ask in a session with {there}",
        call=Sql(what),
        key=Setting(key),
        there=Setting(there),
        here=Setting(here),
    )
