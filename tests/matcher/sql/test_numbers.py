"""Numbers of any length, in any place: a constant, a miss or an error in words, and soon."""

from __future__ import annotations

import time
from decimal import Decimal

import pytest

from matcher.model.errors import MatcherError
from matcher.model.expr import Lit
from matcher.sql.reader import parse_query
from matcher.sql.schema import Schema

SCHEMA = Schema.parse("CREATE TABLE t (a INT NOT NULL, s STRING, d DATE)")
EXPRESSIONS = (
    "{n}", "-{n}", "CAST({n} AS INT)", "CAST({n} AS BIGINT)", "CAST({n} AS DOUBLE)",
    "CAST({n} AS DECIMAL(38,0))", "CAST('{n}' AS INT)", "CAST('{n}' AS DOUBLE)",
    "CAST('{n}' AS DECIMAL(38,2))", "CAST(a AS DECIMAL({n}, 2))", "CAST(a AS DECIMAL(5, {n}))",
    "CAST(s AS VARCHAR({n}))", "DATE '2024-01-01' + INTERVAL {n} DAY",
    "DATE '2024-01-01' + INTERVAL '{n}' MONTH", "d - INTERVAL '{n}' DAY", "DATE '{n}-01-01'",
    "TIMESTAMP '{n}'", "INTERVAL '{n}' DAY", "INTERVAL '{n}-1' YEAR TO MONTH",
    "INTERVAL '1' DAY + '{n}' DAY", "X'{n}'", "round(a, {n})", "substring(s, {n})",
    "date_add(d, {n})", "get_json_object(s,'$[{n}]')", "array(1)[{n}]", "make_date({n},1,1)",
    "a IN (1,{n})", "a + {n}", "a % {n}", "repeat('a',{n})", "1 << {n}", "pow(2,{n})",
    "CASE WHEN a = {n} THEN 1 END",
)  # fmt: skip
CLAUSES = (
    "SELECT a FROM t LIMIT {n}", "SELECT a FROM t LIMIT 5 OFFSET {n}",
    "SELECT a FROM t ORDER BY {n}", "SELECT a, count(*) FROM t GROUP BY {n}",
    "SELECT count(*) FROM t GROUP BY GROUPING SETS (({n}))",
    "SELECT a, count(*) FROM t GROUP BY a HAVING count(*) > {n}",
    "SELECT a FROM t TABLESAMPLE ({n} ROWS)", "SELECT a FROM t VERSION AS OF {n}",
    "SELECT sum(a) OVER (ROWS BETWEEN {n} PRECEDING AND CURRENT ROW) FROM t",
    "SELECT `{n}` FROM t", "SELECT a FROM `{n}`", "SELECT a{n} FROM t",
)  # fmt: skip
TEXTS = (*CLAUSES, *(f"SELECT {e} AS x FROM t" for e in EXPRESSIONS))
NUMBERS = {
    "digits": lambda size: "9" * size,
    "zeros": lambda size: "0" * size + "7",
    "decimal": lambda size: "1" * size + ".5",
    "fraction": lambda size: "0." + "3" * size,
    "exponent": lambda size: "1" * size + "e2",
    "large exponent": lambda size: "1e" + "9" * size,
    "small exponent": lambda size: "1e-" + "9" * size,
    "L": lambda size: "8" * size + "L",
    "Y": lambda size: "8" * size + "Y",
    "D": lambda size: "8" * size + "D",
    "BD": lambda size: "8" * size + "BD",
    "Arabic": lambda size: "\u0663" * size,
    "superscript": lambda size: "\u00b2" * size,
    "hexadecimal": lambda size: "0x" + "f" * size,
    "blanks": lambda size: " " * size + "1",
}


@pytest.mark.parametrize("size", [1, 19, 38, 400, 5_000, 100_000])
@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_of_any_length(number: str, size: int):
    began = time.process_time()
    for text in TEXTS:
        try:
            parse_query(text.replace("{n}", NUMBERS[number](size)), SCHEMA)
        except MatcherError as error:
            assert len(str(error)) <= 1_100, text
    # an interval of 5,000 digits alone took the parser 0.6 s, one of 100,000 four minutes
    assert time.process_time() - began < 6


@pytest.mark.parametrize(
    ("expression", "constant"),
    [
        ("0" * 900 + "7", Lit(7, "int")),
        ("-" + "0" * 900 + "7", Lit(-7, "int")),
        ("CAST('" + "0" * 5_000 + "7' AS INT)", Lit(7, "int")),
        ("9223372036854775807", Lit(2**63 - 1, "bigint")),
        ("-9223372036854775808", Lit(-(2**63), "bigint")),
        ("0" * 900 + "9" * 38, Lit(Decimal(10**38 - 1), "decimal(38,0)")),
    ],
)
def test_leading_zeros_are_no_digits(expression: str, constant: Lit):
    (root,) = parse_query(f"SELECT {expression} AS x FROM t", SCHEMA).roots
    assert root.block is not None and root.block.outputs[0].expr == constant


def test_where_a_number_is_too_long_is_said():
    with pytest.raises(MatcherError, match=r"line 2, .*a number has 5,000 characters"):
        parse_query("SELECT\n" + "9" * 5_000, SCHEMA)


@pytest.mark.parametrize("text", ["\u0663", "\u00a07", "\u0667-01-01"])
@pytest.mark.parametrize("type_", ["INT", "DATE", "TIMESTAMP_NTZ"])
def test_digits_of_other_scripts_are_left_to_spark(text: str, type_: str):
    """To Spark they are no digits: the cast is NULL or an error."""
    (root,) = parse_query(f"SELECT CAST('{text}' AS {type_}) AS x FROM t", SCHEMA).roots
    assert root.block is None or not isinstance(root.block.outputs[0].expr, Lit)


@pytest.mark.parametrize("size", ["39", "5, 6", "1.5", "1, 2, 3", "9" * 500])
def test_a_decimal_that_spark_has_not(size: str):
    (root,) = parse_query(f"SELECT CAST(a AS DECIMAL({size})) AS x FROM t", SCHEMA).roots
    assert root.block is None
