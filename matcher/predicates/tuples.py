"""`(a, b) IN ((1, 2), (3, 4))` in both doors: structs compared field by field.

Spark orders structs as it orders rows (`InterpretedOrdering`): a NULL field equals a NULL field and
nothing else, so the comparison is never NULL, and the list is an OR of ANDs of `<=>`. A struct
itself is never NULL; one that is, is no tuple here. Fields of FLOAT and DOUBLE compare as alone:
NaN equals NaN, and -0.0 equals 0.0.
"""

from __future__ import annotations

from collections.abc import Sequence

from matcher.model.expr import Call, Expr


def in_tuples(value: Sequence[Expr], rows: Sequence[Sequence[Expr]]) -> Expr:
    """The tuple `value` is one of `rows`, each with as many fields of the same types.

    >>> from matcher.model.expr import Col, Lit
    >>> a, b = Col(0, "a", "int"), Col(0, "b", "int")
    >>> in_tuples((a, b), [(Lit(1, "int"), Lit(2, "int"))])
    and(nseq($0.a, 1:int), nseq($0.b, 2:int))
    """
    found = tuple(dict.fromkeys(_equal(value, row) for row in rows))
    return found[0] if len(found) == 1 else Call("or", found, "boolean", False)


def _equal(value: Sequence[Expr], row: Sequence[Expr]) -> Expr:
    pairs = zip(value, row, strict=True)
    fields = tuple(Call("nseq", pair, "boolean", False) for pair in pairs)
    return fields[0] if len(fields) == 1 else Call("and", fields, "boolean", False)
