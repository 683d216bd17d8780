"""One text as the tree of one query, and what is said of a text that is none."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Final

from sqlglot import exp
from sqlglot.errors import SqlglotError

from matcher.model.errors import InputCode, SqlInputError
from matcher.sql.parse import parse_statements
from matcher.sql.schema import syntax_error

_BEGINNINGS: Final = ("SELECT", "WITH", "FROM", "VALUES", "TABLE")


def parse_one_query(text: str) -> exp.Expr:
    """The tree of a text that is one query.

    Raises:
        SqlInputError: It does not parse, is several statements, or is no query.
    """
    try:
        statements = parse_statements(text)
    except (SqlglotError, RecursionError) as error:
        if isinstance(error, RecursionError):
            raise SqlInputError(
                InputCode.SYNTAX_ERROR, "the query is nested too deeply to read"
            ) from error
        wrong = syntax_error(error, "the query")
        meant = _meant(text)
        if not meant:
            raise wrong from error
        raise SqlInputError(
            InputCode(wrong.code), f"{wrong}{meant}", wrong.line, wrong.col
        ) from error
    statements = [s for s in statements if not isinstance(s, exp.Semicolon)]
    if len(statements) != 1:
        raise SqlInputError(
            InputCode.NOT_ONE_QUERY,
            f"the query holds {len(statements)} statements: give exactly one",
        )
    root = statements[0]
    if not isinstance(root, (exp.Query, exp.Subquery)):
        raise SqlInputError(InputCode.NOT_A_QUERY, _not_a_query(text, root))
    return root


def _not_a_query(text: str, root: exp.Expr) -> str:
    """What is said of a statement of another kind, and of words that the parser took for an
    expression: `SELCT a` is a column with an alias to it.

    >>> _not_a_query("SELCT a FROM t", exp.Alias())
    'the text begins with SELCT and is not a query, did you mean SELECT?'
    """
    meant = _meant(text)
    if meant or isinstance(root, exp.Condition):
        advice = meant or ": give a SELECT"
        return f"the text begins with {_first_word(text)} and is not a query{advice}"
    return f"{root.key.upper()} is not a query: give a SELECT"


def _meant(text: str) -> str:
    """What a text that is no query may be meant to begin with, as the end of a message."""
    word = _first_word(text).upper()
    near = get_close_matches(word, _BEGINNINGS, n=1, cutoff=0.7)
    return f", did you mean {near[0]}?" if near and near[0] != word else ""


def _first_word(text: str) -> str:
    found = re.search(r"\w+", text)
    return found.group()[:40] if found else ""
