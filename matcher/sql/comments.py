"""Comments as Spark reads them: they nest, a hint is none, and one to the end of its line goes on
in the next line behind a backslash. sqlglot reads some of them otherwise.

Source: `SIMPLE_COMMENT` and `BRACKETED_COMMENT` of Spark's SqlBaseLexer.g4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_STOP: Final = re.compile(r"['\"`]|--|/\*(?!\+)|(?<!\w)[rR]['\"]")
_LINE: Final = re.compile(r"--(?>\\\n|[^\r\n])*+")
_QUOTE_OR_HINT: Final = re.compile(r"['\"`]|/\*\+|(?<!\w)[rR]['\"]")
_EDGE: Final = re.compile(r"/\*(?!\+)|\*/")
_NOT_BLANK: Final = re.compile(r"[^\r\n]")
# quotes by their beginning; possessive, so that no text takes long
QUOTED: Final = {
    "'": re.compile(r"'(?>[^'\\]|\\.)*+'", re.DOTALL),
    '"': re.compile(r'"(?>[^"\\]|\\.)*+"', re.DOTALL),
    "`": re.compile(r"`[^`]*+`"),
    "r'": re.compile(r"[rR]'[^']*+'"),
    'r"': re.compile(r'[rR]"[^"]*+"'),
}


class Unclosed(ValueError):
    """A quote or a comment that never ends.

    Args:
        at: Where it opens, from 0.
        closing: What would end it.
    """

    def __init__(self, at: int, closing: str) -> None:
        super().__init__(f"what opens at {at} is never closed by {closing}")
        self.at = at
        self.closing = closing


def comments(text: str) -> Iterator[tuple[int, int]]:
    """Where the comments of a text stand.

    Args:
        text: Any SQL.

    Yields:
        Start and end offset of each.

    Raises:
        Unclosed: A quote or a comment never ends.

    >>> [*comments("a '--' /* b /* c */ */ -- d")]
    [(7, 22), (23, 27)]
    """
    at = 0
    while found := _STOP.search(text, at):
        at, mark = found.start(), found.group().lower()
        if mark in QUOTED:
            closed = QUOTED[mark].match(text, at)
            if closed is None:
                raise Unclosed(at, mark[-1])
            at = closed.end()
            continue
        line = _LINE.match(text, at)
        end = _bracketed_end(text, at) if line is None else line.end()
        yield at, end
        at = end


def without_comments(text: str) -> str:
    """The text with blanks in place of its comments: every other character stays where it was.

    Args:
        text: Any SQL.

    Returns:
        A text of the same length and lines.

    Raises:
        Unclosed: A quote or a comment never ends.

    >>> without_comments("a /* b */ c")
    'a         c'
    """
    parts, done = [], 0
    for start, end in comments(text):
        parts += [text[done:start], _NOT_BLANK.sub(" ", text[start:end])]
        done = end
    return "".join([*parts, text[done:]])


def hints(text: str) -> Iterator[str]:
    """What the hints of a text say.

    Args:
        text: Any SQL.

    Yields:
        What stands in each.

    Raises:
        Unclosed: A quote or a comment never ends.

    >>> [*hints("SELECT /*+ a(b) */ '/*+ c */' /* /* */ /*+ d */ */")]
    [' a(b) ']
    """
    plain = without_comments(text)
    at = 0
    while found := _QUOTE_OR_HINT.search(plain, at):
        start, mark = found.start(), found.group().lower()
        if mark in QUOTED:
            closed = QUOTED[mark].match(plain, start)
            assert closed is not None  # the comments were found behind it
            at = closed.end()
            continue
        end = plain.find("*/", start)
        if end < 0:
            return
        yield plain[found.end() : end]
        at = end


def steps_in(written: str) -> int | None:
    """The steps that the hint RELATIONAL_CACHE_STEPS asks for; None where that is no number of up
    to nine digits.

    >>> steps_in(" 50000 "), steps_in("many")
    (50000, None)
    """
    text = written.strip()
    return int(text) if len(text) < 10 and text.isascii() and text.isdigit() else None


def _bracketed_end(text: str, start: int) -> int:
    depth = 0
    for edge in _EDGE.finditer(text, start):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    raise Unclosed(start, "*/")
