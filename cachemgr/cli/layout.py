"""`cachemgr cache layout`: which layout of its table a cache's hits speak for."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

import typer

from cachemgr.cli.client import Client
from cachemgr.cli.input import Yes, confirm
from cachemgr.cli.output import Format, say, show, show_line, show_one
from cachemgr.printable import plural

_COLUMNS = ("layout", "files", ("files opened", "filesOpened"), ("kB opened", "kilobytesOpened"),
            "seconds", "told")  # fmt: skip


def layout(
    client: Client,
    name: str,
    apply: Annotated[
        bool,
        typer.Option("--apply", help="Replace the cache by one with the best, and refresh it."),
    ] = False,
    yes: Yes = False,
) -> None:
    """Reckon from the filters of its logged hits which PARTITIONED BY or CLUSTER BY suits a cache:
    files and bytes that a hit would have opened."""
    path = f"/caches/{quote(name, safe='')}"
    found = client.call("GET", f"{path}/layout")
    if client.output is Format.JSON:
        show_one(found, client.output)
    else:
        _show(found)
    if not apply:
        return
    if found["statement"] is None:
        say(f"nothing to apply: {found['note']}")
        return
    clause = found["layouts"][0]["clause"]
    confirm(f"Replace {name} by a cache with {clause}, which is refreshed in full?", yes)
    _apply(client, name, found)
    client.call("POST", f"{path}/refreshes")
    say(
        f"{name} has {clause} now and waits for its refresh, by "
        "`cachemgr serve` or `cachemgr worker`; till then queries read its base tables, and those "
        "that were planned before read the old files"
    )


def _show(found: dict[str, Any]) -> None:
    used = ", ".join(f"{c['column']} in {c['hits']}" for c in found["columns"])
    show_line(f"{plural(found['hits'], 'hit')} with filters logged{f': {used}' if used else ''}")
    if found["layouts"]:
        show([_row(each) for each in found["layouts"]], _COLUMNS, Format.TABLE)
    if found["statement"] is not None:
        show_line(f"to have the best one, as --apply does:\n{found['statement']}")
    if found["note"]:
        say(found["note"])


def _row(layout: dict[str, Any]) -> dict[str, Any]:
    told = [word for word, key in (("best", "isBest"), ("now", "isCurrent")) if layout[key]]
    return {
        "layout": layout["clause"],
        "files": layout["files"],
        "filesOpened": layout["filesOpened"],
        "kilobytesOpened": round(layout["bytesOpened"] / 1000),
        "seconds": "unknown",
        "told": ", ".join(told),
    }


def _apply(client: Client, name: str, found: dict[str, Any]) -> None:
    """As `cachemgr apply` does of a file in which these clauses alone are others: under the
    settings, and in the schema, that the cache was created in."""
    best = found["layouts"][0]
    caches = client.call("GET", "/definitions")["caches"]
    wanted = next(c for c in caches if c["name"] == found["cache"])
    # its grants pass on to the one that replaces it
    wanted |= {"partitionedBy": best["partitionedBy"], "clusterBy": best["clusterBy"]}
    wanted["grants"] = None
    body = {"definitions": {"caches": [wanted], "joins": []}, "prune": False}
    changes = client.call("POST", "/definitions/apply", json=body)["changes"]
    failed = next((c for c in changes if c["outcome"] != "DONE"), None)
    if failed is not None:
        say(f"{name} is as it was: {failed['message']}")
        raise typer.Exit(1)
