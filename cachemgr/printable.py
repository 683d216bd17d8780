"""Texts for people: nouns with their numbers, and what a terminal may be given. Whoever names a
cache, sends a decision or writes a row chooses its characters; ESC and its like would move the
cursor, hide lines or retitle the window of an operator, and marks of writing direction would turn
what he reads around."""

from __future__ import annotations

import unicodedata
from typing import Any, Final

# control and format characters, halves of pairs, line and paragraph separators
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_KEPT: Final = frozenset("\n\t")


def printable(text: str, *, one_line: bool = False) -> str:
    r"""The text with what would not be seen as it is written out.

    Args:
        text: Anything.
        one_line: Also write line feeds and tabs out.

    >>> printable("a\x1b[2J\u202eb")
    'a\\x1b[2J\\u202eb'
    """
    if text.isascii() and text.isprintable():
        return text
    kept = frozenset() if one_line else _KEPT
    return "".join(
        c.encode("unicode_escape").decode()
        if c not in kept and unicodedata.category(c) in _HIDDEN
        else c
        for c in text
    )


def printable_data(data: Any) -> Any:
    """The same of every text inside JSON data, keys included."""
    match data:
        case str():
            return printable(data)
        case dict():
            return {printable_data(k): printable_data(v) for k, v in data.items()}
        case list() | tuple():
            return [printable_data(v) for v in data]
        case _:
            return data


def plural(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun.

    Args:
        number: How many.
        one: The noun for one.
        many: For any other number; with an s if left out.

    >>> plural(1, "miss", "misses"), plural(2, "miss", "misses"), plural(0, "row")
    ('1 miss', '2 misses', '0 rows')
    """
    return f"{number} {one if number == 1 else many or one + 's'}"
