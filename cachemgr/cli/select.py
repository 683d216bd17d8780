"""`cachemgr select`: which base tables the service's statements may read for whom."""

from __future__ import annotations

from typing import Any

import typer

from cachemgr.cli.client import Client
from cachemgr.cli.connected import connected
from cachemgr.cli.output import say, show, show_one
from cachemgr.errors import ErrorCode, NotFoundError

app = typer.Typer(help="Base tables that statements may read, and for whom.", no_args_is_help=True)
_GRANTS = "/tables/select-grants"


@app.command("list")
@connected
def list_grants(client: Client) -> None:
    """List which base tables statements may read for whom; admins see all, others their own."""
    found = client.call("GET", _GRANTS)["grants"]
    show(found, ("principal", "table", "location", "grantedAt"), client.output)


@app.command()
@connected
def grant(client: Client, table: str, principal: str) -> None:
    """Let statements read TABLE for PRINCIPAL. It is granted by its place."""
    body = {"table": table, "principal": principal}
    show_one(client.call("POST", _GRANTS, json=body), client.output)


@app.command()
@connected
def revoke(client: Client, table: str, principal: str) -> None:
    """Take PRINCIPAL's grant on TABLE back: the name or place that `cachemgr select list` shows."""
    found = client.call("GET", _GRANTS)["grants"]
    his = [each for each in found if each["principal"] == principal.strip()]
    gone = [each for each in his if each["location"] == table]
    gone = gone or [each for each in his if _is_called(each, table)]
    if not gone:
        raise NotFoundError(
            ErrorCode.GRANT_NOT_FOUND,
            f"{principal} was not granted SELECT on {table}: `cachemgr select list` shows what was "
            "granted",
        )
    for each in gone:
        key = {"location": each["location"], "principal": each["principal"]}
        client.call("DELETE", _GRANTS, params=key)
        say(f"{each['table']} at {each['location']} is not granted to {each['principal']} any more")


def _is_called(grant: dict[str, Any], table: str) -> bool:
    """Whether a grant shows a name that was written as `grant` takes it, where the service's own
    catalog and schema may be left out."""
    written = table.replace("`", "").lower().removeprefix("spark_catalog.")
    return grant["table"].lower() in (written, f"default.{written}")
