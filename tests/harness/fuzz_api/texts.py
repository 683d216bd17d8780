# ruff: noqa: E501 (tables of odd values)
"""Texts that no grammar expects, made from those that it does: statements and queries with parts
taken out, doubled, swapped and cut off, nested far too deeply, a megabyte long, and full of what
is hardly a character."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from cachemgr.demo.ssb_queries import QUERIES
from tests.harness.load.traffic import Traffic

_TESTS: Final = Path(__file__).parents[2]
_WORD: Final = re.compile(r"\w+|\s+|[^\w\s]")
_ODD: Final = (
    "\0", "\ud800", "\udfff\ud800", "\ufeff", "\u202e", "\u00a0", "\u2028", "\x85", "\x0b", "\x1a",
    "\u0130", "\u00df", "\u00b2", "\u0661", "\U0010ffff", "\U0001f600", "e\u0301", "\uff33", "\x7f",
    "'", '"', "`", "\\", ";", "--", "/*", "*/", "/*+", "$", "${x}", "{{", "?", ":n", "@", "#", "!",
    "\\u0000", "\\ud800", "\\U00110000", "r'", "R\"", "X'", "b'", "1e999", "1E+", "0x", "9" * 400,
    "${env:PATH}", "${system:user.home}", "${spark.app.id}", "\x1b[2J", "\x1b]0;x\x07", "\x9b31m",
    " LOCATION 'file:///x'", " LOCATION '../x'", " LOCATION 'http://127.0.0.1:9/x'", " LOCATION 'x' ",
    "reflect('java.lang.System', 'getenv', 'PATH')", "text.`/etc/passwd`", "delta.`http://127.0.0.1:9/x`",
    "-", ".", "..", "..5", "5.", "1L", "1BD", "<=>", "=>", "->", "||", "::", "[", "]", "(", ")",
)  # fmt: skip
# what is put before, what in the middle, what after; n times each but for the middle
_DEEP: Final = (
    ("(", "1", ")"), ("(SELECT ", "1", ")"), ("SELECT * FROM (", "SELECT 1", ")"), ("NOT ", "a", ""),
    ("- ", "1", ""), ("~", "1", ""), ("CAST(", "1", " AS INT)"), ("f(", "1", ")"), ("a.", "b", ""),
    ("CASE WHEN a THEN ", "1", " END"), ("", "a", "[0]"), ("", "a", " + 1"), ("", "a", " AND a"),
    ("", "a", " OR NOT a"), ("", "SELECT 1", " UNION ALL SELECT 1"), ("", "SELECT 1 FROM a", ", a"),
    ("", "SELECT 1 FROM a", " JOIN a ON TRUE"), ("", "SELECT 1 FROM a", " CROSS JOIN a"),
    ("", "SELECT 1 FROM a", " JOIN a"), ("x -> ", "1", ""), ("ARRAY<", "INT", ">"), ("/*", "", "*/"),
    ("/*", "x", ""), ("--", "x", "\n"), ("WITH a AS (", "SELECT 1", ") SELECT 1"), ("'", "", "'"),
    ("EXISTS (SELECT 1 WHERE ", "TRUE", ")"), ("IF(a, ", "1", ", 2)"), ("`", "a", "`"), ("", "1", ","),
    ("a IN (", "1", ")"), ("EXPLAIN ", "SELECT 1", ""), ("", "SELECT 1", ";"), ("", "INTERVAL", " 1 DAY"),
    ("", "GROUP BY GROUPING SETS (", "(a),"), ("", "GROUP BY CUBE (a", ", b"), ("", "DATE", " '"),
    ("", "1", "||1"), ("", "a", "::INT"), ("", "a", " BETWEEN 1 AND a"), ("", "SELECT 1", " LIMIT 1"),
)  # fmt: skip
_BEGINNINGS: Final = ("", "SELECT ", "CREATE RELATIONAL CACHE c AS SELECT ", "EXPLAIN REWRITE SELECT ",
    "CREATE RELATIONAL CACHE c ", "SHOW RELATIONAL CACHES LIKE ", "REFRESH RELATIONAL CACHE ",
    "SELECT 1 FROM lineorder WHERE ", "CREATE RELATIONAL CACHE c REFRESH CRON '")  # fmt: skip


def statements() -> list[str]:
    """Texts of our DDL, right and wrong ones: those of its tests."""
    found = []
    for path in sorted((_TESTS / "ddl" / "fixtures").glob("*.sql")):
        for block in re.split(r"^# title:.*\n", path.read_text(), flags=re.MULTILINE)[1:]:
            found.append(block.partition("\n=>\n")[0].strip())
    return found


def queries() -> list[str]:
    """Queries over the tables of the Star Schema Benchmark, and some over other ones."""
    found = [q.sql() for q in QUERIES]
    found += [asked.sql for asked in Traffic(1).warm_up()]
    paths = sorted((_TESTS / "harness" / "tpc" / "queries").glob("ds*.sql"))
    return [*found, *(path.read_text() for path in paths)]


def mutated(choose: random.Random, seeds: Sequence[str], *, most: int = 1_000_000) -> str:
    """A text near one of some.

    Args:
        choose: All choices come from it.
        seeds: Texts to begin with.
        most: Characters at most.
    """
    text = choose.choice(seeds)
    if choose.random() < 0.1:
        return deep(choose, text)[:most]
    for _ in range(choose.choice((1, 1, 1, 2, 3, 8, 30))):
        text = choose.choice(_CHANGES)(choose, text, seeds)[:most]
    if choose.random() < 0.004:
        text = (text or "x") * (most // max(1, len(text)) + 1)
    return text[:most]


def deep(choose: random.Random, around: str = "") -> str:
    """A text that repeats or nests one thing far too often."""
    before, middle, after = choose.choice(_DEEP)
    times = choose.choice((3, 20, 99, 101, 300, 1500, 6000, 40_000))
    if choose.random() < 0.3:
        middle = around
    if choose.random() < 0.1:
        after = ""  # never closed
    return choose.choice(_BEGINNINGS) + before * times + middle + after * times


def _cut(choose: random.Random, text: str, seeds: Sequence[str]) -> str:
    return text[: choose.randrange(len(text) + 1)]


def _without(choose: random.Random, text: str, seeds: Sequence[str]) -> str:
    words = _WORD.findall(text)
    begin = choose.randrange(len(words) + 1)
    del words[begin : begin + choose.randrange(1, 4)]
    return "".join(words)


def _doubled(choose: random.Random, text: str, seeds: Sequence[str]) -> str:
    words = _WORD.findall(text)
    begin = choose.randrange(len(words) + 1)
    part = words[begin : begin + choose.randrange(1, 12)]
    return "".join([*words[:begin], *part * choose.choice((1, 1, 2, 50)), *words[begin:]])


def _swapped(choose: random.Random, text: str, seeds: Sequence[str]) -> str:
    words = _WORD.findall(text)
    if words:
        one, other = choose.randrange(len(words)), choose.randrange(len(words))
        words[one], words[other] = words[other], words[one]
    return "".join(words)


def _strange(choose: random.Random, text: str, seeds: Sequence[str]) -> str:
    at = choose.randrange(len(text) + 1)
    return text[:at] + choose.choice(_ODD) + text[at + choose.choice((0, 0, 1)) :]


def _foreign(choose: random.Random, text: str, seeds: Sequence[str]) -> str:
    words, others = _WORD.findall(text), _WORD.findall(choose.choice(seeds))
    at, begin = choose.randrange(len(words) + 1), choose.randrange(len(others) + 1)
    taken = choose.choice((1, 1, 2, 6, 40))
    return "".join([*words[:at], *others[begin : begin + taken], *words[at + taken // 2 :]])


def _bytes(choose: random.Random, text: str, seeds: Sequence[str]) -> str:
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    for _ in range(choose.randrange(1, 5)):
        if data:
            data[choose.randrange(len(data))] = choose.randrange(256)
    return data.decode("utf-8", "surrogateescape")


def _case(choose: random.Random, text: str, seeds: Sequence[str]) -> str:
    return text.swapcase() if choose.random() < 0.5 else text.title()


Change = Callable[[random.Random, str, Sequence[str]], str]
_CHANGES: Final[tuple[Change, ...]] = (
    _cut, _without, _without, _doubled, _swapped, _strange, _strange, _foreign, _foreign, _bytes, _case
)  # fmt: skip
