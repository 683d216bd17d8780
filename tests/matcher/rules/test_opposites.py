"""The opposite of a number, where Spark's own minus rounds digits away."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from matcher.examples import plan_of
from matcher.model.expr import Col
from matcher.model.ir import MatchOptions
from matcher.partials.partial_rows import why_not_partials
from matcher.render.select import render_expr
from matcher.rules.roll_up.arithmetic import opposite
from tests.matcher.spark_cases import QUICK

KINDS = [(34, 34), (34, 0), (35, 2), (36, 36), (37, 20), (37, 36), (38, 0), (38, 6)]


@pytest.mark.spark
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_opposites_in_spark(spark: Any, ansi: str) -> None:
    session = spark.newSession()
    for key, value in {**QUICK, "spark.sql.ansi.enabled": ansi}.items():
        session.conf.set(key, value)
    items, wanted = [], []
    for precision, scale in KINDS:
        kind = f"decimal({precision},{scale})"
        found = opposite(Col(0, "x", kind))
        assert found is not None, kind
        digits = "123456789" * 4 + "12"
        for sign in (0, 1):
            number = Decimal((sign, tuple(map(int, digits[:precision])), -scale))
            items.append(render_expr(found, lambda _, n=number, k=kind: f"CAST({n:f} AS {k})"))
            wanted.append((kind, number.copy_negate()))
    frame = session.sql(f"SELECT {', '.join(f'{item} AS c{i}' for i, item in enumerate(items))}")
    kinds = [field.dataType.simpleString() for field in frame.schema.fields]
    assert list(zip(kinds, frame.collect()[0], strict=True)) == wanted


@pytest.mark.parametrize("kind", ["decimal(38,7)", "decimal(38,38)", "decimal(37,37)"])
def test_of_so_many_digits_there_is_none(kind: str) -> None:
    assert opposite(Col(0, "x", kind)) is None


def test_rows_are_not_taken_away_from_a_sum_that_has_no_opposite() -> None:
    plan = plan_of("SELECT item, SUM(CAST(price AS DECIMAL(28,7))) AS p FROM sales GROUP BY item")
    assert why_not_partials(plan, MatchOptions(), signed=False) is None
    why = why_not_partials(plan, MatchOptions(), signed=True)
    assert why is not None and "digits" in why.detail
