"""`cachemgr cache grants|grant|revoke`: who may be answered from a cache."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from cachemgr.cli.cache import app
from cachemgr.cli.client import Client
from cachemgr.cli.connected import connected
from cachemgr.cli.output import show


def _path(name: str, principal: str = "") -> str:
    path = f"/caches/{quote(name, safe='')}/grants"
    return f"{path}/{quote(principal, safe='')}" if principal else path


def _show(found: dict[str, Any], client: Client) -> None:
    if client.output == "json":
        show([found], (), client.output)
        return
    who = found["principals"] if found["narrowed"] else ["everybody who may read its base tables"]
    show([{"principal": principal} for principal in who], ("principal",), client.output)


@app.command()
@connected
def grants(client: Client, name: str) -> None:
    """List who may be answered from a cache."""
    _show(client.call("GET", _path(name)), client)


@app.command()
@connected
def grant(client: Client, name: str, principal: str) -> None:
    """Let PRINCIPAL be answered from a cache; the first grant shuts everybody else out."""
    _show(client.call("PUT", _path(name, principal)), client)


@app.command()
@connected
def revoke(client: Client, name: str, principal: str) -> None:
    """Take a grant back; with the last one gone the cache answers nobody."""
    _show(client.call("DELETE", _path(name, principal)), client)
