"""From text to tokens: statements split at `;`, literals decoded, places counted.

Over sqlglot's stock Spark tokenizer, whose tokens are put right where they differ from Spark's
words (`10s` and `2024_x` are one word each). Refuses quotes and comments that never end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache

from sqlglot.dialects import Spark
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from cachemgr.errors import StatementError
from matcher.sql.comments import QUOTED, Unclosed, without_comments

# sqlglot reads a statement that begins with a word such as SHOW or EXPLAIN up to its end as one
# string. A number in front of it, cut off again, keeps it from doing so.
_PREFIX = "0 "
_STOP = re.compile(r"['\"`;]|(?<!\w)[rR]['\"]")
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+(?:\.\d*)?(?:E[+-]?\d+)?(?:BD|[LSYDF])?", re.IGNORECASE)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([0-3][0-7]{2})|(.))", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_LITERALS = (TokenType.STRING, TokenType.RAW_STRING)


class Kind(Enum):
    """What a token is to our grammar."""

    WORD = auto()
    QUOTED = auto()
    STRING = auto()
    NUMBER = auto()
    SYMBOL = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class Tok:
    """A token: its text (decoded if quoted) and its place in the whole text, end exclusive."""

    kind: Kind
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Lexed:
    """One statement: our tokens, ending with END, and sqlglot's own with the text they refer to."""

    text: str
    toks: tuple[Tok, ...]
    raw: tuple[Token, ...]
    raw_text: str
    raw_shift: int


def line_col(text: str, offset: int) -> tuple[int, int]:
    """Count the line and column, from 1, of an offset.

    Args:
        text: The whole text.
        offset: An offset in it, from 0.

    Returns:
        Line and column.

    >>> line_col("a\\nbc", 3)
    (2, 2)
    """
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def split_statements(text: str) -> Iterator[tuple[int, int]]:
    """Split at the semicolons that stand outside quotes and comments.

    Args:
        text: Statements separated by `;`.

    Yields:
        Start and end offset of each piece, those that are empty or hold comments only too.

    Raises:
        StatementError: A quote or a comment never ends.

    >>> list(split_statements("a ';' ; b"))
    [(0, 6), (7, 9)]
    """
    text = _plain(text)
    begin = at = 0
    while found := _STOP.search(text, at):
        at, mark = found.start(), found.group().lower()
        if mark == ";":
            yield begin, at
            begin = at = at + 1
        else:
            closed = QUOTED[mark].match(text, at)
            assert closed is not None
            at = closed.end()
    yield begin, len(text)


def lex(text: str, start: int, end: int) -> Lexed:
    """Tokenise one statement.

    Args:
        text: The whole text.
        start: Where the statement begins.
        end: Where it ends (exclusive).

    Returns:
        Its tokens.

    Raises:
        StatementError: It holds a character that no token begins with.
    """
    raw_text = _PREFIX + _plain(text)[start:end]
    shift = start - len(_PREFIX)
    try:
        raw = tuple(Spark().tokenize(raw_text))[1:]
    except TokenError as error:
        line, col = line_col(text, start)
        raise StatementError(f"this text cannot be tokenised: {error}", line, col, "") from error
    toks = (*_toks(text, raw, shift, end), Tok(Kind.END, "", end, end))
    return Lexed(text, toks, raw, raw_text, shift)


def unescape(literal: str) -> str:
    """Decode a string literal as Spark does.

    Args:
        literal: The literal with its quotes, and its `r` if it is raw.

    Returns:
        The string it stands for.

    >>> unescape(r"'it\\'s 5\\% A'")
    "it's 5\\\\% A"
    """
    if literal[0] in "rR":
        return literal[2:-1]
    return _ESCAPE.sub(_unescape_one, literal[1:-1])


def _unescape_one(match: re.Match[str]) -> str:
    short, long, octal, char = match.groups()
    if code := short or long:
        number = int(code, 16)
        return chr(number) if number <= 0x10FFFF else match.group()
    if octal:
        return chr(int(octal, 8))
    # LIKE patterns need their backslash before % and _: Spark leaves it for them.
    return match.group() if char in "%_" else _ESCAPED.get(char, char)


def _toks(text: str, raw: tuple[Token, ...], shift: int, end: int) -> Iterator[Tok]:
    done = 0
    for token in raw:
        start = token.start + shift
        if start < done:
            continue  # a part of a word that sqlglot cut in two
        tok = _tok(text, token, start, token.end + shift + 1)
        if tok.kind is Kind.NUMBER and tok.text[0] == ".":
            # `db.1x`: to Spark, a dot and a name
            yield Tok(Kind.SYMBOL, ".", start, start + 1)
            tok = _word(text, start + 1, tok.end)
        done = min(tok.end, end)
        yield tok
        # `CLUSTER BY` is one token to sqlglot, two words to us.
        rest = _WORD.finditer(text, tok.end, token.end + shift + 1)
        yield from (Tok(Kind.WORD, word.group(), *word.span()) for word in rest)


def _tok(text: str, token: Token, start: int, end: int) -> Tok:
    raw = text[start:end]
    if token.token_type == TokenType.IDENTIFIER:
        return Tok(Kind.QUOTED, raw[1:-1].replace("``", "`"), start, end)
    if token.token_type in _LITERALS:
        return Tok(Kind.STRING, unescape(raw), start, end)
    if raw[0] == "." and len(raw) > 1 and raw[1].isdigit():
        return Tok(Kind.NUMBER, raw, start, end)
    return _word(text, start, end)


def _word(text: str, start: int, end: int) -> Tok:
    word = _WORD.match(text, start)
    if word is None or "'" in text[start:end] or '"' in text[start:end]:
        return Tok(Kind.SYMBOL, text[start:end], start, end)
    number = _NUMBER.match(text, start)
    if number and number.end() >= word.end():
        return Tok(Kind.NUMBER, number.group(), start, number.end())
    return Tok(Kind.WORD, word.group(), start, word.end())


@lru_cache(maxsize=1)  # each statement of a text asks for it
def _plain(text: str) -> str:
    """Without comments, for sqlglot reads nested ones otherwise than Spark."""
    try:
        return without_comments(text)
    except Unclosed as error:
        what = "comment" if error.closing == "*/" else "quote"
        raise _unclosed(text, error.at, error.closing, f"{what} that opens here") from None


def _unclosed(text: str, at: int, closing: str, what: str) -> StatementError:
    line, col = line_col(text, at)
    token = text[at:].split("\n", 1)[0][:40]
    return StatementError(f"the {what} is never closed", line, col, token, (closing,))
