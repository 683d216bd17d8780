"""LIKE in the form that Spark's optimiser gives it."""

from __future__ import annotations

from matcher.model.expr import Call, Expr, Lit


def like(value: Expr, pattern: Expr, escape: str) -> Expr:
    """LIKE as Spark's LikeSimplification leaves it: `abc%` is startswith, `%abc` endswith, `%abc%`
    contains, `abc` equality."""
    nullable = value.nullable or pattern.nullable
    text = pattern.value if isinstance(pattern, Lit) else None
    if isinstance(text, str) and not escape and "_" not in text and "\\" not in text:
        body = text.strip("%")
        if body and "%" not in body and len(text) - len(body) <= 2 and "%%" not in text:
            op = {
                (False, False): "eq", (False, True): "startswith", (True, False): "endswith",
                (True, True): "contains",
            }[text.startswith("%"), text.endswith("%")]  # fmt: skip
            return Call(op, (value, Lit(body, "string")), "boolean", nullable)
        ends = text.split("%")
        if len(ends) == 2 and all(ends):  # as long as both ends, which may not overlap
            length = Call("length", (value,), "int", value.nullable)
            size = Lit(len(ends[0]) + len(ends[1]), "int")
            parts = (
                Call("ge", (length, size), "boolean", nullable),
                Call("startswith", (value, Lit(ends[0], "string")), "boolean", nullable),
                Call("endswith", (value, Lit(ends[1], "string")), "boolean", nullable),
            )
            return Call("and", parts, "boolean", nullable)
    params = (escape,) if escape and escape != "\\" else ()
    return Call("like", (value, pattern), "boolean", nullable, params)
