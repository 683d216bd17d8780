"""The parser's place in one statement, and its errors.

Every word that was tried at the current token and was not there is remembered, so that an error
lists all that would have been accepted, and the nearest of it is proposed.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from cachemgr.config.setting_values import MAX_DAYS
from cachemgr.ddl.statements import QualifiedName
from cachemgr.ddl.text import Kind, Lexed, Tok, line_col
from cachemgr.errors import StatementError

_UNITS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86400}
_UNIT_LABELS = ("SECONDS", "MINUTES", "HOURS", "DAYS")
# Where a name is missing, the next keyword must not be taken for it. Quoted, it is a name.
_NOT_A_NAME = frozenset(("AS", "FROM", "ON", "PRESERVES", "SELECT", "SET", "TO"))
_AFTER_A_NAME = frozenset(("(", ")", ",", ".", "=", "<", ">", "<=>", "!=", "<>", "<=", ">="))
_QUOTE = "ASCII letters, digits and _ (put one with other characters into `backticks`)"


class Cursor:
    """Reads one statement's tokens from left to right.

    Args:
        lexed: The statement.
    """

    def __init__(self, lexed: Lexed) -> None:
        self.lexed = lexed
        self._at = 0
        self._tried: list[str] = []

    def peek(self, ahead: int = 0) -> Tok:
        """Return a token without moving: the current one, or one further on."""
        return self.lexed.toks[min(self._at + ahead, len(self.lexed.toks) - 1)]

    def advance(self) -> Tok:
        """Return the current token and move past it."""
        tok = self.peek()
        self._at += 1
        self._tried.clear()
        return tok

    def sees(self, *words: str) -> bool:
        """Say whether these words or symbols come next."""
        return all(_is(self.peek(index), word) for index, word in enumerate(words))

    def accept(self, *words: str, label: str | None = None) -> Tok | None:
        """Move past these words if they come next, all of them.

        Args:
            words: Keywords in upper case, or symbols.
            label: How an error names them, if not by themselves; "" keeps them out of it.

        Returns:
            The first of their tokens, or None if they do not come next.
        """
        if not self.sees(*words):
            self.tried(" ".join(words) if label is None else label)
            return None
        first = self.peek()
        for _ in words:
            self.advance()
        return first

    def expect(self, *words: str) -> Tok:
        """Move past these words, one by one.

        Args:
            words: Keywords in upper case, or symbols.

        Returns:
            The first of their tokens.

        Raises:
            StatementError: One of them is missing; it points there.
        """
        first = self.peek()
        for word in words:
            if self.accept(word) is None:
                raise self.fail()
        return first

    def tried(self, label: str) -> None:
        """Remember something that would have been accepted here."""
        if label and label not in self._tried:
            self._tried.append(label)

    def fail(
        self,
        message: str | None = None,
        expected: Sequence[str] | None = None,
        tok: Tok | None = None,
    ) -> StatementError:
        """Make the error for a token, the current one if none is given.

        Args:
            message: What is wrong; by default that the token is not expected.
            expected: What would be accepted; by default all that was tried here.
            tok: The token to point at.

        Returns:
            The error, for the caller to raise.
        """
        tok = tok or self.peek()
        expected = tuple(self._tried if expected is None else expected)
        raw = self.lexed.text[tok.start : tok.end]
        shown = raw if len(raw) <= 40 else raw[:37] + "…"
        if message is None:
            message = f"'{shown}' is not expected here" if raw else "the statement ends too early"
            if tok.kind is Kind.WORD and (near := _nearest(raw, expected)):
                message += f", did you mean {near}?"
        line, col = line_col(self.lexed.text, tok.start)
        return StatementError(message, line, col, shown, expected)

    def place(self, tok: Tok) -> str:
        """Name a token's place, for an error that speaks of two."""
        line, col = line_col(self.lexed.text, tok.start)
        return f"line {line}, column {col}"

    def finish(self) -> None:
        """Check that nothing is left.

        Raises:
            StatementError: Something follows the statement.
        """
        if self.peek().kind is not Kind.END:
            self.tried("the end of the statement")
            raise self.fail()

    def identifier(self, what: str = "name") -> str:
        """Read one name part.

        Args:
            what: What an error calls it.

        Returns:
            The name, unquoted.

        Raises:
            StatementError: Something else stands here.
        """
        tok = self.peek()
        if tok.kind is Kind.QUOTED and tok.text:
            return self.advance().text
        reserved = tok.text.upper() in _NOT_A_NAME
        if tok.kind is Kind.WORD and tok.text.isascii() and not reserved:
            return self.advance().text
        self.tried(f"a {what}")
        if tok.kind is Kind.WORD and not reserved:
            # As in Spark: letters beyond ASCII need quotes.
            raise self.fail(f"an unquoted {what} holds another character", (_QUOTE,))
        if tok.kind is Kind.WORD:
            message = f"the {what} is missing before {tok.text.upper()}"
        elif tok.kind is Kind.QUOTED:
            message = f"a {what} cannot be empty"
        elif tok.kind is Kind.END:
            message = f"the {what} is missing"
        else:
            message = f"this is not a {what}"
        raise self.fail(message)

    def dotted(self, most: int, what: str = "name") -> tuple[str, ...]:
        """Read a name of several parts.

        Args:
            most: How many parts it may have.
            what: What an error calls it.

        Returns:
            The parts, unquoted.

        Raises:
            StatementError: A part is missing, or there are too many.
        """
        parts = [self.identifier(what)]
        while self.accept(".", label=""):
            if len(parts) == most:
                raise self.fail(
                    f"a {what} has at most {most} parts", ("`backticks` around a dot in a part",)
                )
            parts.append(self.identifier(what))
        self.whole(what)
        return tuple(parts)

    def whole(self, what: str) -> None:
        """Refuse a name that goes on with a character no unquoted name holds, as in `a-b`.

        Args:
            what: What an error calls the name just read.

        Raises:
            StatementError: Such a character touches it.
        """
        tok = self.peek()
        touches = self._at > 0 and self.lexed.toks[self._at - 1].end == tok.start
        if touches and tok.kind is Kind.SYMBOL and tok.text not in _AFTER_A_NAME:
            raise self.fail(f"an unquoted {what} holds another character", (_QUOTE,))

    def name(self, what: str = "name") -> QualifiedName:
        """Read an object's name of one to three parts.

        Args:
            what: What an error calls it.

        Returns:
            The name.

        Raises:
            StatementError: There is none, or it has too many parts.
        """
        return QualifiedName(self.dotted(3, what))

    def string(self, example: str) -> str:
        """Read a string literal; `'it''s'` is one, and literals side by side are joined.

        Args:
            example: What an error proposes.

        Returns:
            The string.

        Raises:
            StatementError: No string stands here.
        """
        if self.peek().kind is not Kind.STRING:
            self.tried(example)
            raise self.fail()
        last = self.advance()
        parts = [last.text]
        while self.peek().kind is Kind.STRING:
            tok = self.advance()
            quote = self.lexed.text[last.end - 1]
            if tok.start == last.end and self.lexed.text[tok.start] == quote:
                parts.append(quote)  # a doubled quote stands for one
            parts.append(tok.text)
            last = tok
        return "".join(parts)

    def duration(self, example: str) -> int:
        """Read `n unit`.

        Args:
            example: What an error proposes.

        Returns:
            Seconds.

        Raises:
            StatementError: The number or the unit is missing or out of range.
        """
        tok = self.peek()
        return self.seconds(self.whole_number(tok.text, example), tok)

    def whole_number(self, text: str, example: str) -> int:
        """Read the current token, whose text is given, as a positive whole number.

        Args:
            text: The digits.
            example: What an error proposes.

        Returns:
            The number.

        Raises:
            StatementError: It is no positive whole number.
        """
        tok = self.peek()
        if tok.kind is Kind.END or (tok.kind is Kind.WORD and not tok.text[0].isdigit()):
            raise self.fail("a number is missing here", (example,))
        if not (text.isascii() and text.isdigit() and int(text[:20]) > 0):
            raise self.fail("a duration is a positive whole number and a unit", (example,))
        self.advance()
        return int(text[:20])

    def seconds(self, number: int, tok: Tok) -> int:
        """Read the unit of a number.

        Args:
            number: How many.
            tok: The number's token.

        Returns:
            Seconds.

        Raises:
            StatementError: The unit is unknown, or the duration too long.
        """
        unit = self.peek().text.upper() if self.peek().kind is Kind.WORD else ""
        factor = _UNITS.get(unit.removesuffix("S"))
        if factor is None:
            raise self.fail(None, _UNIT_LABELS)
        self.advance()
        return self.bounded(number * factor, tok)

    def bounded(self, seconds: int, tok: Tok) -> int:
        """Refuse a duration that no clock can count.

        Args:
            seconds: The duration.
            tok: Where it stands.

        Returns:
            The duration.

        Raises:
            StatementError: It is too long.
        """
        if seconds > MAX_DAYS * _UNITS["DAY"]:
            raise self.fail("the duration is too long", (f"at most {MAX_DAYS} DAYS",), tok)
        return seconds


def unit_seconds(unit: str) -> int | None:
    """Return a unit's seconds, None if there is no such unit.

    >>> unit_seconds("minutes"), unit_seconds("weeks")
    (60, None)
    """
    return _UNITS.get(unit.upper().removesuffix("S"))


def _is(tok: Tok, word: str) -> bool:
    if tok.kind is Kind.WORD:
        return tok.text.upper() == word
    return tok.kind is Kind.SYMBOL and tok.text == word


def _nearest(raw: str, expected: Sequence[str]) -> str | None:
    labels = {label.split(" ")[0]: label for label in reversed(expected) if label.isupper()}
    near = difflib.get_close_matches(raw.upper(), labels, n=1, cutoff=0.6)
    return near[0] if near else None
