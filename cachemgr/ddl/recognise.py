"""Whether a text given to `spark.sql` is ours: one regular expression, microseconds.

Runs on every statement of a session, so it reads no further than the first few words. It refuses
whatever Spark itself could have accepted: `REFRESH relational` refreshes a path, `DESCRIBE
relational cache` describes a column of a table, `EXPLAIN REFRESH TABLE t` is Spark's.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import Final

from cachemgr.ddl.render import STATEMENTS


def _comment(depth: int) -> str:
    # Spark's bracketed comments nest and a regular expression does not: four levels are enough,
    # a text with more is simply left to Spark.
    inner = f"{_comment(depth - 1)}|" if depth else ""
    return rf"/\*(?>{inner}[^*/]++|\*(?!/)|/(?!\*))*+\*/"


# A line comment that ends in a backslash goes on in the next line, as in Spark's lexer.
_GAP = rf"(?>\s|--(?>[^\\\r\n]++|\\\n?)*+|{_comment(3)})"


def _words(text: str) -> str:
    return rf"{_GAP}++".join(text.split(" "))


_NAME_FOLLOWS = rf"{_GAP}*+(?=[\w`])"
_OURS = "|".join(
    (
        rf"CREATE{_GAP}++(?:{_words('OR REPLACE')}{_GAP}++)?+(?:RELATIONAL|RECORD)\b",
        _words("ALTER RELATIONAL") + r"\b",
        _words("REFRESH RELATIONAL CACHE") + r"\b",
        rf"DROP{_GAP}++(?:RELATIONAL|RECORD)\b",
        rf"SHOW{_GAP}++(?:{_words('RELATIONAL')}{_GAP}++CACHES?\b|{_words('RECORD PRESERVING')}\b"
        rf"|{_words('CREATE RELATIONAL')}\b|{_words('RESTRICTED BASE')}\b"
        rf"|{_words('SELECT GRANTS')}\b)",
        rf"DESC(?:RIBE)?{_GAP}++{_words('RELATIONAL CACHE')}\b{_NAME_FOLLOWS}"
        rf"(?!{_words('AS JSON')}\b)",
        rf"EXPLAIN{_GAP}++REWRITE\b",
        rf"EXPLAIN{_GAP}++REFRESH\b{_NAME_FOLLOWS}(?!(?:TABLE|FUNCTION)\b|\w++(?::|/(?!\*)))",
        rf"EXPLAIN{_GAP}++CREATE{_GAP}++(?:{_words('OR REPLACE')}{_GAP}++)?+RELATIONAL\b",
        _words("VALIDATE RECORD") + r"\b",
        rf"(?:GRANT|REVOKE){_GAP}++(?:{_words('USE ON RELATIONAL')}"
        rf"|{_words('SELECT ON BASE TABLE')})\b",
        rf"(?:UN)?RESTRICT{_GAP}++BASE\b",
    )
)
# Java reads it as well (jvm/java/sidecar/Recognise.java): nothing that means something else there
EXPRESSION: Final = rf"(?>{_GAP}|;)*+(?:{_OURS})"
_RECOGNISE = re.compile(EXPRESSION, re.IGNORECASE).match


def looks_like_ours(text: str) -> bool:
    """Say whether a statement is one of ours, to be parsed here and not by Spark.

    Args:
        text: The text given to `spark.sql`, of any length.

    Returns:
        True if its first words are those of our statements, right or wrong from there on.

    >>> looks_like_ours("/* daily */ refresh relational cache c"), looks_like_ours("SHOW TABLES")
    (True, False)
    """
    return _RECOGNISE(text) is not None


_WORD: Final = re.compile(r"\w+")
_ALIKE: Final = 0.7


def nearly_ours(text: str) -> str | None:
    """The statement of ours that a text most likely means, which Spark could not parse.

    Args:
        text: The text given to `spark.sql`.

    Returns:
        Its first words; None if each of them is not at least nearly there.

    >>> nearly_ours("refersh relational cashe c"), nearly_ours("SHOW CACHES")
    ('REFRESH RELATIONAL CACHE', 'SHOW RELATIONAL CACHES')
    >>> nearly_ours("REFRESH TABLE t")
    """
    words = [word.upper() for word in _WORD.findall(text[:200])]
    found: dict[str, float] = {}
    for name in STATEMENTS.values():
        for meant in (name, name.replace("RELATIONAL ", "").replace("RECORD PRESERVING ", "")):
            ratios = [_likeness(*pair) for pair in zip(words, meant.split(), strict=False)]
            if len(ratios) == len(meant.split()) and min(ratios) >= _ALIKE:
                found[name] = max(found.get(name, 0), sum(ratios))
    meant = max(found, key=lambda name: found[name]) if found else ""
    is_written = words[: len(meant.split())] == meant.split()  # and goes on in a wrong way
    return None if is_written else meant


def _likeness(written: str, meant: str) -> float:
    return SequenceMatcher(None, written, meant).ratio()
