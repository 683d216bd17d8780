"""Commands that work on a service by URL or on a metastore: their common options, in one place."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, Concatenate, ParamSpec, TypeVar, get_type_hints

import typer

from cachemgr.cli.client import Client
from cachemgr.cli.failure import handled
from cachemgr.cli.output import Format, Output

Server = Annotated[
    str | None,
    typer.Option("--server", envvar="CACHEMGR_SERVER", help="The service's URL."),
]
Token = Annotated[
    str | None, typer.Option("--token", envvar="CACHEMGR_TOKEN", help="A token of the service.")
]
Metastore = Annotated[
    str | None,
    typer.Option(
        "--metastore",
        envvar="CACHEMGR_METASTORE_URL",
        help="Without a service: the metastore to work on.",
    ),
]
_OPTIONS: dict[str, tuple[Any, Any]] = {
    "server": (Server, None),
    "token": (Token, None),
    "metastore": (Metastore, None),
    "output": (Output, Format.TABLE),
}
P = ParamSpec("P")
R = TypeVar("R")


def connected(command: Callable[Concatenate[Client, P], R]) -> Callable[..., R]:
    """Give a command `--server`, `--token`, `--metastore` and `-o`, as the `Client` that is its
    first argument; what goes wrong is told as `handled` does.

    Args:
        command: The command; its further parameters are its own options.

    Returns:
        The command for Typer, which reads its signature.
    """

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> R:
        with handled():
            return command(Client(*(kwargs.pop(name) for name in _OPTIONS)), *args, **kwargs)

    own = inspect.signature(command)
    hints = get_type_hints(command, include_extras=True)
    first, *rest = own.parameters.values()
    parameters = [
        p.replace(annotation=hints[p.name], kind=inspect.Parameter.KEYWORD_ONLY) for p in rest
    ]
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in _OPTIONS.items()
    ]
    run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    del hints[first.name]
    run.__annotations__ = hints | {name: kind for name, (kind, _) in _OPTIONS.items()}
    del run.__dict__["__wrapped__"]  # inspect would look through to the command itself
    return run
