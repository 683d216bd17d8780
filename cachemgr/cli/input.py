"""What a person gives a command besides options: statements from stdin, and consent."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final

import typer

from cachemgr.errors import CacheManagerError, ConfigurationError, ErrorCode

_CREATE: Final = re.compile(r"\bcreate\s", re.IGNORECASE)
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def text_of(given: str) -> str:
    """The text itself, or what stands on stdin for `-`."""
    return sys.stdin.read() if given == "-" else given


@contextmanager
def statement_of(given: str, command: str) -> Iterator[str]:
    """The text of a CREATE. Where it is refused and cannot be one, as the name of a file, it is
    said how a file is given.

    Args:
        given: The argument: the text, or `-`.
        command: Whose argument it is.
    """
    try:
        yield text_of(given)
    except CacheManagerError as error:
        told = error.code not in (ErrorCode.SYNTAX_ERROR, ErrorCode.NOT_A_CREATE)
        if told or given == "-" or _CREATE.search(given):
            raise
        raise CacheManagerError(
            error.code, f"{error.message}; a file goes in by `{command} - < file`"
        ) from error


def confirm(question: str, yes: bool, option: str = "--yes") -> None:
    """Go on with what destroys only with consent.

    Args:
        question: What is about to be done.
        yes: Consent was given on the command line.
        option: How it is given there.

    Raises:
        ConfigurationError: Nobody can be asked.
        typer.Abort: The answer was no.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigurationError(
            ErrorCode.NOT_CONFIRMED, f"{question} Nobody can be asked here: give {option}"
        )
    typer.confirm(question, abort=True, err=True)
