"""`cachemgr join`: the record-preserving joins."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import typer

from cachemgr.cli.client import Client
from cachemgr.cli.connected import connected
from cachemgr.cli.input import Yes, confirm, statement_of
from cachemgr.cli.output import say, show, show_one

app = typer.Typer(help="Record-preserving joins.", no_args_is_help=True)


def _path(name: str, more: str = "") -> str:
    return f"/joins/{quote(name, safe='')}{more}"


@app.command("list")
@connected
def list_joins(client: Client) -> None:
    """List the joins."""
    found = client.call("GET", "/joins")["joins"]
    show(found, ("name", "kind", "state", "validatedAt", "definition", "message"), client.output)


@app.command()
@connected
def create(
    client: Client,
    ddl: Annotated[
        str, typer.Argument(help="CREATE RECORD PRESERVING JOIN …; - reads it from stdin.")
    ],
) -> None:
    """Declare a join; the data are checked."""
    with statement_of(ddl, "cachemgr join create") as text:
        made = client.call("POST", "/joins", json={"ddl": text})
    show_one(made, client.output)


@app.command()
@connected
def validate(client: Client, name: str) -> None:
    """Check a join against the data as they are now; exit code 1 if it does not hold."""
    found = client.call("POST", _path(name, "/validate"))
    show_one(found, client.output)
    if found["state"] != "VALID":
        why = f": {found['message']}" if found["message"] else ""
        say(f"error: {found['name']} does not hold now ({found['state']}){why}")
        raise typer.Exit(1)


@app.command()
@connected
def drop(client: Client, name: str, yes: Yes = False) -> None:
    """Forget a join: no rewrite relies on it any more."""
    client.call("GET", _path(name))
    confirm(f"Drop the record-preserving join {name}?", yes)
    client.call("DELETE", _path(name))
    say(f"{name} dropped")
