"""`cachemgr cache`: list, make, refresh, switch and drop caches."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final
from urllib.parse import quote

import typer

from cachemgr.cli.choice import one_of
from cachemgr.cli.client import Client
from cachemgr.cli.connected import connected
from cachemgr.cli.input import Yes, confirm, statement_of
from cachemgr.cli.layout import layout
from cachemgr.cli.output import Format, moment, say, show, show_line, show_one
from cachemgr.cli.reasons import show_candidates, show_reasons
from cachemgr.cli.waiting import failure_of, joined, over
from cachemgr.cli.ways import NOTHING_TO_ADD_TO, why_full_lines
from cachemgr.config.setting_values import parse_duration
from cachemgr.printable import plural
from cachemgr.vocabulary import RefreshMode

app = typer.Typer(help="Relational caches.", no_args_is_help=True)
_COLUMNS = ("namespace", "name", ("status", "status.combined"), "refresh", "freshness",
            "published.rows", ("refreshed", "published.finishedAt"), ("last run", "lastRun"),
            "next")  # fmt: skip
_RUNS = ("id", "state", "mode", "code", "origin", ("started", "startedAt"), "seconds",
         ("change expected", "changeSeconds"), ("full expected", "fullSeconds"), "rows",
         ("written", "rowsWritten"), "error")  # fmt: skip
_MODES: Final = "; ".join(f"{mode.value}: {mode.summary}" for mode in RefreshMode) + (
    ". Without it the cache's own."
)
_MOST_RUNS: Final = 1000  # of one page
_LATE: Final = timedelta(minutes=1)
_FULL = (("started", "startedAt"), "state", "code", "detail", ("what to do", "cure"))
# The log holds no query's text, and its hash, which JSON has, says nothing to a person.
_DECISIONS = ("at", "outcome", ("who", "principal"), "groupingSet", "reasons", "millis", "local")


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
    if client.output is Format.JSON:
        show(found, _COLUMNS, client.output)
        return
    now = datetime.now(UTC)
    late = [cache["name"] for cache in found if _is_overdue(cache, now)]
    show([_in_words(cache, now) for cache in found], _COLUMNS, client.output)
    if late:
        say(
            f"overdue: {', '.join(late)}. `cachemgr serve` or `cachemgr worker` on this metastore "
            "carries schedules out; a cache that is defined over others waits for them"
        )


def _is_overdue(cache: dict[str, Any], now: datetime) -> bool:
    """Whether nobody has asked for a refresh that has been due for longer than a look takes."""
    due = cache["nextDueAt"]
    return due is not None and datetime.fromisoformat(due) < now - _LATE


def _in_words(cache: dict[str, Any], now: datetime) -> dict[str, Any]:
    """A cache as the list shows it."""
    last, following = cache.get("lastRun"), cache["nextDueAt"]
    if cache.get("refreshing") is not None:
        following = cache["refreshing"]
    elif _is_overdue(cache, now):
        following = f"{moment(following)}, overdue"
    return _with_clauses(cache) | {
        "lastRun": None
        if last is None
        else f"{last['state']} {moment(last['finishedAt'] or last['startedAt'])}",
        "next": following,
    }


def _with_clauses(cache: dict[str, Any]) -> dict[str, Any]:
    """A cache with its policies in the words of the DDL."""
    from cachemgr.cache_spec import Freshness, RefreshPolicy, trigger_of
    from cachemgr.ddl.render_parts import render_freshness, render_refresh
    from cachemgr.vocabulary import FreshnessKind, RefreshMode

    trigger = {_snake(key): value for key, value in cache.pop("trigger").items()}
    policy = RefreshPolicy(trigger_of(trigger), RefreshMode[cache.pop("refreshMode")])
    kind, seconds = FreshnessKind[cache["freshness"]], cache.pop("maxStalenessSeconds")
    return cache | {
        "refresh": render_refresh(policy).removeprefix("REFRESH "),
        "freshness": render_freshness(Freshness(kind, seconds)),
    }


def _snake(name: str) -> str:
    return re.sub("([A-Z])", r"_\1", name).lower()


@app.command("show")
@connected
def show_cache(client: Client, name: str) -> None:
    """Show all of one cache."""
    _show_one(client.call("GET", path_of(name)), client)


def _show_one(cache: dict[str, Any], client: Client) -> None:
    shown = cache if client.output is Format.JSON else _with_clauses(cache)
    show_one(shown, client.output)


@app.command()
@connected
def create(
    client: Client,
    ddl: Annotated[str, typer.Argument(help="CREATE RELATIONAL CACHE …; - reads it from stdin.")],
) -> None:
    """Create a cache by its statement."""
    with statement_of(ddl, "cachemgr cache create") as text:
        made = client.call("POST", "/caches", json={"ddl": text})
    _show_one(made, client)


@app.command()
@connected
def refresh(
    client: Client,
    name: str,
    mode: Annotated[RefreshMode | None, typer.Option(help=_MODES, **one_of(RefreshMode))] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it is over.")] = False,
) -> None:
    """Ask for a refresh; a service or worker carries it out, or with --wait and no --server this
    process. With --wait exit code 1 if it fails."""
    body = None if mode is None else {"mode": mode.value}
    asked = client.call("POST", path_of(name, "/refreshes"), json=body)
    before = joined(asked, None if mode is None else mode.value)
    if before is not None:
        say(before)
    done = over(client, asked) if wait else asked
    show_one(done, client.output)
    if not wait and client.server is None:
        say("it waits for `cachemgr serve` or `cachemgr worker`; with --wait this process does it")
    failure = failure_of(done) if wait else None
    if failure is not None:
        raise failure


@app.command()
@connected
def cancel(
    client: Client,
    refresh: Annotated[str, typer.Argument(help="Its id: `cache history` lists them.")],
) -> None:
    """Cancel a refresh that waits or runs; what was published before keeps serving."""
    show_one(client.call("POST", f"/refreshes/{quote(refresh, safe='')}/cancel"), client.output)


@app.command()
@connected
def history(
    client: Client,
    name: str,
    limit: Annotated[int, typer.Option(min=1, max=_MOST_RUNS)] = 20,
) -> None:
    """List a cache's refreshes, newest first."""
    answer = client.call("GET", path_of(name, "/refreshes"), params={"pageSize": limit})
    show(answer["refreshes"], _RUNS, client.output)
    if answer["nextPageToken"] is not None and limit < _MOST_RUNS:
        say(f"the last {limit}; there are older ones: --limit shows up to {_MOST_RUNS}")


@app.command("why-full")
@connected
def why_full(
    client: Client,
    name: str,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Look at so many refreshes.")] = 20,
) -> None:
    """Say which of a cache's last refreshes computed everything though the change alone might have
    done, why, and what to do about it."""
    answer = client.call("GET", path_of(name, "/refreshes"), params={"pageSize": limit})
    runs = [run for run in answer["refreshes"] if run["state"] not in ("PENDING", "RUNNING")]
    hoped = [run for run in runs if run["code"] not in (None, *NOTHING_TO_ADD_TO)]
    if client.output is Format.JSON or hoped:
        show(hoped, _FULL, client.output)
    for line in why_full_lines(runs, hoped):
        say(line)


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
    local = found.get("localHits", 0)  # which an earlier service does not tell
    without = f" ({local} without a Spark job)" if local else ""
    hits, misses = plural(found["hits"], "hit"), plural(found["misses"], "miss", "misses")
    show_line(f"{hits}{without}, {misses}")
    if found["reasons"]:
        show(found["reasons"], ("code", "count", ("latest", "latestAt"), "detail"), client.output)
    if found["latest"]:
        show_line("the latest:")
        codes = [list(dict.fromkeys(r["code"] for r in one["reasons"])) for one in found["latest"]]
        latest = [{**one, "reasons": c} for one, c in zip(found["latest"], codes, strict=True)]
        show(latest, _DECISIONS, client.output)


def _why_one(client: Client, name: str, sql: str) -> None:
    known = client.call("GET", path_of(name))["name"]
    found = client.call("POST", "/explain", json={"sql": sql})
    mine = [c for c in found["candidates"] if c["cache"].rpartition(".")[2] == known]
    if client.output is Format.JSON:
        show(mine, (), client.output)
    elif mine:
        show_candidates(mine)
    else:
        say(f"{known} was not considered for this query")
        show_reasons(found["reasons"])


def _moment(since: str) -> str:
    try:
        back = timedelta(seconds=parse_duration(since))
    except ValueError as error:
        raise typer.BadParameter(f"{since!r} is not {error}") from None
    return (datetime.now(UTC) - back).isoformat()


app.command("layout")(connected(layout))


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
_switch("pause", "Pause scheduled refreshes.")
_switch("resume", "Resume scheduled refreshes.")


@app.command()
@connected
def drop(client: Client, name: str, yes: Yes = False) -> None:
    """Drop a cache."""
    client.call("GET", path_of(name))
    confirm(f"Drop the relational cache {name}?", yes)
    client.call("DELETE", path_of(name))
    say(f"{name} dropped")
