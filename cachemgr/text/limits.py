"""Which texts are long, and which the parser must not be given: it would take forever, or end the
process.

The parser goes one level of its own stack deeper for each level of a text, and a thread's stack is
bounded; of joins without a condition it tries every way of nesting them.
"""

from __future__ import annotations

from typing import Final

import sqlglot
from sqlglot import TokenType
from sqlglot.errors import SqlglotError

from matcher.model.errors import InputCode, SqlInputError
from matcher.sql.parse import MAX_DEPTH, too_deep_type

# characters of a text that waits apart, and of which nothing is remembered
LONG_TEXT: Final = 20_000
MAX_TOKENS: Final = 20_000
MAX_OPEN_JOINS: Final = 8
# Where one of these is, a comma may be part of a name, a constant or a comment.
_QUOTES: Final = ("'", '"', "`", "--", "/*")
# Each is a word by itself.
_SINGLE: Final = ",()"
_OPEN: Final = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE})
_CLOSE: Final = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE})
_WITHOUT_CONDITION: Final = frozenset({TokenType.CROSS, TokenType.NATURAL})


def check_text(sql: str) -> None:
    """Refuse a text that is too long or too deep.

    Args:
        sql: The text.

    Raises:
        SqlInputError: It is, or it has no tokens of SQL.
    """
    # The tokenizer is compiled code that lets no other thread of the process run: it is not given
    # what a look tells to be too long.
    plain = not any(mark in sql for mark in _QUOTES)
    if plain and sum(map(sql.count, _SINGLE)) > MAX_TOKENS:
        raise _too(
            InputCode.TEXT_TOO_LONG,
            f"it has more than {MAX_TOKENS} words, which is the most that is read",
        )
    try:
        tokens = sqlglot.tokenize(sql, read="spark")
    except SqlglotError as error:
        raise SqlInputError(InputCode.SYNTAX_ERROR, str(error).splitlines()[0]) from error
    if len(tokens) > MAX_TOKENS:
        raise _too(
            InputCode.TEXT_TOO_LONG, f"it has {len(tokens)} words, at most {MAX_TOKENS} are read"
        )
    if too_deep_type(tokens, sql) is not None:
        raise _too(InputCode.TEXT_TOO_DEEP, f"its types are nested more than {MAX_DEPTH} times")
    depth = open_joins = 0
    before: TokenType | None = None
    for token in tokens:
        kind = token.token_type
        depth += (kind in _OPEN) - (kind in _CLOSE)
        open_joins += kind == TokenType.JOIN and before not in _WITHOUT_CONDITION
        if kind in (TokenType.ON, TokenType.USING):
            open_joins = max(0, open_joins - 1)
        if depth > MAX_DEPTH:
            raise _too(
                InputCode.TEXT_TOO_DEEP, f"its brackets are nested more than {MAX_DEPTH} times"
            )
        if open_joins > MAX_OPEN_JOINS:
            raise _too(
                InputCode.TEXT_TOO_DEEP,
                f"more than {MAX_OPEN_JOINS} of its joins have no ON or USING",
            )
        before = kind


def _too(code: InputCode, why: str) -> SqlInputError:
    what = "long" if code is InputCode.TEXT_TOO_LONG else "deep"
    return SqlInputError(code, f"the query is too {what} to be read: {why}")
