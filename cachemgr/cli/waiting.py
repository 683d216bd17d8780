"""A refresh that somebody waits for, and what is said of its end."""

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
    client.carry_out()
    found = asked
    try:
        with status:
            while found["state"] in _GOES_ON:
                found = client.call("GET", f"/refreshes/{asked['id']}", params={"waitSeconds": 10})
    except KeyboardInterrupt:
        say(
            f"no longer waiting; the refresh goes on: `cachemgr cache history {asked['cache']}` "
            f"shows it, `cachemgr cache cancel {asked['id']}` stops it"
        )
        raise
    return found


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
