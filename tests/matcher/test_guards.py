"""Guards that no query reaches through either door today, asked directly: what they keep out would
be taken for something that it is not."""

from __future__ import annotations

import pytest

from matcher.model.errors import SqlInputError
from matcher.model.expr import Agg, Call, Col, Expr, Lit
from matcher.model.ir import Output, Relation, Rewrite
from matcher.predicates.domains import value_of
from matcher.predicates.time_buckets import read_time_function
from matcher.predicates.time_zones import fixed_offset, keeps_days
from matcher.render.select import NotRenderable, render_expr, render_literal, render_rewrite
from matcher.sql.reader import parse_query
from matcher.sql.schema import Schema

T = Col(0, "t", "timestamp")
ROW = Relation("default.t", "t")


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("1", "int"), ("x", "date"), (1, "decimal(5,2)"), (1, "double"), ("1", "float"),
        (1, "string"), ("x", "variant"), ("x", "binary"), (None, "int"), (None, "boolean"),
    ],
)  # fmt: skip
def test_a_literal_that_is_not_of_its_type_has_no_order(value: object, kind: str) -> None:
    assert value_of(Lit(value, kind)) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("zone", ["+19:00", "+05:60", "+05:30:60", "Nowhere/Else", "", "UTC+x"])
def test_no_fixed_offset(zone: str) -> None:
    assert fixed_offset(zone) is None
    assert not keeps_days(zone)


@pytest.mark.parametrize(
    "call",
    [
        Call("trunc", (T, Lit("HOUR", "string")), "date"),
        Call("trunc", (T, Lit("NONSENSE", "string")), "date"),
        Call("date_trunc", (Lit("MILLISECOND", "string"), T), "timestamp"),
        Call("date_trunc", (Col(0, "u", "string"), T), "timestamp"),
        Call("date_format", (T, Col(0, "p", "string")), "string"),
        Call("date_format", (T, Lit("", "string")), "string"),
        Call("date_format", (T, Lit("QQQ yyyy'x'", "string")), "string"),
        Call("date_format", (T, Lit("ssss", "string")), "string"),
        Call("year", (Col(0, "s", "string"),), "int"),
        Call("upper", (Col(0, "s", "string"),), "string"),
        Col(0, "d", "date"),
    ],
)
def test_no_function_of_a_time(call: Call) -> None:
    assert read_time_function(call, "UTC") is None


def test_what_has_no_spelling_is_not_written() -> None:
    def name(col: Col) -> str:
        return col.name

    far = Lit(10_000_000, "date")
    for expr in (
        Agg("approx", (T,), "double", params=("0.5",)),
        Call("spark:Sha2", (T,), "string"),
    ):
        with pytest.raises(NotRenderable):
            render_expr(expr, name)
    with pytest.raises(NotRenderable):
        render_literal(far)
    with pytest.raises(NotRenderable):
        render_literal(Lit("x", "variant"))
    for kind in ("struct<a:b:int>", "struct<a,b:int>", "array<struct<a(b:int,c:int>>"):
        with pytest.raises(NotRenderable):
            render_literal(Lit(None, kind))
    with pytest.raises(NotRenderable):
        render_expr(Expr.__new__(Expr), name)
    with pytest.raises(NotRenderable):
        render_rewrite(Rewrite("c", None, (), None, (Output("d", far),)), "c")


VIEWS = "CREATE TABLE t (k INT, c CHAR(3)); CREATE VIEW v AS SELECT * FROM w; "


@pytest.mark.parametrize(
    ("schema", "query", "code"),
    [
        (VIEWS + "CREATE VIEW w AS SELECT * FROM v", "SELECT * FROM v", "VIEW_CYCLE"),
        ("CREATE TABLE t (k INT)", "SELECT a FROM t AS x(a, b)", "COLUMN_COUNT_DIFFERS"),
        ("CREATE TABLE t (k INT)", "SELECT 1; SELECT 2", "NOT_ONE_QUERY"),
        ("CREATE TABLE t (k INT)", "DROP TABLE t", "NOT_A_QUERY"),
        ("CREATE TABLE t (k INT)", "WITH w(a, b) AS (SELECT k FROM t) SELECT a FROM w",
         "COLUMN_COUNT_DIFFERS"),
    ],
)  # fmt: skip
def test_queries_at_fault(schema: str, query: str, code: str) -> None:
    with pytest.raises(SqlInputError) as caught:
        parse_query(query, Schema.parse(schema))
    assert caught.value.code == code


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE a.b.c.d (k INT)", "CREATE TABLE nowhere.t (k INT)",
        "CREATE TABLE t AS SELECT 1 AS k", "CREATE TABLE t (k INT, K INT)",
        "CREATE TABLE t (k INT, PRIMARY KEY (z))", "CREATE VIEW v", "CREATE TABLE t (k)",
        "CREATE TABLE t (k NOT NULL)",
    ],
)  # fmt: skip
def test_schemas_at_fault(text: str) -> None:
    with pytest.raises(SqlInputError):
        Schema.parse(text)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT c = 'a' AS r FROM t", "SELECT UPPER(c) AS r FROM t", "SELECT s.z AS r FROM t",
        "SELECT s.x.y AS r FROM t",
        "SELECT DATEADD(WEEK, 1, d) AS r FROM t", "SELECT d + d AS r FROM t",
        "SELECT m * d AS r FROM t", "SELECT k FROM t WHERE c IN (SELECT c FROM t)",
    ],
)  # fmt: skip
def test_expressions_that_are_spark_s_to_read(query: str) -> None:
    schema = Schema.parse(
        "CREATE TABLE t (k INT, c CHAR(3), d DATE, m DECIMAL(38,10), s STRUCT<x: INT>)"
    )
    assert parse_query(query, schema).roots[0].block is None


@pytest.mark.parametrize(
    "call",
    ["TRUNC(d, k)", "TRUNC(CAST(s AS DATE), k)", "DATE_TRUNC(k, d)", "TRUNC(d, LOWER('MM'))"],
)
def test_a_column_is_no_unit(call: str) -> None:
    """The parser gives `TRUNC(d, month)` and `TRUNC(d, 'month')` as one tree."""
    schema = Schema.parse("CREATE TABLE t (k STRING, d DATE, s STRING)")
    assert parse_query(f"SELECT {call} AS r FROM t", schema).reasons
    view = Schema.parse(
        f"CREATE TABLE t (k STRING, d DATE, s STRING); CREATE VIEW v AS SELECT {call} AS r FROM t"
    )
    assert parse_query("SELECT r FROM v", view).roots[0].block is None
    assert not parse_query("SELECT TRUNC(d, 'MM'), DATE_TRUNC('MONTH', d) FROM t", schema).reasons
