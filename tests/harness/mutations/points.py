"""Small changes of the program, each of which some test ought to notice.

In Python: another comparison, `and` for `or`, a condition the other way round, another number or
truth value, a result that is not returned, a call that is left out. In Java: operators and truth
values alone, by their text. Only functions of more than five lines have any.
"""

from __future__ import annotations

import ast
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

from tests.gate.functions import functions

MIN_LINES: Final = 6
JAVA: Final = "cachemgr/jvm/java/"
_OTHER: Final[dict[type[ast.cmpop], str]] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
_JAVA_METHOD = re.compile(r"^ {4,8}\w[\w<>\[\], .?]*\b(\w+)\([^;]*\)[^;]*\{$")
_JAVA_OPERATORS: Final = {
    " == ": " != ",
    " != ": " == ",
    " && ": " || ",
    " || ": " && ",
    " < ": " <= ",
    " > ": " >= ",
    "return true;": "return false;",
    "return false;": "return true;",
    "if (!": "if (",
}


@dataclass(frozen=True)
class Mutation:
    """One change of one place.

    Attributes:
        path: The file, from the root of the repository.
        function: As the gate names it; of Java the method's name.
        line: Where it is, from 1.
        start: The first character that it replaces, in the file.
        end: The one after the last.
        text: What stands there then.
    """

    path: str
    function: str
    line: int
    start: int
    end: int
    text: str

    @property
    def name(self) -> str:
        """The function as the record of what tests cover has it."""
        return f"{self.path}:{self.function}"

    def applied(self, source: str) -> str:
        """The file with the change."""
        return source[: self.start] + self.text + source[self.end :]

    def told(self, source: str) -> str:
        """The change as a person reads it, in one line."""
        before = " ".join(source[self.start : self.end].split())
        after = " ".join(self.text.split())
        return f"{before[:60]} -> {after[:60]}"


def python_mutations(path: str, source: str) -> Iterator[Mutation]:
    """Those of a Python module."""
    spans = [f for f in functions(source) if f.first and f.last - f.first + 1 >= MIN_LINES]
    starts = _line_starts(source)
    for node in ast.walk(ast.parse(source)):
        line = getattr(node, "lineno", 0)
        within = [f.name for f in spans if f.first <= line <= f.last]
        if not within:
            continue
        for changed, text in _changes(node, source):
            yield Mutation(
                path,
                within[-1],
                line,
                _offset(source, starts, changed.lineno, changed.col_offset),
                _offset(source, starts, changed.end_lineno or 0, changed.end_col_offset or 0),
                text,
            )


_Spanned = ast.expr | ast.stmt


def _changes(node: ast.AST, source: str) -> Iterator[tuple[_Spanned, str]]:
    def text(of: ast.expr) -> str:
        return f"({ast.get_source_segment(source, of)})"

    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _OTHER:
            yield node, f"({text(left)} {_OTHER[type(op)]} {text(right)})"
        case ast.BoolOp(op=op, values=values):
            word = " or " if isinstance(op, ast.And) else " and "
            yield node, f"({word.join(map(text, values))})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, text(operand)
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            yield test, f"(not {text(test)})"
        case ast.Constant(value=bool() as value):
            yield node, str(not value)
        case ast.Constant(value=int() as value):
            yield node, str(value + 1)
        case ast.Return(value=ast.expr() as value) if not _is_none(value):
            yield node, "return None"
        case ast.Expr(value=ast.Call()):
            yield node, "pass"
        case ast.BinOp(op=ast.Add() | ast.Sub() as op, left=left, right=right):
            yield node, f"({text(left)} {'-' if isinstance(op, ast.Add) else '+'} {text(right)})"


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _line_starts(source: str) -> list[int]:
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def _offset(source: str, starts: Sequence[int], line: int, column: int) -> int:
    """Python counts a line's columns in bytes."""
    text = source[starts[line - 1] : starts[line]]
    return starts[line - 1] + len(text.encode()[:column].decode())


def java_mutations(path: str, source: str) -> Iterator[Mutation]:
    """Those of a Java class, in the lines of methods that are long enough."""
    starts = _line_starts(source)
    lines = source.splitlines()
    for first, last, method in _methods(lines):
        for number in range(first, last):
            text = lines[number]
            if text.lstrip().startswith(("*", "/*", "//")):
                continue
            for old, new in _JAVA_OPERATORS.items():
                at = text.find(old)
                if at >= 0:
                    begin = starts[number] + at
                    yield Mutation(path, method, number + 1, begin, begin + len(old), new)


def _methods(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """The first line of each method's body, the line of its closing brace, and its name."""
    for number, line in enumerate(lines):
        found = _JAVA_METHOD.match(line)
        if found is None or found[1] in ("if", "for", "while", "switch", "catch", "synchronized"):
            continue
        closing = " " * (len(line) - len(line.lstrip())) + "}"
        end = next((n for n in range(number + 1, len(lines)) if lines[n] == closing), number)
        if end - number > MIN_LINES:
            yield number + 1, end, found[1]


def drawn(
    found: Mapping[str, Sequence[Mutation]], seed: int, shares: Sequence[tuple[frozenset[str], int]]
) -> list[Mutation]:
    """Mutations drawn by a seed: first the function, then one of its places. The first few of them
    are of every share, as all are.

    Args:
        found: The mutations by file.
        seed: The same one draws the same of the same program.
        shares: Sets of files, and how many to draw of each.
    """
    dice = random.Random(seed)
    placed: list[tuple[float, Mutation]] = []
    for files, count in shares:
        of = defaultdict(list)
        for path in sorted(files):
            for mutation in found.get(path, ()):
                of[mutation.name].append(mutation)
        names = dice.sample(sorted(of), min(count, len(of)))
        of_share = [dice.choice(of[name]) for name in names]
        placed += [((place + 0.5) / len(of_share), each) for place, each in enumerate(of_share)]
    return [each for _, each in sorted(placed, key=itemgetter(0))]
