"""`cachemgr join`: the record-preserving joins."""

from __future__ import annotations

import sys
from typing import Annotated
from urllib.parse import quote

import typer

from cachemgr.cli.client import Client, Metastore, Server, Token
from cachemgr.cli.failure import handled
from cachemgr.cli.output import Format, Output, say, show, show_one

app = typer.Typer(help="Record-preserving joins.", no_args_is_help=True)


@app.command("list")
def list_joins(
    server: Server = None,
    token: Token = None,
    metastore: Metastore = None,
    output: Output = Format.TABLE,
) -> None:
    """List the joins."""
    with handled():
        found = Client(server, token, metastore).call("GET", "/joins")["joins"]
        show(found, ("name", "state", "validatedAt", "definition", "message"), output)


@app.command()
def create(
    ddl: Annotated[
        str, typer.Argument(help="CREATE RECORD PRESERVING JOIN …; - reads it from stdin.")
    ],
    server: Server = None,
    token: Token = None,
    metastore: Metastore = None,
    output: Output = Format.TABLE,
) -> None:
    """Declare a join; the data are checked."""
    with handled():
        text = sys.stdin.read() if ddl == "-" else ddl
        show_one(
            Client(server, token, metastore).call("POST", "/joins", json={"ddl": text}), output
        )


@app.command()
def validate(
    name: str,
    server: Server = None,
    token: Token = None,
    metastore: Metastore = None,
    output: Output = Format.TABLE,
) -> None:
    """Check a join against the data as they are now; exit code 1 if it does not hold."""
    with handled():
        path = f"/joins/{quote(name, safe='')}/validate"
        found = Client(server, token, metastore).call("POST", path)
        show_one(found, output)
    if found["state"] != "VALID":
        raise typer.Exit(1)


@app.command()
def drop(
    name: str,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    server: Server = None,
    token: Token = None,
    metastore: Metastore = None,
) -> None:
    """Forget a join: no rewrite relies on it any more."""
    with handled():
        path = f"/joins/{quote(name, safe='')}"
        client = Client(server, token, metastore)
        client.call("GET", path)
        if not yes:
            typer.confirm(f"drop the record-preserving join {name}?", abort=True, err=True)
        client.call("DELETE", path)
        say(f"{name} dropped")
