"""SQL text to blocks: the canonical forms, and the places of SELECTs in the text."""

from __future__ import annotations

import re
from datetime import date

import pytest
from sqlglot import exp

from matcher.model.errors import SqlInputError
from matcher.model.expr import TRUE, Agg, Call, Col, Lit
from matcher.model.ir import Block
from matcher.sql.reader import TextBlock, TextSettings, _Builder, parse_query
from matcher.sql.schema import Schema

SCHEMA = Schema.parse(
    """CREATE TABLE t (a INT NOT NULL, b BIGINT, s STRING, d DATE, k INT, o BOOLEAN);
    CREATE TABLE u (k INT NOT NULL PRIMARY KEY, x INT);
    CREATE VIEW v AS SELECT a, b * 2 AS b2 FROM t WHERE a > 1"""
)
A, B, S, D = (
    Col(0, "a", "int", False), Col(0, "b", "bigint"), Col(0, "s", "string"), Col(0, "d", "date"),
)  # fmt: skip


def block(query: str, settings: TextSettings | None = None) -> Block:
    (root,) = parse_query(query, SCHEMA, settings).roots
    assert root.block is not None, root.reasons
    return root.block


def where(condition: str) -> tuple[object, ...]:
    return block(f"SELECT a FROM t WHERE {condition}").predicates


def day(text: str) -> Lit:
    return Lit((date.fromisoformat(text) - date(1970, 1, 1)).days, "date")


def op(name: str, *args: object, kind: str = "boolean") -> Call:
    return Call(name, args, kind)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a BETWEEN 1 AND 2", (op("ge", A, Lit(1, "int")), op("le", A, Lit(2, "int")))),
        ("a <> 1", (op("ne", A, Lit(1, "int")),)),
        ("NOT a < 1", (op("ge", A, Lit(1, "int")),)),
        ("NOT (a < 1 OR b = 2)", (op("ge", A, Lit(1, "int")), op("ne", B, Lit(2, "bigint")))),
        ("b IN (1, 2)", (op("in", B, Lit(1, "bigint"), Lit(2, "bigint")),)),
        ("b NOT IN (1)", (op("not", op("in", B, Lit(1, "bigint"))),)),
        ("s LIKE 'ab%'", (op("startswith", S, Lit("ab", "string")),)),
        ("s LIKE '%ab'", (op("endswith", S, Lit("ab", "string")),)),
        ("s LIKE '%ab%'", (op("contains", S, Lit("ab", "string")),)),
        ("s LIKE 'ab'", (op("eq", S, Lit("ab", "string")),)),
        ("s LIKE 'a_b%'", (op("like", S, Lit("a_b%", "string")),)),
        (
            "s LIKE 'a%b'",
            (
                op("ge", op("length", S, kind="int"), Lit(2, "int")),
                op("startswith", S, Lit("a", "string")),
                op("endswith", S, Lit("b", "string")),
            ),
        ),
        ("s LIKE '%'", (op("like", S, Lit("%", "string")),)),
        ("d >= '1994-01-01'", (op("ge", D, day("1994-01-01")),)),
        ("d < date'1994-01-31' + interval 1 month", (op("lt", D, day("1994-02-28")),)),
        ("d < date'1996-02-29' - interval '1' year", (op("lt", D, day("1995-02-28")),)),
        ("a IS NOT DISTINCT FROM k", (op("nseq", A, Col(0, "k", "int")),)),
        ("s IS NOT NULL AND TRUE", (op("isnotnull", S),)),
        ("a IS NOT NULL AND TRUE", ()),
        ("o IS TRUE", (op("nseq", Col(0, "o", "boolean"), TRUE),)),
        ("a > 1 + 2 * 3", (op("gt", A, Lit(7, "int")),)),
        ("a > -2147483648", (op("gt", A, Lit(-2147483648, "int")),)),
        ("a > -32768S", (op("gt", A, Lit(-32768, "int")),)),
        ("b > -9223372036854775808L", (op("gt", B, Lit(-(1 << 63), "bigint")),)),
        (
            "b > -CAST(128 AS TINYINT)",
            (
                op(
                    "gt",
                    B,
                    op(
                        "cast",
                        op("neg", op("cast", Lit(128, "int"), kind="tinyint"), kind="tinyint"),
                        kind="bigint",
                    ),
                ),
            ),
        ),
        ("a = 1.0", (op("eq", A, Lit(1, "int")),)),
        ("3 < a", (op("lt", Lit(3, "int"), A),)),
        ("1 = 2", (Lit(False, "boolean"),)),
    ],
)
def test_predicates(condition: str, expected: tuple[object, ...]) -> None:
    assert where(condition) == expected


def test_joins_are_one_list_of_predicates_however_spelled() -> None:
    key = (op("eq", Col(0, "k", "int"), Col(1, "k", "int")),)
    for text in (
        "t, u WHERE t.k = u.k",
        "t JOIN u ON t.k = u.k",
        "t JOIN u USING (k)",
        "t CROSS JOIN u WHERE t.k = u.k",
        "(SELECT * FROM t) t INNER JOIN (SELECT * FROM u) u ON t.k = u.k",
        "(t JOIN u ON t.k = u.k)",
    ):
        found = block(f"SELECT a, x FROM {text}")
        assert [r.key for r in found.relations] == ["default.t", "default.u"], text
        assert found.predicates == key, text


def test_a_view_merges_by_its_expressions() -> None:
    found = block("SELECT b2 FROM v WHERE b2 < 10")
    double = op("mul", B, Lit(2, "bigint"), kind="bigint")
    assert found.predicates == (op("gt", A, Lit(1, "int")), op("lt", double, Lit(10, "bigint")))
    assert found.outputs[0].expr == double


STRUCTS = Schema.parse(
    "CREATE TABLE t (a INT, st STRUCT<a: INT, B: DECIMAL(12, 2), `in`: STRUCT<deep: STRING>, "
    "more: ARRAY<STRUCT<x: INT>>>, o STRUCT<a: INT, A: INT>, "
    "digits STRUCT<`0`: INT>)"
)
STRUCT = Col(0, "st", STRUCTS.tables["default.t"].columns[1].type)
FIELDS = {
    "a": Call("field", (STRUCT,), "int", True, ("a",)),
    "b": Call("field", (STRUCT,), "decimal(12,2)", True, ("B",)),
    "deep": Call(
        "field",
        (Call("field", (STRUCT,), "struct<deep:string>", True, ("in",)),),
        "string",
        True,
        ("deep",),
    ),
}


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("st.a", "a"),
        ("t.ST.A", "a"),
        ("default.t.st.a", "a"),
        ("st.b", "b"),
        ("`st`.`b`", "b"),
        ("t.st.in.deep", "deep"),
        ("st.in.DEEP", "deep"),
    ],
)
def test_fields_of_structs(text: str, field: str) -> None:
    (root,) = parse_query(f"SELECT {text} FROM t", STRUCTS).roots
    assert root.block is not None, root.reasons
    (found,) = root.block.outputs
    assert (found.name, found.expr) == (text.rpartition(".")[2].strip("`"), FIELDS[field])


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        ("SELECT st.* EXCEPT (`in`, more) FROM t", ["a", "b"]),
        ("SELECT q.st.in.* FROM (SELECT st FROM t) q", ["deep"]),
        # a table's own column of that name comes first
        ("SELECT st.a AS x FROM t AS st", None),
    ],
)
def test_what_a_qualifier_of_a_struct_means(select: str, expected: list[str] | None) -> None:
    (root,) = parse_query(select, STRUCTS).roots
    assert root.block is not None, root.reasons
    found = [o.expr for o in root.block.outputs]
    assert found == ([A] if expected is None else [FIELDS[name] for name in expected])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("st.zz", r"st \(struct<a:int,.*\) has no field zz$"),
        ("st.in.dep", r"st.in \(struct<deep:string>\) has no field dep; did you mean deep\?"),
        ("st.more.x", r"st.more.x is a field of st.more, which is array<struct<x:int>>"),
        ("o.a", r"o \(struct<a:int,A:int>\) has several fields a"),
        ("a.b", "is a field of a, which is int"),
        ("t.o.*", r"t.o.\* over struct<a:int,A:int>"),
        ("t.a.*", r"t.a.\* over int"),
        ("st['zz']", r"st\['zz'\] is not supported"),
        ("st.more[0]", r"st.more\[0\] is not supported"),
        ("digits[0]", r"digits\[0\] is not supported"),
        ("st['a', 'a']", r"st\['a', 'a'\] is not supported"),
        # an output's name comes first in ORDER BY, and Spark would take the field of that
        ("st.in AS st FROM t ORDER BY st.a --", r"st \(struct<deep:string>\) has no field a"),
        ("o AS st FROM t ORDER BY st.a --", r"st \(struct<a:int,A:int>\) has several fields a"),
        (
            "q.s2 AS st FROM (SELECT st AS s2, st.in AS st FROM t) q ORDER BY st.deep --",
            r"st \(struct<a:int,.*\) has no field deep",
        ),
        (
            "q.s2 AS s FROM (SELECT x.st AS s, y.st AS s2 FROM t x JOIN t y ON x.a = y.a) q "
            "ORDER BY s.a --",
            "s.a is of a column and of an alias",
        ),
        ("st.in AS s, st AS s, s.a", "s names two columns of the SELECT"),
    ],
)
def test_fields_that_are_not_read(text: str, words: str) -> None:
    (root,) = parse_query(f"SELECT {text} FROM t", STRUCTS).roots
    assert root.block is None
    assert any(re.search(words, reason.detail) for reason in root.reasons), root.reasons


def test_a_misspelt_struct_is_told_by_its_name() -> None:
    with pytest.raises(SqlInputError, match="did you mean address\\?"):
        parse_query(
            "SELECT adress.city FROM o", Schema.parse("CREATE TABLE o (address STRUCT<city: INT>)")
        )


VARIANTS = Schema.parse("CREATE TABLE t (id INT, va VARIANT)")


@pytest.mark.parametrize("text", ["va:b", "t.va:b", "id, (va):b", "`va`:b"])
def test_a_path_into_a_variant_is_no_alias(text: str) -> None:
    found = parse_query(f"SELECT {text} FROM t", VARIANTS)
    assert "a path into a VARIANT" in [reason.detail for reason in found.reasons]


def test_a_path_that_the_parser_does_not_know() -> None:
    with pytest.raises(SqlInputError) as caught:
        parse_query("SELECT va:b AS x FROM t", VARIANTS)
    assert caught.value.code == "SYNTAX_ERROR"


@pytest.mark.parametrize("text", ["id AS `a:b`", "'x:y' AS z", "TIMESTAMP '2020-01-01 10:30:00'"])
def test_other_colons_are_no_paths(text: str) -> None:
    assert not parse_query(f"SELECT {text} FROM t", VARIANTS).reasons


def test_count_of_a_constant_is_count_of_rows() -> None:
    rows = Agg("count", (), "bigint")
    found = block("SELECT COUNT(*) AS a, COUNT(1) AS b, COUNT(s) AS c FROM t")
    assert [o.expr for o in found.outputs] == [rows, rows, Agg("count", (S,), "bigint")]
    assert found.group_keys == ()


@pytest.mark.parametrize(
    ("clause", "keys", "sets"),
    [
        ("a, s GROUPING SETS ((a, s), (s), (s, a), ())", "as", ((0, 1), (1,), (1, 0), ())),
        ("GROUPING SETS ((s), (a, s), (s))", "sa", ((0,), (1, 0), (0,))),
        ("GROUPING SETS ((a, a), (s, a, s))", "as", ((0,), (1, 0))),
        ("CUBE (a, s)", "as", ((0, 1), (0,), (1,), ())),
        ("ROLLUP (a, s)", "as", ((0, 1), (0,), ())),
        ("a, s WITH CUBE", "as", ((0, 1), (0,), (1,), ())),
        ("s, ROLLUP (a)", "sa", ((0, 1), (0,))),
        ("ROLLUP (a), ROLLUP (s)", "as", ((0, 1), (0,), (1,), ())),
        ("1, s GROUPING SETS ((1), (s))", "as", ((0,), (1,))),
    ],
)
def test_grouping_sets(clause: str, keys: str, sets: tuple[tuple[int, ...], ...]) -> None:
    found = block(f"SELECT a, s, COUNT(*) AS n, GROUPING_ID() AS g FROM t GROUP BY {clause}")
    assert found.group_keys == tuple({"a": A, "s": S}[k] for k in keys)
    assert found.grouping_sets == sets


def test_a_timestamp_is_folded_only_in_a_stated_time_zone() -> None:
    query = "SELECT CAST(d AS TIMESTAMP) AS x FROM t WHERE CAST(d AS TIMESTAMP) > '1970-01-02'"
    day = op("cast", D, kind="timestamp")
    text = op("cast", Lit("1970-01-02", "string"), kind="timestamp")
    assert block(query).predicates == (op("gt", day, text),)
    known = block(query, TextSettings(utc=True))
    assert known.predicates == (op("gt", D, Lit(1, "date")),)


def replaced(query: str, wanted: str) -> str:
    parsed = parse_query(query, SCHEMA)
    chosen = {b: "<new>" for b in parsed.walk() if b.label == wanted}
    assert chosen
    return parsed.replace(chosen)


def test_the_rest_of_the_text_stays_as_written() -> None:
    query = (
        "with  c as (select a,  count(*) n from t group by a) -- per a\n"
        "SELECT c.a , (select max(x) as m from u) FROM c WHERE n>1 "
        "UNION  select k, x from u ORDER BY 1"
    )
    assert replaced(query, "CTE c") == query.replace(
        "select a,  count(*) n from t group by a", "<new>"
    )
    assert replaced(query, "query, right of UNION") == query.replace("select k, x from u", "<new>")
    inner = "select max(x) as m from u"
    assert replaced(query, "subquery in an expression") == query.replace(inner, "<new>")


def test_a_replaced_query_takes_its_ctes_with_it() -> None:
    query = "with c as (select a from t) select a from c;"
    assert replaced(query, "query") == "<new>"


def test_a_view_is_put_in_place_only_if_replaced() -> None:
    query = "select q.a, w.a from v q left join v w on q.a = w.a"
    assert replaced(query, "view v").startswith("select q.a, w.a from (\n<new>\n) AS `q` left join")


LAYERS = Schema.parse(
    """CREATE TABLE t (a INT NOT NULL, b BIGINT);
    CREATE VIEW plain AS SELECT a, MAX(b) AS m FROM t GROUP BY a;
    CREATE VIEW own AS WITH q AS (SELECT * FROM t) SELECT a, MAX(b) AS m FROM q GROUP BY a;
    CREATE VIEW over AS WITH q AS (SELECT * FROM own) SELECT a, COUNT(m) AS n FROM q GROUP BY a;
    CREATE VIEW hides AS WITH t AS (SELECT a, m FROM plain) SELECT a, COUNT(m) AS n FROM t
    GROUP BY a;
    CREATE VIEW itself AS WITH t AS (SELECT * FROM t) SELECT a, MAX(b) AS m FROM t GROUP BY a;"""
)


@pytest.mark.parametrize(
    ("query", "views"),
    [
        ("select sum(m) as s from own", {"own"}),
        # one over another, with a CTE of the same name, which each text has for itself
        ("select sum(n) as s from over", {"over", "own"}),
        ("with q as (select a from t) select sum(n) as s from over join q using (a)",
         {"over", "own"}),
        # a CTE of the query's takes the name of what the view reads
        ("with t as (select 1 as a) select sum(m) as s from own join t using (a)", set()),
        ("with t as (select 1 as a) select sum(n) as s from over join t using (a)", {"over"}),
        # one of the view around does
        ("select sum(n) as s from hides", {"hides"}),
        # one of its own does not hide what itself is made of, another one does
        ("select sum(m) as s from itself", {"itself"}),
        ("with t as (select 1 as a) select sum(m) as s from itself join t using (a)", set()),
    ],
)  # fmt: skip
def test_a_view_is_put_in_place_where_no_cte_around_takes_its_names(
    query: str, views: set[str]
) -> None:
    parsed = parse_query(query, LAYERS)
    labels = {block.label for block in parsed.walk()}
    assert {label.removeprefix("view ") for label in labels if label.startswith("view ")} == views


def test_a_view_in_a_view_is_put_in_place_with_it() -> None:
    parsed = parse_query("select sum(n) as s from over", LAYERS)
    (inner,) = (block for block in parsed.walk() if block.label == "view own")
    assert parsed.replace({inner: "<new>"}) == (
        "select sum(n) as s from (\nWITH q AS (SELECT * FROM (\n<new>\n) AS `own`) "
        "SELECT a, COUNT(m) AS n FROM q GROUP BY a\n) AS `over`"
    )
    assert parsed.cte_names == {"q"}


RIGHT_SIDE = Schema.parse(
    """CREATE TABLE t (a INT NOT NULL, b BIGINT);
    CREATE TABLE u (a INT NOT NULL PRIMARY KEY, n STRING, m STRING);
    CREATE VIEW v AS SELECT a, coalesce(n, '?') AS n, m FROM u;"""
)


@pytest.mark.parametrize(
    ("query", "names_it"),
    [
        ("SELECT m, SUM(b) AS s FROM t LEFT JOIN v ON t.a = v.a GROUP BY m", False),
        ("SELECT m, SUM(b) AS s FROM v RIGHT JOIN t USING (a) GROUP BY m", False),
        ("SELECT t.b, v.m FROM t FULL JOIN v ON t.a = v.a", False),
        ("SELECT t.b, v.* EXCEPT (n) FROM t LEFT JOIN v ON t.a = v.a", False),
        # where the condition names it there is no missing row yet
        ("SELECT t.b, v.m FROM t LEFT JOIN v ON t.a = v.a AND v.n = 'q'", False),
        ("SELECT m, SUM(b) AS s FROM t LEFT JOIN v ON t.a = v.a WHERE n = 'q' GROUP BY m", True),
        ("SELECT n, SUM(b) AS s FROM t LEFT JOIN v ON t.a = v.a GROUP BY n", True),
        ("SELECT m, MAX(n) AS s FROM t LEFT JOIN v ON t.a = v.a GROUP BY m", True),
        ("SELECT t.b FROM t LEFT JOIN v ON t.a = v.a ORDER BY v.n", True),
        ("SELECT t.b, v.* FROM t LEFT JOIN v ON t.a = v.a", True),
        ("SELECT t.b, v.n FROM t FULL JOIN v ON t.a = v.a", True),
        ("WITH j AS (SELECT t.b, v.* FROM t LEFT JOIN v ON t.a = v.a) SELECT b, n FROM j", True),
    ],
)
def test_what_is_not_null_for_missing_rows_is_refused_where_it_is_named(
    query: str, names_it: bool
) -> None:
    (root,) = parse_query(query, RIGHT_SIDE).roots
    said = any("below an outer join" in reason.detail for reason in root.reasons)
    assert (said, root.block is None) == (names_it, names_it)


def test_outermost_first_and_nothing_below_a_replaced_block() -> None:
    parsed = parse_query(
        "select a, count(*) as n from (select a from (select a, max(b) as m from t group by a) x) y"
        " group by a",
        SCHEMA,
    )
    seen: list[str] = []

    def visit(found: TextBlock) -> bool:
        seen.append(found.label)
        return found.label == "subquery y"

    parsed.visit(visit)
    assert seen == ["query", "subquery y"]
    seen.clear()
    parsed.visit(lambda found: bool(seen.append(found.label)))
    assert seen == ["query", "subquery y", "subquery x"]


@pytest.mark.parametrize(
    "around",
    [
        "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM ({}) x WHERE x.a = t.a)",
        "SELECT a, RANK() OVER (ORDER BY COUNT(*)) AS r FROM t WHERE EXISTS "
        "(SELECT 1 FROM ({}) x WHERE x.a = t.a) GROUP BY a",
    ],
)
def test_a_query_in_exists_is_read_once_however_deep(around: str, monkeypatch) -> None:
    """Read for the join and for itself, each level would double the work of those below."""
    read: list[object] = []
    select = _Builder._select

    def noted(self: _Builder, node: exp.Select, *given: object) -> object:
        read.append(node)
        return select(self, node, *given)

    monkeypatch.setattr(_Builder, "_select", noted)
    text, levels = "SELECT a FROM t", 8
    for _ in range(levels):
        text = around.format(text)
    parsed = parse_query(text, SCHEMA)
    assert len(read) == 2 * levels + 1
    assert len(parsed.document.tables) == levels + 1


def test_tables_below_window_functions_are_those_of_the_text() -> None:
    """Of a copy of a condition nobody would know that it is in the part that is answered."""
    parsed = parse_query(
        "SELECT a, RANK() OVER (ORDER BY COUNT(*)) AS r FROM t "
        "WHERE EXISTS (SELECT 1 FROM t o WHERE o.a = t.a AND o.b > 1) GROUP BY a",
        SCHEMA,
    )
    (root,) = parsed.roots
    assert root.block is not None and root.block.outer
    assert len(parsed.document.tables) == 2
    assert parsed.document.tables_outside({id(root.node)}) == ()


@pytest.mark.parametrize("view", [True, False])
def test_a_text_that_the_parser_falls_over_is_a_syntax_error(view: bool) -> None:
    """It has no error of its own for what is no condition."""
    text = "SELECT 1 AS one FROM sales WHERE qty > AND (SELECT 1)"
    with pytest.raises(SqlInputError, match="does not parse") as caught:
        parse_query(text, SCHEMA) if not view else Schema.parse(f"CREATE VIEW v AS {text}")
    assert caught.value.code == "SYNTAX_ERROR"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("SELCT a FROM t", "does not parse at 'FROM' (line 1, column 12)"),
        ("SELCT a FROM t", ", did you mean SELECT?"),
        ("SELCT a", "begins with SELCT and is not a query, did you mean SELECT?"),
        ("a + 1", "begins with a and is not a query: give a SELECT"),
        ("DROP TABLE t", "DROP is not a query: give a SELECT"),
    ],
)
def test_what_is_no_query_is_told_by_its_own_words(text: str, says: str):
    with pytest.raises(SqlInputError) as refused:
        parse_query(text, SCHEMA)
    assert says in str(refused.value)
    assert "ALIAS" not in str(refused.value)
