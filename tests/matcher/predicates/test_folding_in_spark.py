"""The constant folder against Spark: what it works out is what Spark works out, to the type and
the last digit, with ANSI on and off."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from struct import pack
from typing import Any, Final

import pytest

from matcher.model.expr import Lit
from matcher.predicates.constant_folding import fold_all
from matcher.sql.expressions.types import TextSettings
from matcher.sql.reader import parse_query
from matcher.sql.schema import Schema
from tests.matcher.predicates.folded_calls import arithmetic, calls, casts, decimal_pairs, text

# so many expressions in one statement of Spark's
_BATCH: Final = 1000
SCHEMA: Final = Schema.parse("CREATE TABLE t (a INT)")
# constants as people write them
WRITTEN: Final = (
    "-0.0", "-0.0D", "- 0.0D", "-0.0F", "-0E0", "- -0.0D", "-(0.0D)", "CAST(-0.0 AS DOUBLE)",
    "CAST(-0.0 AS FLOAT)", "CAST((-0.0) AS DOUBLE)", "CAST(-0.0D AS DOUBLE)", "DOUBLE(-0.0)",
    "CAST(-0E0 AS FLOAT)", "-0.5F", "-0.1F", "0.1F", "-0.123456789F", "1 - 0.0D", "0 * -1.5",
    "CAST(0 * -1.5 AS DOUBLE)", "-0", "-128Y", "-32768S", "-2147483648", "-9223372036854775808L",
    "0.1D = CAST(0.1 AS DOUBLE)", "0.1 = 0.1D", "0.1F = 0.1D", "-0.0D = 0.0D", "'1' = 1",
    "DATE'2024-02-29' + INTERVAL 1 YEAR", "DATE'9999-12-31' + INTERVAL '1' DAY", "1.5 + 1",
    "DATE'2024-02-29' = TIMESTAMP_NTZ'2024-02-29 00:00:00'", "1 / 3", "7 % -2", "-7 % 2", "1.5 % 1",
    "9223372036854775807 + 1", "10.0 * 0.05", "date_add('2024-02-28', 2)", "2 * -128Y",
)  # fmt: skip


def decimal_kinds(spark: Any) -> dict[tuple[str, str, str], str]:
    """The type that Spark gives each operator over each two types of decimals."""
    signs = {"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%"}
    pairs = list(decimal_pairs())
    texts = [f"CAST(NULL AS {left}) {signs[op]} CAST(NULL AS {right})" for op, left, right in pairs]
    fields = spark.sql(f"SELECT {', '.join(texts)}").schema.fields
    return {p: f.dataType.simpleString() for p, f in zip(pairs, fields, strict=True)}


def computed(spark: Any, texts: Sequence[str]) -> list[tuple[str, Any]]:
    """Type and value of each expression; an error of one is its value."""
    try:
        frame = spark.sql(f"SELECT {', '.join(f'{t} AS c{i}' for i, t in enumerate(texts))}")
        kinds = [field.dataType.simpleString() for field in frame.schema.fields]
        shown = [_SHOWN.get(kind, "{}").format(f"c{i}") for i, kind in enumerate(kinds)]
        (row,) = frame.selectExpr(*shown).collect()
    except Exception as error:
        if len(texts) == 1:
            return [("error", str(error)[:200])]
        half = len(texts) // 2
        return computed(spark, texts[:half]) + computed(spark, texts[half:])
    return list(zip(kinds, row, strict=True))


_SHOWN: Final = {
    "date": "unix_date({})", "timestamp": "unix_micros({})",
    "timestamp_ntz": "unix_micros(CAST({} AS TIMESTAMP))",
}  # fmt: skip


def exact(kind: str, value: Any) -> tuple[str, str]:
    """Equal for values of a type that nothing tells apart."""
    if kind in ("float", "double") and value is not None:
        if value != value:
            return kind, "NaN"
        return kind, pack("<f" if kind == "float" else "<d", value).hex()
    if isinstance(value, Decimal):
        return kind, f"{value:+.40f}"
    return kind, repr(bytes(value) if isinstance(value, bytearray) else value)


@pytest.fixture(params=[True, False], ids=["ansi", "legacy"])
def session(spark: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    found = spark.newSession()
    found.conf.set("spark.sql.ansi.enabled", str(request.param).lower())
    found.conf.set("spark.sql.session.timeZone", "UTC")
    return found


@pytest.mark.spark
def test_what_is_folded_is_what_spark_computes(session: Any) -> None:
    ansi = session.conf.get("spark.sql.ansi.enabled") == "true"
    settings = TextSettings(ansi, decimal_precision_loss=True, utc=True)
    kinds = decimal_kinds(session)
    by_call = [
        (text(call), value, call.op)
        for call in calls(kinds)
        if isinstance(value := fold_all(call), Lit)
    ]
    by_text = [
        (sql, value)
        for sql in (*map(text, casts()), *map(text, arithmetic(kinds)), *WRITTEN)
        if (value := constant(sql, settings)) is not None
    ]
    assert differing(session, [*((sql, value) for sql, value, _ in by_call), *by_text]) == []
    operators = Counter(op for _, _, op in by_call)
    assert len(by_call) > 5000 and min(operators.values()) > 2, operators
    assert len(by_text) > 2000


def constant(sql: str, settings: TextSettings) -> Lit | None:
    """The constant that the text door reads; None where it reads something else, or refuses."""
    query = parse_query(f"SELECT {sql} AS x FROM t", SCHEMA, settings)
    block = query.roots[0].block
    value = None if block is None else block.outputs[0].expr
    return value if isinstance(value, Lit) else None


def differing(session: Any, folded: Sequence[tuple[str, Lit]]) -> list[str]:
    """Expressions to which Spark gives another type or value."""
    texts = list(dict.fromkeys(sql for sql, _ in folded))
    answers: dict[str, tuple[str, Any]] = {}
    for start in range(0, len(texts), _BATCH):
        part = texts[start : start + _BATCH]
        answers.update(zip(part, computed(session, part), strict=True))
    return [
        f"{sql}: folded to {value!r}, Spark says {answers[sql]}"
        for sql, value in folded
        if exact(*answers[sql]) != exact(value.type, value.value)
    ]
