"""Comments are what Spark takes for them, or a text is not answered: a WHERE that one of the two
readers took for a comment would be lost."""

from __future__ import annotations

import pytest

from matcher.model.errors import SqlInputError
from matcher.sql.comments import Unclosed, comments, hints, without_comments
from matcher.sql.reader import parse_query
from matcher.sql.schema import Schema

SCHEMA = Schema.parse("CREATE TABLE t (a INT, b INT);")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a -- b\nc", ["-- b"]),
        ("a -- b\rc", ["-- b"]),
        ("a -- b\\\nc\nd", ["-- b\\\nc"]),
        ("a -- b\\ \nc", ["-- b\\ "]),
        ("/* a */ b /**/", ["/* a */", "/**/"]),
        ("/*/ a */ b", ["/*/ a */"]),
        ("/*/*x*/*/ b", ["/*/*x*/*/"]),
        ("/* a /*+ b */ c", ["/* a /*+ b */"]),
        ("SELECT /*+ COALESCE(1) */ a", []),
        ("'--' \"/*\" `--` r'\\' -- x", ["-- x"]),
        ("'it\\'s -- ' -- x", ["-- x"]),
        ("bar'--'", []),
    ],
)
def test_where_they_stand(text, found):
    assert [text[start:end] for start, end in comments(text)] == found
    plain = without_comments(text)
    assert len(plain) == len(text) and plain.count("\n") == text.count("\n")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT /*+ COALESCE(1) */ a, /*+b*/ c", [" COALESCE(1) ", "b"]),
        (r"SELECT r'\' /*+ a */, '", None),
        (r"SELECT r'\' /*+ a */, ''", [" a "]),
        ("/* not /* yet */ /*+ a */ 1 /* /* */ /*+ b */ */", []),
        ("-- /*+ a */\n'/*+ b */' \"/*+ c */\" `/*+ d */`", []),
        ("/* a /*+ b */ /*+ c */", [" c "]),
        ("/*+ a", []),
    ],
)
def test_what_hints_say(text, found):
    if found is None:
        with pytest.raises(Unclosed):
            [*hints(text)]
    else:
        assert [*hints(text)] == found


@pytest.mark.parametrize(("text", "at"), [("a /* b", 2), ("/* /* */", 0), ("a 'b", 2), ("`", 0)])
def test_what_never_ends(text, at):
    with pytest.raises(Unclosed) as error:
        without_comments(text)
    assert error.value.at == at


@pytest.mark.parametrize(
    "text",
    [
        # Spark's comment goes on in the next line, sqlglot's does not
        "SELECT a FROM t -- all\\\nWHERE b = 1",
        "SELECT a FROM t -- all\\\nWHERE b = 1\nORDER BY a",
        # sqlglot counts the stars and slashes of these twice
        "SELECT a FROM t WHERE a = 2 /*/*x*/*/ AND b = 1",
        "SELECT b /*/*/*/*/*/ * a FROM t /*/*/*/",
        # no comment to Spark
        "SELECT a FROM t {# x #} WHERE b = 1",
    ],
)
def test_texts_that_could_be_read_in_two_ways(text):
    try:
        found = parse_query(text, SCHEMA)
    except SqlInputError:
        return
    assert any("comment" in reason.detail for reason in found.reasons)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a -- one\nFROM t /* two /* three */ */ WHERE b = 1 -- end",
        "SELECT '--', '/*' FROM t WHERE b = 1 /* it's */",
    ],
)
def test_those_that_are_read(text):
    assert parse_query(text, SCHEMA).reasons == ()
