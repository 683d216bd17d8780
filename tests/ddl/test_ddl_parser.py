"""What single fixture cases cannot show: orders, scripts, sizes, positions, documentation."""

from __future__ import annotations

import itertools
import re
import time
from pathlib import Path

import pytest

import cachemgr.ddl
from cachemgr.cache_spec import Freshness, RefreshPolicy
from cachemgr.ddl import STATEMENTS, parse, parse_script, render
from cachemgr.ddl import text as ddl_text
from cachemgr.ddl.statements import CreateRelationalCache
from cachemgr.errors import StatementError
from cachemgr.vocabulary import FreshnessKind, RefreshMode
from scheduler.triggers import OnDemand

_CLAUSES = (
    "COMMENT 'c'",
    "PARTITIONED BY (a, b)",
    "LOCATION '/tmp/x'",
    "TBLPROPERTIES ('k' = 'v')",
    "REFRESH ON COMMIT AT MOST EVERY 5 MINUTES INCREMENTAL",
    "MAX STALENESS INTERVAL 1 HOUR",
    "DISABLE REWRITE",
)
_DOCS = Path(__file__).parents[2] / "docs" / "ddl.md"


def test_clauses_in_any_order() -> None:
    in_order = parse(f"CREATE RELATIONAL CACHE c {' '.join(_CLAUSES)} AS SELECT 1 a")
    for order in itertools.permutations(_CLAUSES[:2] + _CLAUSES[3:6]):
        rest = (_CLAUSES[6], *order, _CLAUSES[2])
        text = f"create relational cache c {' '.join(rest)} as SELECT 1 a"
        assert parse(text) == in_order, text


@pytest.mark.parametrize("pair", list(itertools.permutations(_CLAUSES, 2)), ids=" / ".join)
def test_each_pair_of_clauses_in_each_order(pair: tuple[str, str]) -> None:
    statement = parse(f"CREATE RELATIONAL CACHE c {pair[0]} {pair[1]} AS SELECT 1 a")
    swapped = parse(f"CREATE RELATIONAL CACHE c {pair[1]} {pair[0]} AS SELECT 1 a")
    assert statement == swapped


@pytest.mark.parametrize("clause", _CLAUSES)
def test_each_clause_at_most_once(clause: str) -> None:
    with pytest.raises(StatementError, match=r"is given twice: .* line 1, column 27 already"):
        parse(f"CREATE RELATIONAL CACHE c {clause} {clause} AS SELECT 1 a")


def test_defaults() -> None:
    statement = parse("CREATE RELATIONAL CACHE c AS SELECT 1 a")
    assert isinstance(statement, CreateRelationalCache)
    assert statement.spec.refresh == RefreshPolicy(OnDemand(), RefreshMode.AUTO)
    assert statement.spec.freshness == Freshness(FreshnessKind.STRICT)
    assert statement.spec.rewrite_enabled
    assert "REFRESH ON DEMAND AUTO\n  STRICT\n  ENABLE REWRITE\nAS" in render(statement)


@pytest.mark.parametrize(
    "unit,seconds", [("SECOND", 1), ("minute", 60), ("Hour", 3600), ("DAY", 86400)]
)
def test_every_unit_in_both_numbers(unit: str, seconds: int) -> None:
    for plural in ("", "s", "S"):
        text = f"ALTER RELATIONAL CACHE c SET REFRESH EVERY 3 {unit}{plural}"
        assert parse(text).action.refresh.trigger.seconds == 3 * seconds


def test_select_is_an_exact_substring_with_its_place() -> None:
    select = "SELECT  a ,\n\tb -- note\n FROM t /* ; */ WHERE x = ';'"
    text = f"CREATE RELATIONAL CACHE c\n  STRICT AS /* why */\r\n   {select}  -- done\n;"
    found = parse(text).select
    assert found.text == select
    assert (found.line, found.column, found.offset) == (3, 4, text.index(select))


def test_script_counts_lines_from_its_beginning() -> None:
    script = """-- caches.sql
    CREATE RECORD PRESERVING JOIN j AS a INNER JOIN b ON a.k = b.k PRESERVES a;;
    CREATE RELATIONAL CACHE c AS SELECT ';' AS s; -- a comment; with one
    SHOW RELATIONAL CACHES LIKE 'a;b';
    SHOW RECORD PRESERVING JOINS
    ; /* the end; */
    """
    kinds = [type(statement).__name__ for statement in parse_script(script)]
    assert kinds == [
        "CreateRecordPreservingJoin",
        "CreateRelationalCache",
        "ShowRelationalCaches",
        "ShowRecordPreservingJoins",
    ]
    assert parse_script(script)[1].select.line == 3
    with pytest.raises(StatementError) as caught:
        parse_script(script + "\nDROP RELATIONAL CASHE c")
    assert (caught.value.line, caught.value.col) == (8, 17)
    assert parse_script(" ;; -- nothing\n") == []


def test_select_error_is_placed_in_the_script() -> None:
    with pytest.raises(StatementError) as caught:
        parse_script("SHOW RELATIONAL CACHES;\nCREATE RELATIONAL CACHE c AS\nSELECT a FRM b c\n d")
    assert (caught.value.line, caught.value.col, caught.value.token) == (3, 14, "b")


def test_large_select() -> None:
    sums = ",\n".join(
        f"SUM(CASE WHEN k = {n} THEN `v é {n}` ELSE 0 END) AS s{n}" for n in range(2500)
    )
    select = f"SELECT g,\n{sums}\nFROM t GROUP BY g"
    assert len(select) > 100_000
    begin = time.perf_counter()
    statement = parse(f"CREATE RELATIONAL CACHE c AS {select};")
    assert time.perf_counter() - begin < 10
    assert statement.select.text == select
    with pytest.raises(StatementError) as caught:
        parse(f"CREATE RELATIONAL CACHE c AS {select} HAVING x y z")
    assert caught.value.line == 2502


def test_deeply_nested_select_is_left_to_spark() -> None:
    select = "SELECT " + "(" * 20_000 + "1" + ")" * 20_000 + " AS a"
    assert parse(f"CREATE RELATIONAL CACHE c AS {select}").select.text == select


def test_constructors_refuse_what_no_text_says() -> None:
    with pytest.raises(ValueError, match="one to three"):
        cachemgr.ddl.QualifiedName(("a", "b", "c", "d"))
    with pytest.raises(ValueError, match="STRICT with 5 seconds"):
        Freshness(FreshnessKind.STRICT, 5)
    with pytest.raises(ValueError, match="positive"):
        Freshness(FreshnessKind.MAX_STALENESS, 0)


def test_every_statement_has_a_heading_in_the_docs() -> None:
    headings = set(re.findall(r"^#+ `?(.+?)`?$", _DOCS.read_text("utf-8"), flags=re.MULTILINE))
    assert set(STATEMENTS.values()) <= headings


def test_every_example_in_the_docs_parses() -> None:
    examples = re.findall(r"```sql\n(.+?)```", _DOCS.read_text("utf-8"), flags=re.DOTALL)
    found = [type(statement) for example in examples for statement in parse_script(example)]
    assert set(found) == set(STATEMENTS)


def test_every_error_in_the_docs_is_the_one_raised() -> None:
    pairs = re.findall(r"```text\n(.+?)\n=> (.+?)\n```", _DOCS.read_text("utf-8"), flags=re.DOTALL)
    assert pairs
    for text, message in pairs:
        with pytest.raises(StatementError) as caught:
            parse(text)
        assert str(caught.value) == message


@pytest.mark.parametrize(
    "comment", ["/*/*x*/*/", "/*/*/*x*/*/*/", "/* a /* b */ c */", "-- c\\\n;\n"]
)
def test_comments_are_those_of_spark(comment: str) -> None:
    text = (
        f"CREATE RELATIONAL CACHE c {comment} AS SELECT a {comment}\n FROM t WHERE b = 1 {comment}"
    )
    statement = parse(text)
    assert isinstance(statement, CreateRelationalCache)
    assert statement.select.text == f"SELECT a {comment}\n FROM t WHERE b = 1"
    assert parse(render(statement)) == statement


def test_comments_are_taken_out_once_however_many_statements(monkeypatch):
    """Once for each, a text of semicolons alone would take the square of its length."""
    looked: list[str] = []

    def noted(given: str) -> str:
        looked.append(given)
        return given

    monkeypatch.setattr(ddl_text, "without_comments", noted)
    with pytest.raises(StatementError):
        parse("SELECT 1 FROM once_only" + ";" * 50)
    assert len(looked) == 1


def test_a_select_that_the_parser_falls_over_is_a_syntax_error() -> None:
    text = "CREATE RELATIONAL CACHE c AS SELECT a FROM t GROUP BY a HAVING a > AND (SELECT 1)"
    with pytest.raises(
        StatementError, match="the select cannot be read: the statement cannot be parsed"
    ):
        parse(text)


@pytest.mark.parametrize("number", ["9" * 5_000, "9" * 1_000_000, "0" * 5_000 + "7", "\u0663"])
@pytest.mark.parametrize(
    "text",
    [
        "CREATE RELATIONAL CACHE c REFRESH EVERY {n} HOURS AS SELECT 1",
        "CREATE RELATIONAL CACHE c REFRESH TARGET LAG {n} DAYS AS SELECT 1",
        "CREATE RELATIONAL CACHE c REFRESH CRON '{n} * * * *' AS SELECT 1",
        "CREATE RELATIONAL CACHE c REFRESH CRON '*/{n} * * * *' AS SELECT 1",
        "CREATE RELATIONAL CACHE c REFRESH CRON '0 6 * * *' AT TIME ZONE '{n}' AS SELECT 1",
        "CREATE RELATIONAL CACHE c MAX STALENESS INTERVAL '{n} days' AS SELECT 1",
        "CREATE RELATIONAL CACHE c AS SELECT INTERVAL '{n}' DAY AS x",
        "CREATE RELATIONAL CACHE {n} AS SELECT 1",
        "SHOW RELATIONAL CACHE SAVINGS SINCE {n}",
        "REFRESH RELATIONAL CACHE c {n}",
        "{n}",
    ],
)
def test_numbers_of_any_length_are_read_or_refused_in_words(text: str, number: str) -> None:
    began = time.process_time()
    try:
        parse(text.replace("{n}", number))
    except StatementError as error:
        assert len(error.message) < 2_000
    assert time.process_time() - began < 3
