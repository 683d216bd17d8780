"""One way to fail: an expected error is one line on stderr and exit code 1; a bug says that it is
one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from cachemgr.errors import CacheManagerError
from matcher.errors import MatcherError


@contextmanager
def handled() -> Iterator[None]:
    """Turn expected errors inside the block into a message and exit code 1."""
    try:
        yield
    except (CacheManagerError, MatcherError) as error:
        text = str(error) if isinstance(error, CacheManagerError) else f"[{error.code}] {error}"
        typer.echo(f"error: {text}", err=True)
        raise typer.Exit(1) from error
    except OSError as error:
        typer.echo(f"error: {error.filename or ''}: {error.strerror or error}", err=True)
        raise typer.Exit(1) from error
    except UnicodeDecodeError as error:
        typer.echo(f"error: a file is not UTF-8 text ({error.reason}): save it as UTF-8", err=True)
        raise typer.Exit(1) from error
