"""A text of a known shape is read as the parser reads it, or not without it."""

from __future__ import annotations

import random

import pytest

from matcher.model.errors import MatcherError
from matcher.sql import templates
from matcher.sql.reader import TextQuery, TextSettings, parse_query
from matcher.sql.schema import Schema
from matcher.sql.templates import Template, learn, lift, pinned

SCHEMA = Schema.parse(
    """CREATE TABLE t (a INT, b BIGINT, s STRING, r STRING NOT NULL, d DATE, p DECIMAL(10,2),
       n SMALLINT, v BIGINT, f DOUBLE, c CHAR(5));
       CREATE TABLE u (a INT, k STRING, w INT)"""
)
SETTINGS = TextSettings()
GROUPED = "SELECT s, SUM(v) AS x FROM t WHERE {} GROUP BY s"


def _learn(text: str) -> Template | None:
    lifted = lift(text)
    if lifted is None:
        return None
    return learn(text, lifted, parse_query(text, SCHEMA, SETTINGS), SCHEMA, SETTINGS)


def _free(text: str) -> list[str]:
    found = _learn(text)
    lifted = lift(text)
    return [] if found is None or lifted is None else [lifted.constants[p] for p in found.free]


@pytest.mark.parametrize(
    ("condition", "free"),
    [
        ("a = 5 AND s = 'x'", ["5", "'x'"]),
        ("a BETWEEN 1 AND 2 AND b > 3 AND 4 <= b", ["1", "2", "3", "4"]),
        ("s IN ('x', 'y', 'x') AND a IN (1, 2)", ["'x'", "'y'", "'x'", "1", "2"]),
        ("(a = 5) AND `s` <> 'x'", ["5", "'x'"]),
        # the value may have a say in what these mean
        ("d = '2024-01-01' AND a = 5", ["5"]),
        ("p = 5 AND f = 1 AND n = 7 AND a = '3' AND b = 2", ["2"]),
        ("s = 5 AND a = 6", ["6"]),
        ("a + 1 = 5 AND b = 2", ["2"]),
        ("b = 10000000000 AND a > 1.5 AND a < 007 AND b = 2", ["2"]),
        # these are not taken at all
        ("a = -5 AND b = 2", []),
        ("a = 5L AND b = 2", []),
        ("a = 5 AND (a = 6 OR s = 'x')", []),
        ("a = 5 AND a NOT BETWEEN 7 AND 9", []),
        ("a = 5 AND s LIKE 'x%'", []),
        ("a = 5 AND CASE WHEN a = 6 THEN TRUE ELSE s = 'x' END", []),
        ("a = 5 AND s IS NOT NULL", []),
        ("a = 5 AND coalesce(a, 6) = 7", []),
        ("a = 5 AND s = 'it''s'", []),
        ("a = 5 AND s = r'x'", []),
        ("a = 5 AND s = 'x\\n'", []),
        ('a = 5 AND s = "x"', []),
        ("a = 5 -- AND a = 6\n AND b = 1", []),
        ("a = 5 /* AND a = 6 */ AND b = 1", []),
        ("a = 5 AND a IN (SELECT a FROM u WHERE w = 6)", []),
    ],
)
def test_what_may_be_another_constant(condition, free):
    assert _free(GROUPED.format(condition)) == free


@pytest.mark.parametrize(
    ("text", "free"),
    [
        ("SELECT s, SUM(v * 2) AS x FROM t WHERE a = 5 GROUP BY 1 ORDER BY 2 LIMIT 10", ["5"]),
        ("SELECT s, SUM(v) AS x FROM t GROUP BY s HAVING SUM(v) > 10 AND s = 'x'", []),
        ("SELECT SUM(v) FILTER (WHERE a = 5) AS x FROM t WHERE a = 6", ["6"]),
        (
            "SELECT a, SUM(v) AS x FROM t JOIN u ON t.a = u.a AND w = 3 WHERE k = 'x' GROUP BY a",
            None,
        ),
        ("SELECT t.a, SUM(v) AS x FROM t JOIN u ON t.a = u.a AND w = 3 GROUP BY t.a", ["3"]),
        # which of the constants are equal decides on a join, so none is free
        ("SELECT s, SUM(v) AS x FROM t, u WHERE t.a = 3 AND u.a = 3 GROUP BY s", []),
        ("SELECT s, SUM(v) AS x FROM t, u WHERE t.a = 3 AND u.a = 4 GROUP BY s", []),
        ("SELECT s, SUM(v) AS x FROM t CROSS JOIN u WHERE b = 3 GROUP BY s", []),
        (
            "SELECT s, SUM(v) AS x FROM t, u WHERE s = k AND t.a = 3 AND u.a = 3 GROUP BY s",
            ["3", "3"],
        ),
        ("SELECT t.a, SUM(v) AS x FROM t LEFT JOIN u ON t.a = u.a WHERE w = 3 GROUP BY t.a", []),
        ("SELECT t.a, SUM(v) AS x FROM t JOIN u USING (a) WHERE w = 3 GROUP BY t.a", []),
        ("SELECT s, SUM(v) AS x FROM (SELECT * FROM t WHERE a = 5) GROUP BY s", []),
        ("WITH q AS (SELECT * FROM t WHERE a = 5) SELECT s, SUM(v) AS x FROM q GROUP BY s", []),
        ("SELECT s FROM t WHERE a = 5 UNION ALL SELECT k FROM u WHERE w = 5", []),
        ("SELECT s, ROW_NUMBER() OVER (ORDER BY s) AS x FROM t WHERE a = 5 GROUP BY s", []),
        ("SELECT s AS `5` FROM t WHERE a = 5 AND s = '`'", ["5", "'`'"]),
        ("SELECT s FROM t WHERE a = 5;", ["5"]),
        ("SELECT s FROM t WHERE a = 5; SELECT 1", None),
        ("SELECT s, 5 AS y FROM t WHERE a = 5 AND b = 5", ["5", "5"]),
    ],
)
def test_of_which_texts(text, free):
    if free is None:
        with pytest.raises(MatcherError):
            _learn(text)
    else:
        assert _free(text) == free


@pytest.mark.parametrize(
    ("condition", "parses"),
    [("d >= DATE '2024-01-01'", 0), ("a = 5 OR b = 6", 0), ("s LIKE 'x%'", 0), ("a = 5", 1)],
)
def test_nothing_is_parsed_for_what_cannot_be_learned(monkeypatch, condition, parses):
    parsed: list[str] = []

    def counted(text: str, schema: Schema, settings: TextSettings) -> TextQuery:
        parsed.append(text)
        return parse_query(text, schema, settings)

    monkeypatch.setattr(templates, "parse_query", counted)
    assert (_learn(GROUPED.format(condition)) is not None) is (parses > 0)
    assert len(parsed) == parses


def test_what_a_template_reads_is_what_the_parser_reads():
    """Random conditions with random constants, equal ones and contradictory ones among them."""
    choose, learned, checked = random.Random(7), 0, 0
    words = ("x", "y", "Größe 3", "", " x ", "10", "%", "a,b", "NULL")
    forms = (
        "a {op} {i}", "b {op} {i}", "s {op} {w}", "r {op} {w}", "a IN ({i}, {i}, {i})",
        "r IN ({w}, {w})", "b BETWEEN {i} AND {i}", "{i} {op} a", "n {op} {i}", "p {op} {i}",
        "d {op} {w}", "a + {i} {op} {i}", "a = b", "s = r",
    )  # fmt: skip
    for _ in range(150):
        shown = choose.choice(
            ("s, COUNT(r) AS n, COUNT(s) AS m", "s, SUM(v) AS x", "s, MAX(a) AS x")
        )
        body = " AND ".join(choose.sample(forms, choose.randrange(1, 5)))
        while "{op}" in body:
            body = body.replace("{op}", choose.choice(("=", "<", "<=", ">", ">=", "<>")), 1)
        text = f"SELECT {shown} FROM t WHERE {body} GROUP BY s ORDER BY s LIMIT {{i}}"

        def given(text: str = text) -> str:
            while "{i}" in text:
                text = text.replace("{i}", str(choose.choice((0, 1, 2, 5, 999_999_999))), 1)
            while "{w}" in text:
                text = text.replace("{w}", f"'{choose.choice(words)}'", 1)
            return text

        try:
            template = _learn(first := given())
        except MatcherError:
            continue
        if template is None:
            continue
        learned += 1
        for _ in range(8):
            other, known = lift(given()), lift(first)
            assert other is not None and known is not None and other.shape == known.shape
            constants = list(known.constants)
            for place in template.free:
                constants[place] = other.constants[place]
            text = known.with_constants(constants)
            lifted = lift(text)
            assert lifted is not None and lifted.constants == tuple(constants)
            assert pinned(lifted, template.free) == pinned(known, template.free)
            (found,) = template.read(lifted).roots
            (wanted,) = parse_query(text, SCHEMA, SETTINGS).roots
            assert wanted.block is not None and found.block is not None
            assert dict.fromkeys(found.block.predicates) == dict.fromkeys(wanted.block.predicates)
            assert found.block.outputs == wanted.block.outputs
            assert found.block.group_keys == wanted.block.group_keys
            assert (found.block.order_by, found.block.limit) == (
                wanted.block.order_by,
                wanted.block.limit,
            )
            checked += 1
    assert learned > 60 and checked > 500


def test_the_text_that_is_read_and_what_it_reads():
    text = "SELECT t.a, SUM(v) AS x FROM t, u WHERE t.a = u.a AND w = 3 GROUP BY t.a"
    template = _learn(text)
    assert template is not None
    lifted = lift(text.replace("3", "44"))
    assert lifted is not None
    read = template.read(lifted)
    assert {table.name for _, table in read.document.tables.values()} == {"t", "u"}
    assert read.hinted == frozenset() and read.reasons == ()
    (root,) = read.roots
    assert read.document.tables_outside({id(root.node)}) == ()
    assert len(read.document.tables_outside(())) == 2
    assert read.replace({root: "SELECT 1"}) == "SELECT 1"
