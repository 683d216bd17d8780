"""A refresh that somebody waits for: until it is over, or until Ctrl-C."""

from __future__ import annotations

import re
from contextlib import nullcontext
from typing import Any, Final

from rich.console import Console

from cachemgr.cli.client import Client
from cachemgr.cli.output import say
from cachemgr.errors import CacheManagerError, ErrorCode, RefreshError

_DONE: Final = ("PUBLISHED", "UNCHANGED")
_GOES_ON: Final = ("PENDING", "RUNNING")
_CODED: Final = re.compile(r"\[([A-Z_]+)\] (.*)", re.DOTALL)


def over(client: Client, asked: dict[str, Any]) -> dict[str, Any]:
    """Carry a refresh out, or let others do, and wait for its end.

    Args:
        client: Where it was asked for.
        asked: The refresh, as REST gives it.

    Returns:
        The same when it is over.
    """
    console = Console(stderr=True)
    status = console.status(f"refresh {asked['id']}") if console.is_terminal else nullcontext()
    found, elsewhere = asked, client.server is not None
    try:
        client.carry_out()
        elsewhere = True
        with status:
            while found["state"] in _GOES_ON:
                found = client.call("GET", f"/refreshes/{asked['id']}", params={"waitSeconds": 10})
    except KeyboardInterrupt:
        say(_left_alone(client, asked, elsewhere))
        raise
    return found


def joined(asked: dict[str, Any], mode: str | None) -> str | None:
    """What is said of a refresh that waited already, in another mode than is wanted; None if the
    one that waits now does what is wanted. See `metastore.queue.Queue.request`.

    Args:
        asked: The refresh that waits, as REST gives it.
        mode: The mode that is wanted; None is the cache's own.
    """
    if asked["mode"] in (None, mode):
        return None
    return f"joined refresh {asked['id']} ({asked['mode']}), which was asked for before and waits"


def failure_of(done: dict[str, Any]) -> CacheManagerError | None:
    """Why a refresh that is over did not do what was asked for; None if it did.

    Args:
        done: The refresh, as REST gives it.
    """
    if done["state"] in _DONE:
        return None
    text = " ".join((done["error"] or "").split())
    coded = _CODED.fullmatch(text)
    if coded is not None:
        return RefreshError(coded[1], coded[2])
    cancelled = done["state"] == "CANCELLED"
    code = ErrorCode.REFRESH_CANCELLED if cancelled else ErrorCode.REFRESH_FAILED
    why = f": {text}" if text else ""
    return RefreshError(
        code,
        f"the refresh {done['id']} of cache {done['cache']} is {done['state']}{why}; "
        f"`cachemgr cache history {done['cache']}` lists what came after it, "
        f"`cachemgr cache refresh {done['cache']}` asks again",
    )


def _left_alone(client: Client, asked: dict[str, Any], elsewhere: bool) -> str:
    """What becomes of a refresh that nobody waits for any more.

    Args:
        client: Where it was asked for.
        asked: The refresh.
        elsewhere: Whether it is others who carry it out.
    """
    name = f"refresh {asked['id']}"
    history = f"`cachemgr cache history {asked['cache']}`"
    cancel = f"`cachemgr cache cancel {asked['id']}`"
    match _state(client, asked["id"]):
        case "PENDING":
            return f"no longer waiting; {name} is still queued: {cancel} withdraws it"
        case "RUNNING" if elsewhere:
            return f"no longer waiting; {name} goes on: {history} shows it, {cancel} stops it"
        case "RUNNING" | None:
            return f"no longer waiting; {history} shows what becomes of {name}"
        case state:
            return f"{name} is over, {state}: {history} shows it"


def _state(client: Client, refresh_id: str) -> str | None:
    """Where a refresh stands; None if that cannot be had, or is not waited for either."""
    try:
        return str(client.call("GET", f"/refreshes/{refresh_id}")["state"])
    except (Exception, KeyboardInterrupt):
        return None
