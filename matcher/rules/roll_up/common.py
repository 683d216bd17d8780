"""What the handlers share: stored measures, values of keys, the reason when nothing fits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from matcher.model.expr import Agg, Call, Col, Expr, Lit
from matcher.model.ir import Measure
from matcher.model.message import NOTHING, Arg, CacheName, Message, Sql, Word, listed
from matcher.model.reasons import Reason, ReasonCode
from matcher.model.row_order import adds_floats
from matcher.model.types import INTEGRAL, decimal_parts
from matcher.predicates.captured_settings import WRAPPING_SUM, differing, differing_ansi
from matcher.rules.attempt import Refused, ViewAttempt, cast_to, may_be_error, spell
from matcher.rules.derive_columns import derive

ZERO: Final = Lit(0, "bigint")


class NeedsRegrouping(Exception):
    """The groups are the same, but this aggregate must still be computed: try again with a
    roll-up."""


def column(measure: Measure, type: str) -> Expr:
    """The stored column, as `type`."""
    return cast_to(Col(0, measure.name, measure.agg.type, measure.agg.nullable), type)


def stored(measure: Measure) -> Expr:
    """The stored column in its own type."""
    return column(measure, measure.agg.type)


def lookup(
    attempt: ViewAttempt, func: str, args: tuple[Expr, ...], like: Agg, params: tuple[str, ...] = ()
) -> Measure | None:
    """The stored measure `func(args)` with the FILTER of `like`.

    Whoever wants an aggregate of the same meaning as `like` also passes its `params`: they say what
    it makes of NULL, or of a single row.
    """
    wanted = Agg(func, args, like.type, filter=like.filter, params=params)
    return attempt.stored_aggs.get(attempt.context.canonical(wanted))


def keyed(attempt: ViewAttempt, expr: Expr) -> Expr | None:
    """`expr` where it is the same for all rows behind one stored row: made of keys and constants.

    A bare FLOAT or DOUBLE key is none: Spark groups -0.0 with 0.0.
    """
    noted = len(attempt.notes.missing)
    found = derive(attempt, expr, "aggregate", constants=True)
    if found is None:
        del attempt.notes.missing[noted:]
        return None
    return None if attempt.is_blurred_key(found) else found


def has_no_keys(attempt: ViewAttempt) -> bool:
    """True if the view's one row may stand for no row at all: a global aggregate over no input. So
    has a cube's empty set in most systems, though not in Spark."""
    chosen = attempt.grouping_set
    return attempt.view.keys == () or (chosen is not None and not chosen.keys)


def may_hold_no_rows(attempt: ViewAttempt, like: Agg) -> bool:
    """True if a stored row may stand for no row at all: without keys, or where only the rows that
    pass a FILTER count."""
    return like.filter is not None or has_no_keys(attempt)


def row_count(attempt: ViewAttempt, like: Agg) -> Expr | None:
    """How many rows (that pass the FILTER of `like`) one stored row stands for."""
    measure = lookup(attempt, "count", (), like)
    return None if measure is None else stored(measure)


def present(attempt: ViewAttempt, value: Expr, like: Agg) -> Expr | None:
    """`value`, which all rows behind a stored row share, or NULL where there are none."""
    if not may_hold_no_rows(attempt, like):
        return value
    rows = row_count(attempt, like)
    if rows is None:
        return None
    some = Call("gt", (rows, ZERO), "boolean")
    return Call("case", (some, value), value.type)


def never_null(attempt: ViewAttempt, arg: Expr, like: Agg) -> bool:
    """By schema, by the query's own predicates, or counted when the cache was refreshed. What may
    be an error of some rows is so only where the cache has worked it out."""
    context = attempt.context
    if context.never_null(context.canonical(arg)) and not may_be_error(attempt, (arg,)):
        return True
    measure = lookup(attempt, "sum", (arg,), like) or lookup(attempt, "count", (arg,), like)
    return measure is not None and measure.name in attempt.view.plan.non_null


def branches(case: Call) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """(conditions, values) of a CASE; one value more than conditions if it has an ELSE."""
    pairs = len(case.args) // 2
    values = [case.args[2 * i + 1] for i in range(pairs)]
    if len(case.args) % 2:
        values.append(case.args[-1])
    return tuple(case.args[2 * i] for i in range(pairs)), tuple(values)


def case_of(conditions: tuple[Expr, ...], values: tuple[Expr, ...]) -> Call:
    """The CASE with these conditions and values, the inverse of `branches`."""
    flat = [part for pair in zip(conditions, values, strict=False) for part in pair]
    flat += values[len(conditions) :]
    return Call("case", tuple(flat), values[0].type)


def keyed_all(attempt: ViewAttempt, exprs: tuple[Expr, ...]) -> tuple[Expr, ...] | None:
    """All of `exprs` as `keyed`, None where one is not."""
    found = [keyed(attempt, e) for e in exprs]
    done = tuple(f for f in found if f is not None)
    return done if len(done) == len(found) else None


def case_over_keys(
    attempt: ViewAttempt, case: Call, part: Callable[[Expr], Expr | None]
) -> tuple[tuple[Expr, ...], tuple[Expr, ...]] | None:
    """A CASE whose conditions are about keys, each value as the part that `part` makes of it.

    Returns:
        (conditions, parts), one part more than conditions if it has an ELSE; None where a condition
        is not about keys or a value has no part.
    """
    conditions, values = branches(case)
    tests = keyed_all(attempt, conditions)
    if tests is None:
        return None
    parts = [part(value) for value in values]
    done = tuple(p for p in parts if p is not None)
    return (tests, done) if len(done) == len(parts) else None


def widens(inner: str, outer: str) -> bool:
    """True if a cast changes no number: to a larger integer, or to a decimal with more digits on
    both sides."""
    if inner in INTEGRAL and outer in INTEGRAL:
        return INTEGRAL[inner] <= INTEGRAL[outer]
    target = decimal_parts(outer)
    source = (_DIGITS[inner], 0) if inner in _DIGITS else decimal_parts(inner)
    if target is None or source is None:
        return False
    return source[0] - source[1] <= target[0] - target[1] and source[1] <= target[1]


_DIGITS: Final = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}


def not_derivable(attempt: ViewAttempt, agg: Agg, why: Message = NOTHING) -> Refused:
    """The refusal of an aggregate that nothing stored gives."""
    options = attempt.options
    captured = differing(agg, ansi=options.ansi, time_zone=options.time_zone)
    if agg.func == WRAPPING_SUM and captured is None:
        captured = differing_ansi(f"sum({spell(agg.args[0])})", ansi=options.ansi)
    if captured is not None:
        return Refused(captured)
    stored = [spell(m.agg) for _, m in attempt.view.measures if not m.hidden]
    template = "{agg} cannot be computed from {view}, which stores {stored}"
    return Refused(
        Reason(
            ReasonCode.AGG_NOT_DERIVABLE,
            template + ": {why}" if why else template,
            _how_to_store(attempt, agg),
            agg=Sql(spell(agg)),
            view=attempt.view_name(),
            stored=listed(Sql, stored) if stored else Word("no aggregate"),
            why=why,
            cache=CacheName(attempt.view.name),
        )
    )


def _how_to_store(attempt: ViewAttempt, agg: Agg) -> str:
    """What would help, as a template for the names that `not_derivable` puts in."""
    known = attempt.context.canonical(agg) in attempt.stored_aggs
    if known or (agg.func == "percentile" and attempt.groups.regroup):  # nothing adds it up
        return "declare a cache that groups as the query does, and stores it"
    return "add {agg} to the SELECT list of {cache}"


def float_not_exact(agg: Agg, template: str, /, **args: Arg) -> Refused:
    """The refusal of a floating point result that depends on the order of addition."""
    decimal = adds_floats(agg) and agg.func in ("sum", "avg")
    return Refused(
        Reason(
            ReasonCode.FLOAT_NOT_EXACT,
            "{agg} {what}",
            "store the query's grouping,{decimal} or set spark.cachemgr.approximateFloats=true",
            agg=Sql(spell(agg)),
            what=Message(template, **args),
            decimal=Word(" use DECIMAL," if decimal else ""),
        )
    )
