"""`cachemgr cache`: list, make, refresh, switch and drop caches."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.console import Console

from cachemgr.cli.client import Client, Metastore, Server, Token
from cachemgr.cli.failure import handled
from cachemgr.cli.output import Format, Output, say, show, show_one

app = typer.Typer(help="Relational caches.", no_args_is_help=True)
_OVER = ("PUBLISHED", "UNCHANGED")
_COLUMNS = ("namespace", "name", "status.combined", "trigger.kind", "freshness", "published.rows",
            "published.finishedAt", "nextDueAt")  # fmt: skip
_RUNS = ("id", "state", "mode", "origin", "startedAt", "finishedAt", "rows", "error")


def _path(name: str, more: str = "") -> str:
    return f"/caches/{quote(name, safe='')}{more}"


@app.command("list")
def list_caches(
    like: Annotated[str | None, typer.Option(help="As in SHOW … LIKE.")] = None,
    server: Server = None,
    token: Token = None,
    metastore: Metastore = None,
    output: Output = Format.TABLE,
) -> None:
    """List the caches."""
    with handled():
        client = Client(server, token, metastore)
        found: list[dict[str, Any]] = []
        params: dict[str, Any] = {"pageSize": 1000} | ({} if like is None else {"like": like})
        while True:
            answer = client.call("GET", "/caches", params=params)
            found += answer["caches"]
            if answer["nextPageToken"] is None:
                break
            params["pageToken"] = answer["nextPageToken"]
        show(found, _COLUMNS, output)


@app.command("show")
def show_cache(
    name: str,
    server: Server = None,
    token: Token = None,
    metastore: Metastore = None,
    output: Output = Format.TABLE,
) -> None:
    """Show all of one cache."""
    with handled():
        show_one(Client(server, token, metastore).call("GET", _path(name)), output)


@app.command()
def create(
    ddl: Annotated[str, typer.Argument(help="CREATE RELATIONAL CACHE …; - reads it from stdin.")],
    server: Server = None,
    token: Token = None,
    metastore: Metastore = None,
    output: Output = Format.TABLE,
) -> None:
    """Create a cache by its statement."""
    with handled():
        text = sys.stdin.read() if ddl == "-" else ddl
        show_one(
            Client(server, token, metastore).call("POST", "/caches", json={"ddl": text}), output
        )


@app.command()
def refresh(
    name: str,
    mode: Annotated[str | None, typer.Option(help="AUTO, FULL, INCREMENTAL.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it is over.")] = False,
    server: Server = None,
    token: Token = None,
    metastore: Metastore = None,
    output: Output = Format.TABLE,
) -> None:
    """Ask for a refresh; a service or worker carries it out, or with --wait and no --server this
    process. With --wait exit code 1 if it fails."""
    with handled():
        client = Client(server, token, metastore)
        body = None if mode is None else {"mode": mode.upper()}
        asked = client.call("POST", _path(name, "/refreshes"), json=body)
        done = _over(client, asked) if wait else asked
        show_one(done, output)
    if wait and done["state"] not in _OVER:
        raise typer.Exit(1)


def _over(client: Client, asked: dict[str, Any]) -> dict[str, Any]:
    console = Console(stderr=True)
    status = console.status(f"refresh {asked['id']}") if console.is_terminal else nullcontext()
    with status:
        client.carry_out()
        found = asked
        while found["state"] in ("PENDING", "RUNNING"):
            found = client.call("GET", f"/refreshes/{asked['id']}", params={"waitSeconds": 10})
    return found


@app.command()
def history(
    name: str,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 20,
    server: Server = None,
    token: Token = None,
    metastore: Metastore = None,
    output: Output = Format.TABLE,
) -> None:
    """List a cache's refreshes, newest first."""
    with handled():
        client = Client(server, token, metastore)
        answer = client.call("GET", _path(name, "/refreshes"), params={"pageSize": limit})
        show(answer["refreshes"], _RUNS, output)


@app.command()
def why(
    name: str,
    sql: str,
    server: Server = None,
    token: Token = None,
    metastore: Metastore = None,
    output: Output = Format.TABLE,
) -> None:
    """Say why this cache would answer a query, or why not."""
    with handled():
        client = Client(server, token, metastore)
        known = client.call("GET", _path(name))["name"]
        found = client.call("POST", "/explain", json={"sql": sql})
        mine = [c for c in found["candidates"] if c["cache"].rpartition(".")[2] == known]
        if not mine:
            say(f"{known} reads none of the query's tables")
        show(mine, ("cache", "grouping_set", "outcome", "reasons"), output)


def _switch(word: str, what: str) -> None:
    def command(
        name: str, server: Server = None, token: Token = None, metastore: Metastore = None
    ) -> None:
        with handled():
            Client(server, token, metastore).call("POST", _path(name, f"/{word}"))
            say(f"{name} {word}d")

    command.__doc__ = what
    app.command(word)(command)


_switch("enable", "Let queries be answered from it.")
_switch("disable", "Answer no query from it any more; it goes on being refreshed.")
_switch("pause", "Refresh it no more by its trigger.")
_switch("resume", "Refresh it by its trigger again.")


@app.command()
def drop(
    name: str,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    server: Server = None,
    token: Token = None,
    metastore: Metastore = None,
) -> None:
    """Drop a cache."""
    with handled():
        client = Client(server, token, metastore)
        client.call("GET", _path(name))
        if not yes:
            typer.confirm(f"drop the relational cache {name}?", abort=True, err=True)
        client.call("DELETE", _path(name))
        say(f"{name} dropped")
