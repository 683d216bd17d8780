"""The select of a definition: kept verbatim, and checked to be one.

The check is syntax alone, by sqlglot's stock Spark dialect; what it means is Spark's to say. It
points at the place in the whole statement. A query to be explained is not checked beyond its
first word: Spark knows syntax that sqlglot does not.
"""

from __future__ import annotations

import re

import sqlglot
from sqlglot import exp
from sqlglot.dialects import Spark
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token

from cachemgr.ddl.cursor import Cursor
from cachemgr.ddl.statements import SelectText
from cachemgr.ddl.text import Kind, Tok, line_col
from cachemgr.errors import StatementError
from matcher.sql.parse import parse_tokens

_DEFINITION = ("SELECT", "WITH", "(")
_QUERY = (*_DEFINITION, "FROM", "VALUES", "TABLE")
_MISSING = re.compile(r"Required keyword: '(\w+)' missing for <class '.*\.(\w+)'>")


def read_query(cur: Cursor) -> SelectText:
    """Read the rest of the statement as a query for Spark to judge.

    Args:
        cur: Before the query.

    Returns:
        The query.

    Raises:
        StatementError: It does not begin like a query.
    """
    if not any(cur.sees(word) for word in _QUERY):
        raise cur.fail(None, _QUERY)
    return _take(cur)


def read_definition(cur: Cursor) -> tuple[SelectText, bool]:
    """Read the rest of the statement as a cache's select.

    Args:
        cur: Before the select.

    Returns:
        The select, and whether it groups by several grouping sets (a cube).

    Raises:
        StatementError: It is no select, or its syntax is wrong.
    """
    if not any(cur.sees(word) for word in _DEFINITION):
        raise cur.fail(None, _DEFINITION)
    first = cur.peek()
    select = _take(cur)
    begin = first.start - cur.lexed.raw_shift
    tokens = [token for token in cur.lexed.raw if token.start >= begin]
    try:
        trees = parse_tokens(tokens, cur.lexed.raw_text)
    except ParseError as error:
        raise _syntax_error(cur, tokens, error) from error
    except SqlglotError as error:
        raise cur.fail(f"the select cannot be read: {error}", (), first) from error
    except RecursionError:
        return select, False  # nested deeper than sqlglot reads: left to Spark
    tree = trees[0]
    if not isinstance(tree, exp.Query):
        raise cur.fail("a cache is defined by a query, and this is none", _DEFINITION, first)
    return select, _is_cube(tree)


def _take(cur: Cursor) -> SelectText:
    first = cur.peek()
    while cur.peek().kind is not Kind.END:
        cur.advance()
    end = cur.lexed.raw[-1].end + cur.lexed.raw_shift + 1
    line, column = line_col(cur.lexed.text, first.start)
    return SelectText(cur.lexed.text[first.start : end], line, column, first.start)


def _syntax_error(cur: Cursor, tokens: list[Token], error: ParseError) -> StatementError:
    detail = error.errors[0]
    place = (detail["line"], detail["col"])
    token = next((token for token in tokens if (token.line, token.col) == place), tokens[-1])
    shift = cur.lexed.raw_shift
    tok = Tok(Kind.SYMBOL, "", token.start + shift, token.end + shift + 1)
    description = str(detail["description"])
    if missing := _MISSING.match(description):
        description = f"{missing[2].upper()} is incomplete"
    return cur.fail(f"syntax error in the select: {description}", (), tok)


def _is_cube(tree: exp.Query) -> bool:
    while isinstance(tree, exp.Subquery):
        tree = tree.this
    group = tree.args.get("group")
    if group is None:
        return False
    several = (exp.GroupingSets, exp.Cube, exp.Rollup)
    return any(group.args.get(key) for key in ("grouping_sets", "cube", "rollup")) or any(
        isinstance(key, several) for key in group.expressions
    )


def has_star(text: str) -> bool:
    """Whether a definition's columns are left to its tables somewhere: by `*`, and not the one of
    COUNT(*).

    Args:
        text: The select.

    >>> has_star("SELECT t.*, 1 AS n FROM t"), has_star("SELECT a * 2, COUNT(*) FROM t GROUP BY a")
    (True, False)
    """
    if "*" not in text:
        return False
    try:
        parsed = sqlglot.parse_one(text, dialect=Spark)
    except SqlglotError:
        return False
    return any(not isinstance(star.parent, exp.Count) for star in parsed.find_all(exp.Star))
