"""What means the same with ANSI and without, and what is said of what does not."""

from __future__ import annotations

import pytest

from matcher.model.errors import NotSupported
from matcher.model.expr import Call, Col, Lit
from matcher.predicates.captured_settings import (
    WRAPPING_SUM,
    aggregate_as,
    differing,
    means_the_same,
)

K, TWO = Col(0, "k", "int"), Lit(2, "int")


def column(type: str) -> Col:
    return Col(0, "x", type)


SAME = [
    ("cast", ("int",), "bigint"), ("cast", ("bigint",), "double"), ("cast", ("int",), "string"),
    ("cast", ("date",), "string"), ("cast", ("date",), "timestamp"),
    ("cast", ("int",), "decimal(12,2)"), ("cast", ("decimal(10,2)",), "decimal(10,1)"),
    ("add", ("double", "double"), "double"),
    ("mul", ("decimal(10,2)", "decimal(10,2)"), "decimal(21,4)"),
    ("div", ("double", 2.0), "double"), ("mod", ("int", 2), "int"),
    ("idiv", ("bigint", 7), "bigint"),
]  # fmt: skip
OTHER = [
    ("cast", ("bigint",), "int"), ("cast", ("string",), "int"), ("cast", ("string",), "date"),
    ("cast", ("decimal(10,2)",), "string"), ("cast", ("array<int>",), "string"),
    ("cast", ("struct<a:int>",), "string"), ("cast", ("int",), "decimal(5,0)"),
    # 99999999.99 is rounded to a digit more
    ("cast", ("decimal(10,2)",), "decimal(8,0)"), ("cast", ("decimal(10,2)",), "decimal(9,1)"),
    ("cast", ("int",), "binary"), ("cast", ("double",), "bigint"),
    ("add", ("int", "int"), "int"), ("mul", ("bigint", "bigint"), "bigint"),
    ("mul", ("decimal(20,2)", "decimal(20,2)"), "decimal(38,4)"),
    ("div", ("double", 0.0), "double"), ("div", ("double", "double"), "double"),
    ("div", ("decimal(10,2)", 2), "decimal(13,3)"),
    ("mod", ("int", 0), "int"), ("mod", ("int", None), "int"), ("mod", ("int", "int"), "int"),
    ("idiv", ("bigint", -1), "bigint"), ("eq", ("int", "int"), "boolean"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("case", "same"), [*((c, True) for c in SAME), *((c, False) for c in OTHER)], ids=str
)
def test_what_means_the_same(case, same: bool) -> None:
    op, args, type_ = case
    parts = [column(a) if isinstance(a, str) else Lit(a, args[0]) for a in args]
    assert means_the_same(op, tuple(parts), type_) is same


def test_aggregates() -> None:
    assert aggregate_as("sum", "double", ansi=True) == "sum"
    assert aggregate_as("sum", "smallint", ansi=False) == "sum"
    assert aggregate_as("avg", "bigint", ansi=False) == "avg"
    assert aggregate_as("avg", "decimal(10,2)", ansi=True) == "try_avg"
    assert aggregate_as("sum", "decimal(10,2)", ansi=True) == "try_sum"
    assert aggregate_as("sum", "int", ansi=True) == WRAPPING_SUM
    for func, kind in (("sum", "int"), ("sum", "decimal(10,2)"), ("avg", "decimal(10,2)")):
        with pytest.raises(NotSupported, match=r"spark\.sql\.ansi\.enabled = true"):
            aggregate_as(func, kind, ansi=False)
    with pytest.raises(NotSupported):
        aggregate_as("sum", "interval day to second", ansi=True)


def test_the_setting_is_named() -> None:
    def said(*params: str, op: str = "spark:Cast", zone: str = "UTC", ansi: bool = True) -> str:
        call = Call("eq", (Call(op, (K,), "timestamp", True, params), TWO), "boolean")
        found = differing(call, ansi=ansi, time_zone=zone)
        return "" if found is None else found.detail

    assert "spark.sql.session.timeZone = Asia/Tokyo" in said("Some(Asia/Tokyo)", "ANSI")
    assert "spark.sql.session.timeZone = +09:00" in said("Some(+09:00)", "ANSI")
    assert "spark.sql.ansi.enabled = false" in said("Some(UTC)", "LEGACY")
    assert "spark.sql.ansi.enabled = true" in said("NumericEvalContext(ANSI,true)", ansi=False)
    assert (
        said("Some(UTC)", "ANSI") == said("Some(word)") == said("Some(Asia/Tokyo)", zone="") == ""
    )
    assert said("Some(Asia/Tokyo)", op="cast") == ""
