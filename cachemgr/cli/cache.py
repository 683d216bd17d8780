"""`cachemgr cache`: list, make, refresh, switch and drop caches."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.console import Console

from cachemgr.cli.client import Client
from cachemgr.cli.connected import connected
from cachemgr.cli.input import Yes, confirm, text_of
from cachemgr.cli.output import Format, say, show, show_one
from cachemgr.settings import parse_duration

app = typer.Typer(help="Relational caches.", no_args_is_help=True)
_OVER = ("PUBLISHED", "UNCHANGED")
_COLUMNS = ("namespace", "name", "status.combined", "trigger.kind", "freshness", "published.rows",
            "published.finishedAt", "nextDueAt")  # fmt: skip
_RUNS = ("id", "state", "mode", "origin", "startedAt", "finishedAt", "rows", "error")


def path_of(name: str, more: str = "") -> str:
    """The REST path of a cache."""
    return f"/caches/{quote(name, safe='')}{more}"


@app.command("list")
@connected
def list_caches(
    client: Client,
    like: Annotated[str | None, typer.Option(help="As in SHOW … LIKE.")] = None,
) -> None:
    """List the caches."""
    found: list[dict[str, Any]] = []
    params: dict[str, Any] = {"pageSize": 1000} | ({} if like is None else {"like": like})
    while True:
        answer = client.call("GET", "/caches", params=params)
        found += answer["caches"]
        if answer["nextPageToken"] is None:
            break
        params["pageToken"] = answer["nextPageToken"]
    show(found, _COLUMNS, client.output)


@app.command("show")
@connected
def show_cache(client: Client, name: str) -> None:
    """Show all of one cache."""
    show_one(client.call("GET", path_of(name)), client.output)


@app.command()
@connected
def create(
    client: Client,
    ddl: Annotated[str, typer.Argument(help="CREATE RELATIONAL CACHE …; - reads it from stdin.")],
) -> None:
    """Create a cache by its statement."""
    show_one(client.call("POST", "/caches", json={"ddl": text_of(ddl)}), client.output)


@app.command()
@connected
def refresh(
    client: Client,
    name: str,
    mode: Annotated[str | None, typer.Option(help="AUTO, FULL, INCREMENTAL.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it is over.")] = False,
) -> None:
    """Ask for a refresh; a service or worker carries it out, or with --wait and no --server this
    process. With --wait exit code 1 if it fails."""
    body = None if mode is None else {"mode": mode.upper()}
    asked = client.call("POST", path_of(name, "/refreshes"), json=body)
    done = _over(client, asked) if wait else asked
    show_one(done, client.output)
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
@connected
def history(
    client: Client,
    name: str,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 20,
) -> None:
    """List a cache's refreshes, newest first."""
    answer = client.call("GET", path_of(name, "/refreshes"), params={"pageSize": limit})
    show(answer["refreshes"], _RUNS, client.output)


@app.command()
@connected
def why(
    client: Client,
    name: str,
    sql: Annotated[
        str | None, typer.Argument(help="A query: would it be answered from the cache now?")
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="How far to look back in the decision log: 2h, 7d.")
    ] = None,
) -> None:
    """Say why queries were, or were not, answered from this cache: the decision log added up; or
    for one query, why it would be or not."""
    if sql is not None:
        _why_one(client, name, sql)
        return
    params = {} if since is None else {"since": _moment(since)}
    found = client.call("GET", path_of(name, "/why"), params=params)
    if client.output is Format.JSON:
        show_one(found, client.output)
        return
    say(f"{found['hits']} hits, {found['misses']} misses")
    show(found["reasons"], ("code", "count", "latestAt", "detail"), client.output)
    say("the latest:")
    show(found["latest"], ("at", "outcome", "queryHash", "groupingSet", "millis"), client.output)


def _why_one(client: Client, name: str, sql: str) -> None:
    known = client.call("GET", path_of(name))["name"]
    found = client.call("POST", "/explain", json={"sql": sql})
    mine = [c for c in found["candidates"] if c["cache"].rpartition(".")[2] == known]
    if not mine:
        say(f"{known} reads none of the query's tables")
    show(mine, ("cache", "grouping_set", "outcome", "reasons"), client.output)


def _moment(since: str) -> str:
    try:
        back = timedelta(seconds=parse_duration(since))
    except ValueError as error:
        raise typer.BadParameter(f"{since!r} is not {error}") from None
    return (datetime.now(UTC) - back).isoformat()


def _switch(word: str, what: str) -> None:
    def command(client: Client, name: str) -> None:
        changed = client.call("POST", path_of(name, f"/{word}"))
        say(f"{name} {word}d")
        if client.output is Format.JSON:
            show_one(changed, client.output)

    command.__doc__ = what
    app.command(word)(connected(command))


_switch("enable", "Let queries be answered from it.")
_switch("disable", "Answer no query from it any more; it goes on being refreshed.")
_switch("pause", "Refresh it no more by its trigger.")
_switch("resume", "Refresh it by its trigger again.")


@app.command()
@connected
def drop(client: Client, name: str, yes: Yes = False) -> None:
    """Drop a cache."""
    client.call("GET", path_of(name))
    confirm(f"Drop the relational cache {name}?", yes)
    client.call("DELETE", path_of(name))
    say(f"{name} dropped")
