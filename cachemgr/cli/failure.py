"""One way to fail: one line on stderr and exit code 1, a bug included; the trace only with --debug,
and never a secret."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import typer
from typer.exceptions import TyperException

from cachemgr.errors import CacheManagerError
from cachemgr.printable import printable
from cachemgr.secrets import masked
from matcher.model.errors import MatcherError

_debug: ContextVar[bool] = ContextVar("debug", default=False)


def set_debug(wanted: bool) -> None:
    """Whether a failure shows its trace, for the command that runs now."""
    _debug.set(wanted)


@contextmanager
def handled() -> Iterator[None]:
    """Turn errors inside the block into a message and exit code 1."""
    try:
        yield
    except (typer.Exit, typer.Abort, TyperException):
        raise
    except BrokenPipeError:  # whoever read it has read enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(1) from None
    except Exception as error:
        if _debug.get():
            typer.echo(printable(masked(traceback.format_exc())), err=True)
        typer.echo(printable(masked(f"error: {_told(error)}")), err=True)
        raise typer.Exit(1) from error


def _told(error: Exception) -> str:
    match error:
        case CacheManagerError():
            return str(error)
        case MatcherError():
            return f"[{error.code}] {error}"
        case OSError():
            return f"{error.filename or 'reading or writing failed'}: {error.strerror or error}"
        case UnicodeDecodeError():
            return f"a file is not UTF-8 text ({error.reason}): save it as UTF-8"
        case UnicodeEncodeError(reason="surrogates not allowed"):
            return f"{error.object!r} is not UTF-8 text: give arguments and variables as UTF-8"
        case _:
            first = (str(error).strip() or "no message").splitlines()[0]
            return (
                f"[INTERNAL_ERROR] {type(error).__name__}: {first}; this is a bug: "
                "`cachemgr --debug …` shows where"
            )
