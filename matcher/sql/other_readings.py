"""What of a text Spark may read otherwise than the parser: that is refused, never guessed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import sqlglot
from sqlglot import TokenType

from matcher.model.reasons import Reason, ReasonCode, not_taken
from matcher.sql.comments import Unclosed, without_comments
from matcher.sql.expressions.types import TextSettings
from matcher.sql.parse import has_doubled_quote, next_argument

_ESCAPES: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_DOUBLED_QUOTE: Final = Reason(
    ReasonCode.UNSUPPORTED_EXPRESSION,
    "a doubled quote in a string, which Spark 4.0 leaves out and later ones read as one quote",
    "write it with a backslash, or say which Spark runs the query by spark.cachemgr.sparkVersion",
)


def read_otherwise(text: str, settings: TextSettings) -> Iterator[Reason]:
    """Why a query is left as it is: Spark may read its text otherwise than the parser does.

    Args:
        text: The query.
        settings: What it is read under.
    """
    if not settings.is_since(4, 1) and has_doubled_quote(text):
        yield _DOUBLED_QUOTE
    if "${" in text:
        yield Reason(
            ReasonCode.UNSUPPORTED_EXPRESSION,
            "${…}: Spark would put a setting there",
            "write the setting's value",
        )
    if _computed_unit(text):
        yield not_taken(
            ReasonCode.UNSUPPORTED_EXPRESSION, "trunc or date_trunc with a computed unit"
        )
    if _is_collated(text):
        yield not_taken(
            ReasonCode.UNSUPPORTED_EXPRESSION, "COLLATE, of which the text says too little"
        )
    if _has_path(text):
        yield not_taken(ReasonCode.UNSUPPORTED_EXPRESSION, "a path into a VARIANT")
    if not _comments_agree(text):
        yield Reason(
            ReasonCode.UNSUPPORTED_EXPRESSION,
            "a comment that Spark may read otherwise",
            "take it out",
        )
    if "\\" in text and not _escapes_agree(text):
        yield Reason(
            ReasonCode.UNSUPPORTED_EXPRESSION,
            "an escape in a string that Spark may read otherwise",
            "write the character itself",
        )


def _computed_unit(text: str) -> bool:
    """True if the unit of some trunc or date_trunc is not a string as written: the parser makes a
    unit of the name of a column, too."""
    if "trunc" not in text.lower():
        return False
    tokens = sqlglot.tokenize(text, read="spark")
    for start, token in enumerate(tokens[:-2]):
        name = token.text.lower()
        if name in ("trunc", "date_trunc") and tokens[start + 1].token_type == TokenType.L_PAREN:
            unit = start + 2 if name == "date_trunc" else next_argument(tokens, start + 2)
            if unit >= len(tokens) or tokens[unit].token_type != TokenType.STRING:
                return True
    return False


def _is_collated(text: str) -> bool:
    """True if some expression is given a collation: the parser leaves it out of a type."""
    if "collat" not in text.lower():
        return False
    return any(t.text.lower() in ("collate", "collation") for t in sqlglot.tokenize(text, "spark"))


def _has_path(text: str) -> bool:
    """True if something is taken out of a VARIANT by `column:path`, which the parser may read as
    an alias."""
    if ":" not in text:
        return False
    tokens = sqlglot.tokenize(text, read="spark")
    return any(
        after.token_type == TokenType.COLON and before.token_type in _BEFORE_A_PATH
        for before, after in pairwise(tokens)
    )


_BEFORE_A_PATH: Final = frozenset(
    {TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN, TokenType.R_BRACKET}
)


def _comments_agree(text: str) -> bool:
    """True if the parser takes those parts of a text for comments that Spark does."""
    if not any(mark in text for mark in ("--", "/*", "{#")):
        return True
    try:
        plain = without_comments(text)
    except Unclosed:
        return False
    as_read = [(t.token_type, t.text, t.start, t.end) for t in sqlglot.tokenize(text, read="spark")]
    without = sqlglot.tokenize(plain, read="spark")
    ends = (0, *(t.end + 1 for t in without))
    starts = (*(t.start for t in without), len(plain))
    return as_read == [(t.token_type, t.text, t.start, t.end) for t in without] and all(
        plain[end:start].strip() == "" for end, start in zip(ends, starts, strict=True)
    )


def _escapes_agree(text: str) -> bool:
    """True if the parser reads each quoted string with a backslash as Spark does."""
    for token in sqlglot.tokenize(text, read="spark"):
        raw = text[token.start : token.end + 1]
        if token.token_type != TokenType.STRING or "\\" not in raw:
            continue
        body, value, i = raw[1:-1], "", 0
        while i < len(body):
            if body[i] != "\\" or i + 1 == len(body):
                value += body[i]
                i += 1
                continue
            mark = body[i + 1]
            if mark in "uU0123456789" or mark in "%_":
                return False
            value += _ESCAPES.get(mark, mark)
            i += 2
        if value != token.text:
            return False
    return True


def why_not_inlined(text: str, settings: TextSettings) -> str | None:
    """Why a view is not looked into, if so.

    Args:
        text: The view's query.
        settings: What it is read under.
    """
    if not settings.is_since(4, 1) and has_doubled_quote(text):
        return "has a doubled quote in a string, which Spark 4.0 leaves out"
    if _computed_unit(text):
        return "truncates to a computed unit"
    if _is_collated(text):
        return "gives a collation to a string"
    return "takes a path into a VARIANT" if _has_path(text) else None
