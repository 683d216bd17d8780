"""`cachemgr token`: who may ask the service."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from cachemgr.cli.choice import one_of
from cachemgr.cli.database import Url, metastore_of, opened
from cachemgr.cli.failure import handled
from cachemgr.cli.output import Format, Output, say, show, show_one
from cachemgr.config.setting_values import parse_duration
from cachemgr.roles import Role

if TYPE_CHECKING:
    from cachemgr.metastore.records import TokenRecord

app = typer.Typer(help="Bearer tokens of the service.", no_args_is_help=True)
_COLUMNS = ("id", "principal", "role", "created_at", "expires_at", "revoked_at")


@app.command()
def create(
    principal: str,
    role: Annotated[
        Role, typer.Option(help="What the token allows.", **one_of(Role))
    ] = Role.VIEWER,
    expires_in: Annotated[
        str | None, typer.Option(help="How long it is good: 12h, 90d; for ever if not given.")
    ] = None,
    metastore: Url = None,
    output: Output = Format.TABLE,
) -> None:
    """Make a token for PRINCIPAL and print it: it is shown this once."""
    with handled(), opened(metastore) as store:
        is_first = not store.tokens.had_any()
        record, token = store.tokens.create(principal, role, expires_in=_span(expires_in))
        if is_first:
            say("this is the first token: from now on the service asks each caller for one")
        if not store.tokens.has_any(Role.ADMIN):
            say("no token is an admin's: cachemgr token create NAME --role admin")
        say(f"token {record.id} for {record.principal}, {record.role.value}:")
        if output is Format.JSON:
            show_one({**_row(record), "token": token}, output)
        else:
            typer.echo(token)


def _span(text: str | None) -> timedelta | None:
    if text is None:
        return None
    try:
        return timedelta(seconds=parse_duration(text))
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not {error}") from None


@app.command("list")
def list_tokens(metastore: Url = None, output: Output = Format.TABLE) -> None:
    """List the tokens, without their secrets."""
    from cachemgr.metastore import open_metastore

    with handled(), open_metastore(metastore_of(metastore), create=False) as store:
        show([_row(token) for token in store.tokens.all()], _COLUMNS, output)


def _row(token: TokenRecord) -> dict[str, str | None]:
    return {
        "id": token.id,
        "principal": token.principal,
        "role": token.role.value,
        "created_at": token.created_at.isoformat(timespec="seconds"),
        "expires_at": _moment(token.expires_at),
        "revoked_at": _moment(token.revoked_at),
    }


def _moment(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat(timespec="seconds")


@app.command()
def revoke(token_id: str, metastore: Url = None) -> None:
    """Make a token void at once."""
    from cachemgr.metastore import open_metastore

    with handled(), open_metastore(metastore_of(metastore), create=False) as store:
        record = store.tokens.revoke(token_id)
        say(f"token {record.id} of {record.principal} is revoked")
