"""What a person gives a command besides options: statements from stdin, and consent."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from cachemgr.errors import ConfigurationError, ErrorCode

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def text_of(given: str) -> str:
    """The text itself, or what stands on stdin for `-`."""
    return sys.stdin.read() if given == "-" else given


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
