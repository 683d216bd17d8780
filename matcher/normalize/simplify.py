"""What a block's own tables and predicates say of NULL, put into its expressions.

Where `x` is never NULL, `coalesce(x, 0)` is `x`, `x IS NULL` is false, `x <=> 1` is `x = 1`,
`x < 1 OR x >= 1` is true, a branch of CASE under a false condition is gone, COUNT(x) counts rows,
and an aggregate with a false FILTER is what it is of no row (Spark's `SimplifyConditionals`,
`NullPropagation`, `BooleanSimplification`, `EliminateAggregateFilter`). Catalyst is in the midst of
that when the hook sees a plan, and has done some of it; so both doors do it to their blocks, and
compare the same expressions with those of caches. So do they with one case conversion over another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from matcher.model.budget import NODES_A_STEP, spend
from matcher.model.expr import (
    FALSE,
    TRUE,
    Agg,
    Call,
    Expr,
    Lit,
    conjuncts,
    disjuncts,
    rebuild,
)
from matcher.model.ir import Block, OuterJoin
from matcher.model.tree_size import check_size
from matcher.normalize.constant_joins import with_constant_joins
from matcher.normalize.dead_branches import without_dead_branches
from matcher.normalize.outer_joins import settled
from matcher.normalize.semi_joins_of_groups import with_rows_for_groups
from matcher.predicates.canonical import holds, spell
from matcher.predicates.context import PredicateContext
from matcher.predicates.raising import may_raise, settles

NeverNull = Callable[[Expr], bool]
_DECLARED: Final = PredicateContext(())  # knows what tables declare, and nothing else
_CASES: Final = frozenset({"lower", "upper"})
_OF_NO_ROW: Final = frozenset({"count", "sum", "avg", "min", "max"})


def simplified(block: Block) -> Block:
    """`block` in the form that both doors compare: joins that became constants are joins again,
    SEMI joins with groups are joins with their rows, its outer joins settled, and what is known of
    NULL put in; what that leaves of a predicate may settle a join again.

    Raises:
        NotSupported: QUERY_TOO_LARGE where it has more than `budget.MOST_NODES` nodes.
    """
    spend(check_size(block.expressions()) // NODES_A_STEP)
    done = fold_nulls(settled(with_constant_joins(with_rows_for_groups(block))))
    again = done.outer and done.predicates != block.predicates
    return fold_nulls(settled(done)) if again else done


def fold_nulls(block: Block) -> Block:
    """`block` with what is known of NULL in its expressions.

    Predicates are folded by the tables' NOT NULL alone: they are what the rest is known from. So
    are branches of an OR left out that the other predicates let no row take. A join's own condition
    looks at rows of the tables that it adds, which are never NULL where declared so.
    """
    predicates = without_dead_branches(folded(p, _DECLARED.never_null) for p in block.predicates)
    context: list[PredicateContext] = []  # made when it is asked: most blocks do without

    def known(expr: Expr) -> bool:
        if not expr.nullable:
            return True
        if not context:
            context.append(PredicateContext(predicates))
        return context[0].never_null(context[0].canonical(expr))

    keys = block.group_keys
    new = None if keys is None else tuple(folded(k, known) for k in keys)
    places = dict(zip(keys or (), new or (), strict=True))
    regrouped = any(place is not key for key, place in places.items())

    def above(expr: Expr) -> Expr:
        if not regrouped and not _may_change(expr):
            return expr
        return _above(expr, places, known, block.grouping_sets is not None)

    return replace(
        block.map_shown(above),
        outer=tuple(map(_folded_join, block.outer)),
        predicates=tuple(p for p in predicates if p != TRUE),
        group_keys=new,
    )


def _folded_join(join: OuterJoin) -> OuterJoin:
    def known(expr: Expr) -> bool:
        return _DECLARED.never_null(expr) or expr in join.declared

    def over(parts: tuple[Expr, ...]) -> tuple[Expr, ...]:
        done = (part for p in parts for part in conjuncts(folded(p, known)))
        return tuple(part for part in done if part != TRUE)

    sides = tuple(replace(side, where=over(side.where)) for side in join.sides)
    return replace(join, on=over(join.on), sides=sides)


def _may_change(expr: Expr) -> bool:
    """False for most expressions of most queries, which are not built anew then."""
    if isinstance(expr, Call):
        return expr.op in _FOLD or any(map(_may_change, expr.args))
    if isinstance(expr, Agg):
        return expr.filter is not None or _counts(expr) or any(map(_may_change, expr.args))
    return False


def _counts(agg: Agg) -> bool:
    return agg.func == "count" and bool(agg.args) and not agg.distinct


def _above(expr: Expr, keys: dict[Expr, Expr], known: NeverNull, sets: bool) -> Expr:
    """An expression above the grouping: keys as they are now; a key that a set leaves out is NULL
    there, whatever is known of its rows."""
    if expr in keys:
        return keys[expr]
    if isinstance(expr, Agg) or not expr.children:
        return folded(expr, known)
    done = rebuild(expr, tuple(_above(c, keys, known, sets) for c in expr.children))
    if isinstance(expr, Call) and expr.op in _CASES and expr.args[0] in keys:
        return done  # of what was grouped, and not of what that was made of
    return _fold(done, _never_null_aggregate if sets else known)


def _never_null_aggregate(expr: Expr) -> bool:
    return isinstance(expr, Agg) and not expr.nullable


def folded(expr: Expr, known: NeverNull) -> Expr:
    """`expr` where `known` says what is never NULL, from the leaves up."""
    return _folded(expr, known) if _may_change(expr) else expr


def _folded(expr: Expr, known: NeverNull) -> Expr:
    if not expr.children:
        return expr
    return _fold(rebuild(expr, tuple(_folded(child, known) for child in expr.children)), known)


def _fold(expr: Expr, known: NeverNull) -> Expr:
    if isinstance(expr, Agg):
        return _fold_agg(expr, known)
    if not isinstance(expr, Call):
        return expr
    handler = _FOLD.get(expr.op)
    return expr if handler is None else handler(expr, known)


def _fold_agg(agg: Agg, known: NeverNull) -> Expr:
    if _counts(agg) and all(_is_idle(arg, known) for arg in agg.args):
        agg = Agg("count", (), agg.type, False, filter=agg.filter)
    if agg.filter is None:
        return agg
    passes = _asked(agg.filter)
    if passes == FALSE and agg.func in _OF_NO_ROW:
        return Lit(0 if agg.func == "count" else None, agg.type)
    if _passes_all(passes, known):
        return _filtered(agg, None)
    return agg if passes == agg.filter else _filtered(agg, passes)


def _filtered(agg: Agg, condition: Expr | None) -> Agg:
    return Agg(agg.func, agg.args, agg.type, agg.nullable, agg.distinct, condition, agg.params)


def _fold_null_test(call: Call, known: NeverNull) -> Expr:
    return _truth(call.op == "isnotnull") if _is_idle(call.args[0], known) else call


def _fold_null_safe(call: Call, known: NeverNull) -> Expr:
    return Call("eq", call.args, "boolean", False) if all(map(known, call.args)) else call


def _fold_or(call: Call, known: NeverNull) -> Expr:
    return TRUE if _always_one(disjuncts(call), known) else _junction(call, known)


def _fold_not(call: Call, known: NeverNull) -> Expr:
    return _truth(call.args[0] == FALSE) if call.args[0] in (TRUE, FALSE) else call


def _passes_all(condition: Expr, known: NeverNull) -> bool:
    """True of a condition that holds for all rows: `x <= 32767` does where the SMALLINT is known
    not to be NULL."""
    if not isinstance(condition, Call):
        return condition == TRUE
    if may_raise(condition, overflow=False):
        return False
    return _folded(holds(spell(condition)), known) == TRUE


def _is_idle(expr: Expr, known: NeverNull) -> bool:
    """True of what is never NULL, and no error of any row either."""
    return known(expr) and not may_raise(expr, overflow=False)


def _truth(value: bool) -> Lit:
    return TRUE if value else FALSE


def _always_one(parts: tuple[Expr, ...], known: NeverNull) -> bool:
    """True if a part and its opposite are among them, neither of them ever NULL."""
    if all(isinstance(part, Call) and part.op == "eq" for part in parts):
        return False  # the opposite of an equality is none, and most ORs hold nothing else
    return any(
        _is_idle(part, known) and spell(Call("not", (part,), "boolean", part.nullable)) in parts
        for part in parts
    )


def _coalesce(call: Call, known: NeverNull) -> Expr:
    kept: list[Expr] = []
    for arg in call.args:
        if isinstance(arg, Lit) and arg.value is None:
            continue
        kept.append(arg)
        if known(arg):
            break
    if not kept:
        return Lit(None, call.type)
    if len(kept) == 1:
        return _as(call, kept[0])
    return _with(call, tuple(kept))


def _as(call: Call, part: Expr) -> Expr:
    return part if part.type == call.type else Call("cast", (part,), call.type, part.nullable)


def _with(call: Call, args: tuple[Expr, ...]) -> Call:
    if args == call.args:
        return call
    return Call(call.op, args, call.type, call.nullable, call.params)


def _outer_case(call: Call, _known: NeverNull) -> Expr:
    """`lower(upper(x))` is `lower(x)` to Spark's optimiser (`SimplifyCaseConversionExpressions`),
    though the two differ: `upper('ß')` is 'SS'."""
    inner = call.args[0]
    return _with(call, inner.args) if isinstance(inner, Call) and inner.op in _CASES else call


def _asked(condition: Expr) -> Expr:
    """A condition of CASE or FILTER, of which only TRUE counts: NULL is as good as FALSE there
    (Spark's `ReplaceNullWithFalseInPredicate`)."""
    if isinstance(condition, Lit):
        return FALSE if condition.value is None else condition
    if not isinstance(condition, Call) or condition.op not in ("and", "or"):
        return condition
    parts = tuple(map(_asked, condition.args))
    return _junction(_with(condition, parts))


def _case(call: Call, _known: NeverNull) -> Expr:
    kept: list[Expr] = []
    for i in range(len(call.args) // 2):
        condition, value = _asked(call.args[2 * i]), call.args[2 * i + 1]
        if condition == TRUE:
            return _as(call, value) if not kept else _with(call, (*kept, value))
        if condition != FALSE:
            kept += [condition, value]
    rest = call.args[-1:] if len(call.args) % 2 else ()
    if not kept:
        return _as(call, rest[0]) if rest else Lit(None, call.type)
    return _with(call, (*kept, *rest))


def _junction(call: Call, _known: NeverNull | None = None) -> Expr:
    neutral, absorbing = (TRUE, FALSE) if call.op == "and" else (FALSE, TRUE)
    if settles(call.args, absorbing):
        return absorbing
    kept = tuple(a for a in call.args if a != neutral)
    if not kept:
        return neutral
    if len(kept) == 1:
        return kept[0]
    return _with(call, kept)


_FOLD: Final[dict[str, Callable[[Call, NeverNull], Expr]]] = {
    "isnull": _fold_null_test,
    "isnotnull": _fold_null_test,
    "coalesce": _coalesce,
    "case": _case,
    "nseq": _fold_null_safe,
    "or": _fold_or,
    "and": _junction,
    "not": _fold_not,
    "lower": _outer_case,
    "upper": _outer_case,
}
