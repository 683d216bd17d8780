"""`[NOT] IN (SELECT …)` as the condition of the SEMI or ANTI join that it is.

Spark's RewritePredicateSubquery makes the same join. A row that IN does not find is dropped, be the
test FALSE or NULL, so SEMI asks for equal values alone. NOT IN keeps a row only where the test is
FALSE: one NULL on either side makes it NULL, which a plain ANTI join would keep. So it is one only
where neither side can be NULL.
"""

from __future__ import annotations

from collections.abc import Sequence

from matcher.model.errors import NotSupported
from matcher.model.expr import Call, Col, Expr
from matcher.model.message import Arg, ColumnName, Word
from matcher.model.reasons import ReasonCode


def equal_to(values: Sequence[Expr], found: Sequence[Expr], negated: bool) -> list[Expr]:
    """The equalities of an IN test.

    Args:
        values: what is looked for, of the types of `found`.
        found: the columns of the query that it is looked for in.
        negated: True for NOT IN.

    Raises:
        NotSupported: a NOT IN of which some side may be NULL.

    >>> from matcher.model.expr import Col
    >>> equal_to([Col(0, "a", "int")], [Col(1, "b", "int")], False)
    [eq($0.a, $1.b)]
    """
    nullable = [e for e in (*values, *found) if e.nullable]
    if negated and nullable:
        raise NotSupported(
            ReasonCode.UNSUPPORTED_OPERATOR,
            "NOT IN (SELECT …) of {column}, which may be NULL: write NOT EXISTS",
            column=_shown(nullable[0]),
        )
    pairs = zip(values, found, strict=True)
    return [Call("eq", (v, f), "boolean", v.nullable or f.nullable) for v, f in pairs]


def _shown(expr: Expr) -> Arg:
    return ColumnName(expr.name) if isinstance(expr, Col) else Word("an expression")
