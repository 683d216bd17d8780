"""What Spark makes of constants, without Spark, to which test_folding_in_spark.py holds it."""

from __future__ import annotations

import pytest

from matcher.model.expr import Call, Lit
from matcher.model.values import cast
from matcher.predicates.constant_folding import fold

_LAST = (1 << 31) - 1


@pytest.mark.parametrize(
    ("value", "type", "becomes"),
    [
        (Lit(7, "int"), "string", Lit("7", "string")),
        (Lit(7, "int"), "boolean", None),
        (Lit(7, "int"), "binary", None),
        (Lit("0.25", "string"), "float", Lit(0.25, "float")),
        # Spark may round it twice, by way of a DOUBLE
        (Lit("0.30000001192092896", "string"), "float", None),
        (Lit("1234567.8", "string"), "float", None),
        (Lit(0, "date"), "timestamp_ntz", Lit(0, "timestamp_ntz")),
        (Lit(0, "date"), "string", None),
        (Lit(b"7", "binary"), "string", None),
    ],
)
def test_a_cast(value: Lit, type: str, becomes: Lit | None) -> None:
    assert cast(value, type, utc=True) == becomes


def test_days_that_are_further_apart_than_an_int_says() -> None:
    def apart(last: int, first: int) -> Lit | None:
        return fold(Call("datediff", (Lit(last, "date"), Lit(first, "date")), "int"))

    assert apart(_LAST, 0) == Lit(_LAST, "int")
    assert apart(_LAST, -1) is None
