"""Operators that bind otherwise to the parser than in Spark's grammar (SqlBaseParser.g4).

Spark has `+ - ||` on one level and all comparisons on another, each read from the left; LIKE, IN,
BETWEEN, RLIKE and IS bind less than any comparison, and only once. To the parser `||` binds less
than `+` and `-`, `=` and `<=>` less than `<` and `>`, and all comparisons less than LIKE, IN
and BETWEEN. What is written in parentheses is the same to both.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from matcher.model.message import Sql, Word
from matcher.model.reasons import ReasonCode
from matcher.sql.expressions.scope import unsupported

Kinds = tuple[type[exp.Expr], ...]
_COMPARISONS: Final[Kinds] = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ,
)  # fmt: skip
_TESTS: Final[Kinds] = (
    exp.Is, exp.Between, exp.In, exp.Like, exp.ILike, exp.Escape, exp.RegexpLike, exp.NullSafeNEQ,
)  # fmt: skip
_LOOSE: Final[Kinds] = (*_TESTS, exp.Not, exp.And, exp.Or)
# What each operator may not have without parentheses, on its left and elsewhere. A comparison on
# the left is fine: Spark too reads `a = b = c` and `a = b IS NULL` from the left.
_REFUSED: Final[dict[type[exp.Expr], tuple[Kinds, Kinds]]] = {
    **dict.fromkeys((*_COMPARISONS, *_TESTS), (_LOOSE, (*_LOOSE, *_COMPARISONS))),
    exp.DPipe: (_LOOSE, (*_LOOSE, exp.Add, exp.Sub)),
}
# The parser itself puts parentheses around the operands of these.
_NULL_SAFE: Final = (exp.NullSafeEQ, exp.NullSafeNEQ)


def refuse_other_precedence(node: exp.Expr) -> None:
    """Refuses an operator with an operand that Spark would not give it.

    Raises:
        NotSupported: it has one.
    """
    if isinstance(node, exp.Escape):
        node = node.this  # it belongs to the LIKE
    kinds = _REFUSED.get(type(node))
    if kinds is None:
        return
    for place in ("this", "expression", "low", "high"):
        operand = node.args.get(place)
        if isinstance(node, _NULL_SAFE) and _may_be_the_parsers(operand, place):
            raise _unsupported(node, "write the test beside <=> or IS DISTINCT in another way")
        if isinstance(operand, kinds[place != "this"]):
            raise _unsupported(node, "put parentheses around what belongs together")


def _may_be_the_parsers(operand: exp.Expr | None, place: str) -> bool:
    """True of parentheses that are perhaps not in the text, and not as Spark reads it:
    `a <=> b < c` comes as `a <=> (b < c)`, `a NOT BETWEEN b AND c <=> d` with the whole test in
    parentheses, where Spark's upper bound is `c <=> d`."""
    kinds: Kinds = (exp.Not,) if place == "this" else (exp.Not, *_TESTS, *_COMPARISONS)
    return isinstance(operand, exp.Paren) and isinstance(operand.this, kinds)


def _unsupported(node: exp.Expr, advice: str) -> Exception:
    text = node.sql("spark")[:80]
    return unsupported(
        ReasonCode.UNSUPPORTED_EXPRESSION,
        "{sql} binds otherwise in Spark: {advice}",
        sql=Sql(text),
        advice=Word(advice),
    )
