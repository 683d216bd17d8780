"""Operators that bind otherwise in Spark than to the parser: refused, unless parentheses say it."""

from __future__ import annotations

import pytest

from matcher.sql.reader import parse_query
from matcher.sql.schema import Schema

SCHEMA = Schema.parse(
    "CREATE TABLE t (y STRING, m INT, p BOOLEAN, q BOOLEAN, r BOOLEAN, d DATE, day INT)"
)


def read(expression: str) -> str:
    """The expression as the door reads it, or why it does not."""
    (block,) = parse_query(f"SELECT {expression} AS x FROM t", SCHEMA).walk()
    if block.block is None:
        return "; ".join(reason.detail for reason in block.reasons)
    return str(block.block.outputs[0].expr)


@pytest.mark.parametrize(
    "expression",
    [
        "y || m - 1",
        "y || m + 1",
        "y || m - 1 || y",
        "m + 1 || m - 1",
        "y || NOT p",
        "CASE WHEN p THEN y || m - 1 END",
        "p = q < r",
        "p <> q >= r",
        "p == q < r",
        "p < q < r = p < q",
        "p = y LIKE 'a%'",
        "p = y NOT LIKE 'a%'",
        "p = y LIKE 'a%' ESCAPE '/'",
        "p = y RLIKE 'a'",
        "p = q IN (TRUE)",
        "p = q NOT IN (TRUE)",
        "p = q BETWEEN p AND r",
        "p BETWEEN q AND r = p",
        "p NOT BETWEEN q AND r = p",
        "y LIKE 'a' = p",
        "y RLIKE 'a' = p",
        "p = NOT q",
        "p IN (TRUE) IS NULL",
        "p <=> q < r",
        "p <=> y LIKE 'a%'",
        "p <=> q IN (TRUE)",
        "p NOT BETWEEN q AND r <=> p",
        "p IS DISTINCT FROM q = r < p",
    ],
)
def test_refused(expression: str) -> None:
    assert "binds otherwise in Spark" in read(expression)


@pytest.mark.parametrize(
    ("expression", "same"),
    [
        ("(y || m) - m", "(((y || m))) - m"),
        ("y || (m - 1)", "CONCAT(y, m - 1)"),
        ("m - 1 || y", "(m - 1) || y"),
        ("y || m * 2 || y", "(y || (m * 2)) || y"),
        ("p = (q < r)", "p = ((q < r))"),
        ("(p = q) < r", "((p = q)) < r"),
        ("p = q = r", "(p = q) = r"),
        ("p < q = r", "(p < q) = r"),
        ("p = q <=> r", "(p = q) <=> r"),
        ("p = (y LIKE 'a%')", "p = (y LIKE 'a%' )"),
        ("(y RLIKE 'a') = p", "(regexp_like(y, 'a')) = p"),
        ("(p IS NULL) = q", "((p IS NULL)) = q"),
        ("p = q IS NULL", "(p = q) IS NULL"),
        ("p < q IS NOT NULL", "(p < q) IS NOT NULL"),
        ("NOT p = q", "NOT (p = q)"),
        ("! p = q", "NOT (p = q)"),
        ("NOT m IN (1, 2)", "NOT (m IN (1, 2))"),
        ("m + 1 BETWEEN m - 1 AND m * 2", "(m + 1) BETWEEN (m - 1) AND (m * 2)"),
        ("y || m LIKE 'a%'", "(y || m) LIKE 'a%'"),
        ("p = q AND q < r OR NOT r", "((p = q) AND (q < r)) OR (NOT r)"),
        ("m DIV 2 * 3 % 5", "((m DIV 2) * 3) % 5"),
        ("-m * 2 + m::BIGINT", "((-m) * 2) + CAST(m AS BIGINT)"),
        ("DATE '2026-01-01'::STRING", "CAST(DATE '2026-01-01' AS STRING)"),
        (
            "TIMESTAMP '2026-01-01 10:00:00'::DATE",
            "CAST(TIMESTAMP '2026-01-01 10:00:00' AS DATE)",
        ),
        ("'2026-01-01'::DATE", "DATE '2026-01-01'"),
        ("-128Y::INT", "CAST(-128Y AS INT)"),
        ("-1::STRING", "'-1'"),
        ("m * -128Y::INT", "m * (-128)"),
        ("m - 1::INT", "m - 1"),
        ("day - 1::INT", "day - 1"),
        ("1Y - 1Y::INT", "1Y - CAST(1Y AS INT)"),
    ],
)
def test_read_as_spark_does(expression: str, same: str) -> None:
    assert "Spark" not in read(expression)
    assert read(expression) == read(same)


@pytest.mark.parametrize("operator", ["&", "|", "^", "<<", ">>"])
def test_operators_on_bits_are_refused(operator: str) -> None:
    assert "is not supported" in read(f"m {operator} 1 + 1")
