"""One spelling for expressions that Spark evaluates alike, and what a filter needs of a predicate.

`spell` keeps the value, NULL included, so it holds anywhere. `holds` keeps only whether a predicate
is TRUE, which is all that WHERE, HAVING, FILTER and an inner join ask.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from matcher.model.expr import FALSE, TRUE, Agg, Call, Expr, Lit
from matcher.model.operators import COMMUTES, COMPARISONS, FLIPPED, NEGATION
from matcher.model.types import INTEGRAL
from matcher.predicates.constant_folding import NULL, fold
from matcher.predicates.null_sources import NULL_TESTS, tested_sources
from matcher.predicates.raising import may_raise, settles

_PUSHED: Final = frozenset("eq ne lt le gt ge in startswith".split())
_JUNCTIONS: Final = ("and", "or")
_MAX_BRANCHES: Final = 4
_UNITS: Final = {
    "YYYY": "YEAR", "YY": "YEAR", "MM": "MONTH", "MON": "MONTH", "DD": "DAY",
}  # fmt: skip


def spell(call: Call) -> Expr:
    """One spelling for calls that Spark evaluates alike; arguments are canonical already."""
    found = fold(call)
    if found is not None:
        return found
    if call.op in COMPARISONS and any(isinstance(a, Lit) and a.value is None for a in call.args):
        return NULL
    if call.op in ("trunc", "date_trunc"):
        return _with(call, call.op, tuple(map(_unit, call.args)))
    return _spell(call)


def _unit(arg: Expr) -> Expr:
    """Units are read without regard to case, and some have several names."""
    if not isinstance(arg, Lit) or arg.type != "string" or arg.value is None:
        return arg
    word = str(arg.value).upper()
    return Lit(_UNITS.get(word, word), "string")


def _spell(call: Call) -> Expr:
    handler = _SPELL.get(call.op)
    return call if handler is None else handler(call)


def _spell_comparison(call: Call) -> Expr:
    """A constant on the right, else the smaller side on the left; equal ones in one order."""
    op, (left, right) = call.op, call.args
    if isinstance(left, Lit) and not isinstance(right, Lit):
        return _spell_comparison(_with(call, FLIPPED[op], (right, left)))
    if op in ("gt", "ge") and not isinstance(right, Lit):
        return _with(call, FLIPPED[op], (right, left))
    if op == "nseq":
        return _spell_null_safe(call)
    at_the_end = _at_the_end(call)
    if at_the_end is not None:
        return at_the_end
    if op in ("eq", "ne") and right in (TRUE, FALSE):
        # NULL = TRUE is NULL, as the operand itself is
        same = (op == "eq") is (right == TRUE)
        return left if same else _spell_not(_with(call, "not", (left,)))
    return _in_order(call) if op in COMMUTES else call


def _spell_null_safe(call: Call) -> Expr:
    left, right = call.args
    if left == right:
        return TRUE
    if isinstance(right, Lit) and right.value is None:
        return Call("isnull", (left,), call.type, nullable=False)
    return _in_order(call)


def _in_order(call: Call) -> Expr:
    """An operator whose arguments may stand in any order, but for a constant on the right."""
    if isinstance(call.args[1], Lit):
        return call
    return _with(call, call.op, tuple(sorted(call.args, key=repr)))


def _spell_junction(call: Call) -> Expr:
    op = call.op
    flat = [p for a in call.args for p in (a.args if isinstance(a, Call) and a.op == op else (a,))]
    neutral, absorbing = (TRUE, FALSE) if op == "and" else (FALSE, TRUE)
    parts = _with_opposites_told(op, dict.fromkeys(flat))
    if settles(parts, absorbing):
        return absorbing
    unique = tuple(sorted((p for p in parts if p != neutral), key=repr)) or (neutral,)
    return unique[0] if len(unique) == 1 else _with(call, op, unique)


def _spell_in(call: Call) -> Expr:
    operand, *items = call.args
    if not all(isinstance(item, Lit) for item in items):
        return call
    values = tuple(sorted(dict.fromkeys(items), key=repr))
    if len(values) == 1:
        return spell(_with(call, "eq", (operand, values[0])))
    return _with(call, "in", (operand, *values))


def _with_opposites_told(op: str, parts: dict[Expr, None]) -> dict[Expr, None]:
    """`p OR NOT p` as `p IS NOT NULL OR NULL`, and `p AND NOT p` as `p IS NULL AND NULL`, as
    Spark's BooleanSimplification leaves them. Not where nothing would be left to raise the error
    that `p` may: Spark takes `10 / k IS NULL` for no opposite of `10 / k IS NOT NULL`.

    The opposite of an OR below an AND would be parts of that AND itself, so it is not asked for: to
    spell it would ask the same of each part below, and take twice as long with every level."""
    pairs = {
        part: opposite
        for part in parts
        if not (isinstance(part, Call) and part.op in _JUNCTIONS)
        and (opposite := _spell_not(Call("not", (part,), "boolean", part.nullable))) in parts
        and _may_be_told(part)
    }
    if not pairs:
        return parts
    part = min(pairs, key=repr)
    rest = [p for p in parts if p not in (part, pairs[part])]
    return dict.fromkeys([*rest, *_true_or_null(op, part)])


def _may_be_told(operand: Expr) -> bool:
    """True if what `_true_or_null` says of it is no less of an error than it is."""
    return operand.nullable or not may_raise(operand, overflow=False)


def _true_or_null(op: str, operand: Expr) -> tuple[Expr, ...]:
    """What is to be joined by OR to be TRUE, or by AND to be FALSE, but NULL where `operand` is."""
    if not operand.nullable:
        return (TRUE if op == "or" else FALSE,)
    test = "isnotnull" if op == "or" else "isnull"
    return NULL, _null_test(Call(test, (operand,), "boolean", False))


def _at_the_end(call: Call) -> Expr | None:
    """A comparison of whole numbers with the least or the greatest one of their type, as Spark's
    UnwrapCastInBinaryComparison leaves it; `<>` as the range that it is."""
    operand, end = call.args
    bits = INTEGRAL.get(operand.type) if _may_be_told(operand) else None
    if bits is None or not isinstance(end, Lit) or end.type != operand.type:
        return None
    greatest = 2 ** (bits - 1) - 1
    if end.value not in (greatest, -greatest - 1):
        return None
    inwards, outwards = ("lt", "gt") if end.value == greatest else ("gt", "lt")
    if call.op in (outwards, NEGATION[outwards]):
        op = "and" if call.op == outwards else "or"
        parts = _true_or_null(op, operand)
        return parts[0] if len(parts) == 1 else _spell(_with(call, op, parts))
    if call.op == "ne":
        return _with(call, inwards, call.args)
    return _with(call, "eq", call.args) if call.op == NEGATION[inwards] else None


def _null_test(call: Call) -> Expr:
    """IS [NOT] NULL of the parts that make the operand NULL."""
    sources = tested_sources(call.args[0])
    if not sources or sources == call.args:
        return call
    parts = tuple(Call(call.op, (source,), "boolean", False) for source in sources)
    return parts[0] if len(parts) == 1 else _spell(_with(call, NULL_TESTS[call.op], parts))


def _spell_not(call: Call) -> Expr:
    inner = call.args[0]
    if not isinstance(inner, Call):
        return call
    if inner.op == "not":
        return inner.args[0]
    if inner.op in NEGATION:
        return _spell(_with(inner, NEGATION[inner.op], inner.args))
    if inner.op in _JUNCTIONS:  # De Morgan holds in three-valued logic
        parts = tuple(_spell_not(_with(call, "not", (arg,))) for arg in inner.args)
        return _spell(_with(inner, "or" if inner.op == "and" else "and", parts))
    return call


_SPELL: Final[dict[str, Callable[[Call], Expr]]] = {
    **dict.fromkeys(NULL_TESTS, _null_test),
    **dict.fromkeys(COMMUTES, _in_order),
    **dict.fromkeys(FLIPPED, _spell_comparison),
    **dict.fromkeys(_JUNCTIONS, _spell_junction),
    "not": _spell_not,
    "in": _spell_in,
}


def spell_agg(agg: Agg) -> Agg:
    """A FILTER takes the rows where it is TRUE, and one that always is is none. SUM and AVG widen
    whole numbers themselves, so a widening cast below them changes nothing; COUNT of several
    arguments counts the rows where none is NULL, in whatever order."""
    if agg.filter is not None:
        taken = holds(agg.filter)
        if taken == TRUE:
            kept = agg.filter if may_raise(agg.filter, overflow=False) else None
        else:
            kept = taken
        agg = Agg(agg.func, agg.args, agg.type, agg.nullable, agg.distinct, kept, agg.params)
    if agg.func == "count" and len(agg.args) > 1:
        args = tuple(sorted(dict.fromkeys(agg.args), key=repr))
        return Agg("count", args, agg.type, agg.nullable, agg.distinct, agg.filter, agg.params)
    arg = agg.args[0] if agg.func in ("sum", "try_sum", "avg") and len(agg.args) == 1 else None
    if not isinstance(arg, Call) or arg.op != "cast":
        return agg
    inner = arg.args[0]
    if INTEGRAL.get(inner.type, 99) > INTEGRAL.get(arg.type, 0):
        return agg
    return Agg(agg.func, (inner,), agg.type, agg.nullable, agg.distinct, agg.filter, agg.params)


def _with(call: Call, op: str, args: tuple[Expr, ...]) -> Call:
    return Call(op, args, call.type, call.nullable, call.params)


# -- what a filter needs --------------------------------------------------------------------------


def holds(predicate: Expr) -> Expr:
    """A predicate that is TRUE where the canonical `predicate` is, and may differ elsewhere."""
    if not isinstance(predicate, Call):
        return FALSE if isinstance(predicate, Lit) and predicate.value is None else predicate
    op, args = predicate.op, predicate.args
    if op in ("and", "or"):
        return _join(op, [holds(arg) for arg in args])
    if op == "not":
        return _fails(args[0])
    if op == "nseq" and args[1] in (TRUE, FALSE):
        return holds(args[0]) if args[1] == TRUE else _fails(args[0])
    if op == "coalesce" and len(args) == 2 and args[1] in (TRUE, FALSE):
        return holds(args[0]) if args[1] == FALSE else _unless(args[0], FALSE)
    if op == "case" and predicate.type == "boolean" and len(args) <= 2 * _MAX_BRANCHES + 1:
        return _branches(args)
    if op in _PUSHED and isinstance(args[0], Call) and args[0].op == "case":
        if all(isinstance(a, Lit) for a in args[1:]):
            return holds(_into_branches(predicate, args[0]))
    return predicate


def _fails(predicate: Expr) -> Expr:
    """TRUE where `predicate` is FALSE."""
    if isinstance(predicate, Lit):
        return TRUE if predicate == FALSE else FALSE
    if isinstance(predicate, Call):
        op, args = predicate.op, predicate.args
        if op == "not":
            return holds(args[0])
        if op in ("and", "or"):
            return _join("or" if op == "and" else "and", [_fails(arg) for arg in args])
        if op == "nseq" and args[1] in (TRUE, FALSE):
            return _unless(args[0], args[1])
    return _spell_not(Call("not", (predicate,), "boolean", predicate.nullable))


def _unless(predicate: Expr, value: Expr) -> Expr:
    """TRUE where `predicate` is not `value` (TRUE or FALSE), NULL included."""
    if isinstance(predicate, Lit):
        return FALSE if predicate == value else TRUE
    if isinstance(predicate, Call):
        if predicate.op == "not":
            return _unless(predicate.args[0], FALSE if value == TRUE else TRUE)
        if predicate.op in ("and", "or"):
            # an AND is not TRUE where some part is not, it is not FALSE where no part is
            any_part = (predicate.op == "and") == (value == TRUE)
            parts = [_unless(arg, value) for arg in predicate.args]
            return _join("or" if any_part else "and", parts)
        if predicate.op in ("isnull", "isnotnull", "nseq"):
            return _fails(predicate) if value == TRUE else holds(predicate)
    same = Call("nseq", (predicate, value), "boolean", False)
    return Call("not", (same,), "boolean", False)


def _branches(args: tuple[Expr, ...]) -> Expr:
    """CASE as an OR: a branch counts where no earlier condition was TRUE."""
    parts: list[Expr] = []
    earlier: list[Expr] = []
    for i in range(len(args) // 2):
        condition, value = args[2 * i], args[2 * i + 1]
        parts.append(_join("and", [*earlier, holds(condition), holds(value)]))
        earlier.append(_unless(condition, TRUE))
    if len(args) % 2:
        parts.append(_join("and", [*earlier, holds(args[-1])]))
    return _join("or", parts)


def _into_branches(predicate: Call, case: Call) -> Call:
    """`CASE … END = constant` with the comparison in the branches."""
    args = list(case.args)
    values = [*range(1, len(args), 2), *([len(args) - 1] if len(args) % 2 else [])]
    for i in values:
        test = Call(predicate.op, (args[i], *predicate.args[1:]), "boolean", True)
        args[i] = spell(test)
    return Call("case", tuple(args), "boolean", True)


def _join(op: str, parts: list[Expr]) -> Expr:
    """AND or OR of parts of which only TRUE counts; NULL is as good as FALSE."""
    neutral, absorbing = (TRUE, FALSE) if op == "and" else (FALSE, TRUE)
    flat: list[Expr] = []
    for part in parts:
        if isinstance(part, Lit) and part.value is None:
            part = FALSE
        if part != neutral:
            flat += part.args if isinstance(part, Call) and part.op == op else (part,)
    if not flat:
        return neutral
    if settles(flat, absorbing):
        return absorbing
    unique = tuple(sorted(dict.fromkeys(flat), key=repr))
    return unique[0] if len(unique) == 1 else Call(op, unique, "boolean", True)
