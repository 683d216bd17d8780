"""The statements that somebody types at a terminal, with editing, history and help."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cachemgr.cli.output import say

_HISTORY: Final = Path("~/.cachemgr_history")
_PROMPT, _MORE = "cachemgr> ", "     ...> "
_HELP: Final = r"""Type a statement, Spark's or ours, on as many lines as it takes, to its `;`.
  SHOW RELATIONAL CACHES;          what there is
  EXPLAIN REWRITE SELECT …;        which cache would answer a query, or why none
  help or \?                       this
  exit or \q                       leaves
  Ctrl-C                           cancels what runs, or forgets what was typed of a statement
The backslash commands work on any line; docs/ddl.md has all statements."""
_HINTS: Final = {"help": r"\? shows help", "exit": r"\q leaves", "quit": r"\q leaves"}


def statements(text: str) -> list[str]:
    """The statements of a text that `;` separates, those that are empty left out.

    Raises:
        StatementError: A quote or a comment is left open.
    """
    from cachemgr.ddl.text import split_statements

    pieces = [text[begin:end].strip() for begin, end in split_statements(text)]
    return [piece for piece in pieces if piece]


def typed() -> Iterator[str]:
    """Statements as they are typed, each up to its `;`; ends when the person leaves."""
    import readline

    try:
        readline.read_history_file(_HISTORY.expanduser())
    except (OSError, RuntimeError):
        pass  # the first time there is none, and a user without a home has no place for it
    try:
        yield from _typed()
    finally:
        try:
            readline.write_history_file(_HISTORY.expanduser())
        except (OSError, RuntimeError) as error:
            say(f"the history is not kept: {error}")


def _typed() -> Iterator[str]:
    from cachemgr.errors import StatementError

    text = ""
    while True:
        try:
            line = input(_MORE if text.strip() else _PROMPT)
        except KeyboardInterrupt:
            text = ""
            say("")
            continue
        except EOFError:
            return
        word = line.strip().rstrip(";").strip().lower()
        first = not text.strip()
        if word == "\\q" or (first and word in ("exit", "quit")):
            return
        if word in ("\\?", "\\h") or (first and word == "help"):
            say(_HELP)
            continue
        if word == line.strip().lower() and word in _HINTS:
            say(_HINTS[word])  # which may be a part of the statement: it stays
        text += line + "\n"
        if not line.strip().endswith(";"):
            continue
        try:
            found = statements(text)
        except StatementError:  # a quote that is open still: its other end may follow
            continue
        text = ""
        yield from found
