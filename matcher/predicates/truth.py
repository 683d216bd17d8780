"""What a predicate about one operand says, in three-valued logic: where it is TRUE and where FALSE.

For the rest of the operand's values it is NULL. With both sets known, NOT, AND, OR, `<=>`, IS NULL,
COALESCE and CASE are set algebra, and no shortcut can lose the third value. A predicate over an
order-keeping function (`year(d) = 1994`) is read as one over the function's argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from matcher.model.expr import Call, Col, Expr, Lit
from matcher.model.operators import COMPARISONS, FLIPPED, OPERATORS
from matcher.model.types import FLOATS, INTEGRAL
from matcher.predicates.domains import (
    EVERYTHING,
    NOT_NULL,
    NOTHING,
    NULL_ONLY,
    Domain,
    Interval,
    Value,
    intersect_all,
    normal,
    point,
    prefix,
    union_all,
    universe,
    value_of,
)
from matcher.predicates.like_patterns import split_prefix
from matcher.predicates.monotone import chain, preimage

# the operand that a comparison of two expressions is about: -1, 0 or 1 as the first is less,
# equal or more; never rendered, never stored
ORDER: Final = "cmp"
_UNORDERED: Final = ("map", "variant", "struct", "array", "interval")


@dataclass(frozen=True, slots=True)
class Truth:
    """The operand's values where a predicate is TRUE, and where it is FALSE."""

    true: Domain
    false: Domain

    @property
    def null(self) -> Domain:
        """Where it is NULL."""
        return self.true.union(self.false).complement(null=not (self.true.null or self.false.null))


_ALWAYS: Final = Truth(EVERYTHING, NOTHING)
_NEVER: Final = Truth(NOTHING, EVERYTHING)
_UNKNOWN: Final = Truth(NOTHING, NOTHING)

# the operand is None for a constant, which is about whatever it is combined with
Found = tuple["Expr | None", Truth]


def domain_of(predicate: Expr) -> tuple[Expr, Domain] | None:
    """The operand of a canonical predicate and the values for which it is true.

    None when it is about several operands. A predicate of which nothing else is known is an operand
    itself, true where it is TRUE.

    >>> from matcher.model.expr import Col
    >>> x = Col(0, "x", "int")
    >>> domain_of(Call("gt", (x, Lit(4, "int")), "boolean"))[1].intervals[0].low
    5
    """
    known = _read.get(id(predicate))
    if known is not None and known[0] is predicate:
        return known[1]
    domain = _plain(predicate) if isinstance(predicate, Call) else None
    if domain is None:
        found = truth_of(predicate)
        domain = None if found is None or found[0] is None else (found[0], found[1].true)
    if len(_read) >= _READ_CAPACITY:
        _read.clear()
    _read[id(predicate)] = (predicate, domain)
    return domain


# A query's predicate is read once for each of the caches that it is compared with. Found by
# identity, since equal expressions may differ in type and nullability; the entry keeps it alive.
_READ_CAPACITY: Final = 4096
_read: dict[int, tuple[Expr, tuple[Expr, Domain] | None]] = {}


def _plain(call: Call) -> tuple[Expr, Domain] | None:
    """What most predicates are, a column against a constant, without the FALSE side of it."""
    operand = call.args[0]
    if not isinstance(operand, Col):
        return None
    if call.op == "isnotnull":
        return operand, NOT_NULL
    if call.op == "in" and operand.type not in FLOATS:
        values = [
            value_of(item) if isinstance(item, Lit) and item.type == operand.type else None
            for item in call.args[1:]
        ]
        return None if None in values else (operand, normal([point(v) for v in values], False))
    if call.op not in COMPARISONS:
        return None
    right = call.args[1]
    if not isinstance(right, Lit) or right.type != operand.type:
        return None
    value = value_of(right)
    return None if value is None else (operand, compared(call.op, value))


def truth_of(predicate: Expr) -> Found | None:
    """The operand of a canonical predicate and where it is TRUE and FALSE, None when it is about
    several."""
    if isinstance(predicate, Lit):
        if predicate.value is None:
            return None, _UNKNOWN
        if predicate.type != "boolean":
            return None
        return None, _ALWAYS if predicate.value else _NEVER
    if not isinstance(predicate, Call):
        return _itself(predicate) if predicate.type == "boolean" else None
    handler = _HANDLERS.get(predicate.op)
    if handler is not None:
        return handler(predicate)
    if predicate.op in COMPARISONS:
        return _comparison(predicate)
    return _itself(predicate)


def _itself(predicate: Expr) -> Found:
    return predicate, Truth(normal([point(1)], False), normal([point(0)], False))


def _leaf(operand: Expr, truth: Truth) -> Found:
    """Read through order-keeping functions as far inwards as both sets can be taken."""
    for function in chain(operand):
        true, false = preimage(function, truth.true), preimage(function, truth.false)
        if true is None or false is None:
            break
        operand, truth = function.argument, Truth(true, false)
    bounds = universe(operand.type)
    return operand, Truth(truth.true.intersect(bounds), truth.false.intersect(bounds))


def innermost(operand: Expr, values: Domain) -> tuple[Expr, Domain]:
    """A set of values as one of the argument that order-keeping functions made it from."""
    found, truth = _leaf(operand, Truth(values, NOTHING))
    return found or operand, truth.true


def _strict(operand: Expr, true: Domain) -> Found:
    """A predicate that is NULL where its operand is, and nowhere else."""
    return _leaf(operand, Truth(true, true.complement(null=False)))


def _comparison(call: Call) -> Found | None:
    left, right = call.args
    if isinstance(right, Lit):
        if right.value is None:
            return None, _UNKNOWN
        value = value_of(right)
        if value is None or isinstance(left, Lit) or left.type != right.type:
            return _itself(call)
        return _strict(left, compared(call.op, value))
    if left == right:
        holds = 0 in OPERATORS[call.op].signs
        return _strict(left, NOT_NULL if holds else NOTHING)
    if left.type != right.type or left.type.startswith(_UNORDERED):
        return _itself(call)
    op = call.op
    if repr(right) < repr(left):
        left, right, op = right, left, FLIPPED[op]
    order = Call(ORDER, (left, right), ORDER, call.nullable)
    true = normal([point(sign) for sign in OPERATORS[op].signs], False)
    signs = normal([Interval(-1, True, 1, True)], False)
    return order, Truth(true, signs.minus(true))


def compared(op: str, value: Value) -> Domain:
    """The values that compare so with a constant."""
    if op == "eq":
        return Domain((point(value),))
    if op == "ne":
        return normal([point(value)], False).complement(null=False)
    below = op in ("lt", "le")
    closed = op in ("le", "ge")
    if type(value) is int and not closed:
        value, closed = value + (-1 if below else 1), True
    return Domain((Interval(None, False, value, closed) if below else
                   Interval(value, closed, None, False),))  # fmt: skip


def _null_safe(call: Call) -> Found | None:
    left, right = call.args
    if not isinstance(right, Lit):
        return (None, _ALWAYS) if left == right else _itself(call)
    if right.value is None:
        return _nullness(Call("isnull", (left,), "boolean", False))
    if right.type == "boolean":
        inner = truth_of(left)
        if inner is None:
            return _itself(call)
        wanted = inner[1].true if right.value else inner[1].false
        return inner[0], _two_valued(inner[0], wanted)
    value = value_of(right)
    if value is None or left.type != right.type:
        return _itself(call)
    true = compared("eq", value)
    return _leaf(left, Truth(true, true.complement(null=True)))


def _two_valued(operand: Expr | None, true: Domain) -> Truth:
    bounds = EVERYTHING if operand is None else universe(operand.type)
    return Truth(true, bounds.minus(true))


def _nullness(call: Call) -> Found | None:
    arg = call.args[0]
    if arg.type == "boolean" and isinstance(arg, (Call, Lit)):
        inner = truth_of(arg)
        if inner is not None:
            wanted = inner[1].null if call.op == "isnull" else inner[1].true.union(inner[1].false)
            if inner[0] is not None:
                wanted = wanted.intersect(universe(inner[0].type))
            return inner[0], _two_valued(inner[0], wanted)
    truth = Truth(NULL_ONLY, NOT_NULL)
    return _leaf(arg, truth if call.op == "isnull" else Truth(NOT_NULL, NULL_ONLY))


def _connection(call: Call) -> Found | None:
    parts = [truth_of(arg) for arg in call.args]
    operands = {p[0] for p in parts if p is not None and p[0] is not None}
    if None in parts or len(operands) > 1:
        return None
    true = [p[1].true for p in parts if p is not None]
    false = [p[1].false for p in parts if p is not None]
    if call.op == "and":
        found = Truth(intersect_all(true), union_all(false))
    else:
        found = Truth(union_all(true), intersect_all(false))
    return next(iter(operands), None), found


def _negation(call: Call) -> Found | None:
    inner = truth_of(call.args[0])
    return None if inner is None else (inner[0], Truth(inner[1].false, inner[1].true))


def _membership(call: Call) -> Found | None:
    operand, items = call.args[0], call.args[1:]
    points, with_null = [], False
    for item in items:
        if not isinstance(item, Lit) or (item.value is not None and item.type != operand.type):
            return _itself(call)
        if item.value is None:
            with_null = True
            continue
        value = value_of(item)
        if value is None or (operand.type in FLOATS and not _is_whole(operand)):
            return _itself(call)  # long lists are looked up by identity: -0.0 is not found as 0.0
        if value == 0 and str(item.value).startswith("-"):
            return _itself(call)
        points.append(point(value))
    true = normal(points, False)
    if with_null:  # x IN (…, NULL) is never FALSE
        return _leaf(operand, Truth(true, NOTHING))
    return _strict(operand, true)


def _is_whole(operand: Expr) -> bool:
    """True for a whole number as FLOAT or DOUBLE, which is never -0.0."""
    return isinstance(operand, Call) and operand.op == "cast" and operand.args[0].type in INTEGRAL


def _starts(call: Call) -> Found | None:
    value, text = call.args
    if (
        isinstance(text, Lit)
        and isinstance(text.value, str)
        and text.type == value.type == "string"
    ):
        return _strict(value, normal([prefix(text.value)], False) if text.value else NOT_NULL)
    return _itself(call)


def _like(call: Call) -> Found | None:
    value, pattern = call.args
    if isinstance(pattern, Lit) and isinstance(pattern.value, str) and value.type == "string":
        found = split_prefix(pattern.value, call.params)
        if found is not None and found[1] == "exact":
            return _strict(value, normal([point(found[0])], False))
        if found is not None and found[1] == "any":
            return _strict(value, normal([prefix(found[0])], False) if found[0] else NOT_NULL)
    return _itself(call)


def _nan_test(call: Call) -> Found | None:
    operand = call.args[0]
    if operand.type not in ("double", "float"):
        return _itself(call)
    true = normal([point(value_of(Lit(float("nan"), "double")))], False)
    # isnan(NULL) is false, not NULL
    return _leaf(operand, Truth(true, true.complement(null=True)))


def _choice(call: Call) -> Found | None:
    """CASE over one operand: each branch takes its part of what the earlier ones left."""
    args: Sequence[Expr] = call.args
    parts = [truth_of(arg) for arg in args]
    operands = {p[0] for p in parts if p is not None and p[0] is not None}
    if call.type != "boolean" or None in parts or len(operands) > 1:
        return _itself(call)
    truths = [p[1] for p in parts if p is not None]
    rest, true, false = EVERYTHING, NOTHING, NOTHING
    for i in range(len(truths) // 2):
        here = rest.intersect(truths[2 * i].true)
        true = true.union(here.intersect(truths[2 * i + 1].true))
        false = false.union(here.intersect(truths[2 * i + 1].false))
        rest = rest.minus(truths[2 * i].true)
    if len(truths) % 2:
        true = true.union(rest.intersect(truths[-1].true))
        false = false.union(rest.intersect(truths[-1].false))
    return next(iter(operands), None), Truth(true, false)


def _first_known(call: Call) -> Found | None:
    """COALESCE of predicates over one operand."""
    parts = [truth_of(arg) for arg in call.args]
    operands = {p[0] for p in parts if p is not None and p[0] is not None}
    if call.type != "boolean" or None in parts or len(operands) > 1:
        return _itself(call)
    rest, true, false = EVERYTHING, NOTHING, NOTHING
    for part in parts:
        assert part is not None
        true = true.union(rest.intersect(part[1].true))
        false = false.union(rest.intersect(part[1].false))
        rest = rest.intersect(part[1].null)
    return next(iter(operands), None), Truth(true, false)


_HANDLERS: Final = {
    "isnull": _nullness, "isnotnull": _nullness, "nseq": _null_safe, "and": _connection,
    "or": _connection, "not": _negation, "in": _membership, "startswith": _starts, "like": _like,
    "isnan": _nan_test, "case": _choice, "coalesce": _first_known,
}  # fmt: skip
