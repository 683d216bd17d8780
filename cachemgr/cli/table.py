"""`cachemgr table`: restricted base tables."""

from __future__ import annotations

import typer

from cachemgr.cli.client import Client
from cachemgr.cli.connected import connected
from cachemgr.cli.output import say, show, show_one
from cachemgr.errors import ErrorCode, NotFoundError

app = typer.Typer(help="Restricted base tables.", no_args_is_help=True)


@app.command("list")
@connected
def list_tables(client: Client) -> None:
    """List the restricted base tables."""
    found = client.call("GET", "/tables/restricted")["tables"]
    show(found, ("name", "location", "restrictedBy", "restrictedAt"), client.output)


@app.command()
@connected
def restrict(client: Client, table: str) -> None:
    """Answer for TABLE from no cache any more, but for those granted on it."""
    show_one(client.call("POST", "/tables/restricted", json={"table": table}), client.output)


@app.command()
@connected
def unrestrict(client: Client, table: str) -> None:
    """Take the mark of TABLE away: the id, name or place that `cachemgr table list` shows."""
    marks = client.call("GET", "/tables/restricted")["tables"]
    found = [m for m in marks if table in (m["id"], m["location"])]
    found = found or [m for m in marks if m["name"].lower() == table.lower()]
    if not found:
        raise NotFoundError(
            ErrorCode.TABLE_NOT_RESTRICTED,
            f"{table} is not restricted: `cachemgr table list` shows the tables that are",
        )
    for mark in found:
        client.call("DELETE", f"/tables/restricted/{mark['id']}")
        say(f"{mark['name']} is not restricted any more")
