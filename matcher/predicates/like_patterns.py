"""LIKE patterns: what they match, and the prefix that all matches share.

Spark's rules (`StringUtils.escapeLikeRegex`): `%` is any text, `_` one character, the escape
character (`\\` unless another is given) takes the next `%`, `_` or itself literally. Before
anything else, or at the end, it is an error, and the pattern is left to Spark.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

ANY_TEXT: Final = "%"
ANY_CHAR: Final = "_"


@lru_cache(maxsize=1024)
def parse(pattern: str, escape: str = "\\") -> tuple[tuple[bool, str], ...] | None:
    """The pattern's parts: (False, text) or (True, `%` or `_`); None where Spark would raise.

    >>> parse("a_%")
    ((False, 'a'), (True, '_'), (True, '%'))
    """
    parts: list[tuple[bool, str]] = []
    position = 0
    while position < len(pattern):
        char = pattern[position]
        if char == escape:
            position += 1
            if position == len(pattern) or pattern[position] not in (ANY_TEXT, ANY_CHAR, escape):
                return None
            wild, char = False, pattern[position]
        else:
            wild = char in (ANY_TEXT, ANY_CHAR)
        if not wild and parts and not parts[-1][0]:
            parts[-1] = (False, parts[-1][1] + char)
        elif (wild, char) != (True, ANY_TEXT) or not parts or parts[-1] != (True, ANY_TEXT):
            parts.append((wild, char))
        position += 1
    return tuple(parts)


def parsed(pattern: str, params: tuple[str, ...]) -> tuple[tuple[bool, str], ...] | None:
    """`parse` with the escape character of a `like` call's parameters."""
    escape = params[0] if params else "\\"
    return parse(pattern, escape) if len(escape) == 1 else None


def matches(pattern: str, params: tuple[str, ...], text: str) -> bool | None:
    """Whether `text` is LIKE the pattern; None where Spark would raise."""
    parts = parsed(pattern, params)
    if parts is None:
        return None
    return _compiled(parts).fullmatch(text) is not None


@lru_cache(maxsize=1024)
def _compiled(parts: tuple[tuple[bool, str], ...]) -> re.Pattern[str]:
    spelled = {ANY_TEXT: ".*", ANY_CHAR: "."}
    return re.compile(
        "".join(spelled[text] if wild else re.escape(text) for wild, text in parts), re.DOTALL
    )


def split_prefix(pattern: str, params: tuple[str, ...]) -> tuple[str, str] | None:
    """The text that every match starts with, and what follows: `exact` for nothing, `any` for
    anything, `more` for a further pattern; None where Spark would raise."""
    parts = parsed(pattern, params)
    if parts is None:
        return None
    text = parts[0][1] if parts and not parts[0][0] else ""
    rest = parts[1:] if text else parts
    if not rest:
        return text, "exact"
    return text, "any" if rest == ((True, ANY_TEXT),) else "more"
