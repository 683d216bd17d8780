"""`cachemgr query`: a statement that the service runs, its rows into a file, a pipe or a table."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn

from cachemgr.cli.choice import one_of
from cachemgr.cli.connected import Server, Token
from cachemgr.cli.failure import handled
from cachemgr.cli.output import say, show_rows
from cachemgr.errors import CacheManagerError, ConfigurationError, ErrorCode
from cachemgr.printable import plural
from cachemgr.results.kinds import ResultFormat

if TYPE_CHECKING:
    import pyarrow as pa

    from cachemgr.results.client import Statement, StatementClient

TRUNCATED: Final = 3
_SHOWN_ROWS: Final = 100
_END_SECONDS: Final = 10.0
_PIPE: Final = "-"
_SUFFIXES: Final = {
    "": ResultFormat.PARQUET,
    ".parquet": ResultFormat.PARQUET,
    ".arrow": ResultFormat.ARROW,
    ".arrows": ResultFormat.ARROW,
}
# A terminal, and `timeout`, may send one signal twice.
_ONE_SIGNAL_SECONDS: Final = 1.0


def query(
    sql: Annotated[str, typer.Argument(help="One statement; - reads it from stdin.")] = _PIPE,
    to: Annotated[
        str | None,
        typer.Option("-o", "--to", help="The file to write, - for stdout; shown if left out."),
    ] = None,
    kind: Annotated[
        ResultFormat | None,
        typer.Option(
            "--format",
            help="By the file's name if left out; arrow for a pipe.",
            **one_of(ResultFormat),
        ),
    ] = None,
    max_rows: Annotated[
        int | None, typer.Option(min=1, help="No more rows; exit code 3 if there are more.")
    ] = None,
    schema: Annotated[str | None, typer.Option(help="The schema of names without one.")] = None,
    timeout: Annotated[
        float | None, typer.Option(min=0.1, help="Seconds that the query may run.")
    ] = None,
    statement: Annotated[
        str | None, typer.Option(help="Read the result of this statement, and run nothing.")
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the result at the service, for --statement.")
    ] = False,
    key: Annotated[
        str | None,
        typer.Option(help="Whatever is sent under it again is not run again."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    server: Server = None,
    token: Token = None,
) -> None:
    """Have the service run a query, and write its rows: in memory that does not grow with them.

    The file is there once it is whole. Ctrl-C cancels the query at the service. Needs a service
    with results_location, and SELECT on each table that the query reads. INSERT, UPDATE, DELETE and
    MERGE are for those whom the service's statement_writers names."""
    from cachemgr.extras import require

    with handled(), _cancelled_by_signals():
        require("`cachemgr query`", "results")
        from cachemgr.results.client import StatementClient

        place = None if to in (None, _PIPE) else Path(str(to))
        wanted = kind or _kind_of(place)
        _check_target(place, to, force=force)
        given = (sql != _PIPE, max_rows, schema, timeout, key, keep)
        if statement is not None and any(given):
            raise ConfigurationError(
                ErrorCode.BAD_SETTING,
                "--statement reads a result that is there, whole: leave out the SQL, --max-rows, "
                "--schema, --timeout, --key and --keep",
            )
        if server is None:
            raise ConfigurationError(
                ErrorCode.BAD_SETTING, "--server or CACHEMGR_SERVER says which service is asked"
            )
        text = sys.stdin.read() if sql == _PIPE and statement is None else sql
        most = _SHOWN_ROWS if to is None and max_rows is None else max_rows
        with StatementClient(server, token) as client:
            if statement is not None:
                found = client.finished(client.get(statement))
                _write(client, found, place, to, wanted)
            else:
                asked = {"maxRows": most, "schema": schema, "timeoutSeconds": timeout}
                found = _run(client, text, key, asked, place, to, wanted, keep=keep)
        _tell(found, keep=keep)
        if found["truncated"] and max_rows is not None:
            raise typer.Exit(TRUNCATED)


def _run(
    client: StatementClient,
    text: str,
    key: str | None,
    asked: Mapping[str, Any],
    place: Path | None,
    to: str | None,
    kind: ResultFormat,
    *,
    keep: bool,
) -> Statement:
    try:
        found = client.submit(text, key=key, **asked)
        kept = False
        try:
            found = _followed(client, found)
            _write(client, found, place, to, kind)
            kept = keep
        finally:
            if not kept:
                client.leave(found)
    except KeyboardInterrupt:
        if _told_of_a_write(client):
            raise typer.Exit(130) from None
        raise
    return found


def _told_of_a_write(client: StatementClient) -> bool:
    """Whether what was cancelled writes: then how it ended is told, which may be later."""
    found: Statement = {}
    with suppress(CacheManagerError):
        if client.submitted is not None:
            found = client.get(client.submitted, wait_seconds=_END_SECONDS)
    if found.get("written") is None:
        return False
    ends = {"FINISHED": "it was written before", "CANCELED": "nothing was written"}
    told = ends.get(found["state"], f"look later: GET /api/v1/statements/{found['id']}")
    say(f"the statement {found['id']} is {found['state']}: {told}")
    return True


def _kind_of(place: Path | None) -> ResultFormat:
    if place is None:
        return ResultFormat.ARROW
    found = _SUFFIXES.get(place.suffix.lower())
    if found is None:
        raise ConfigurationError(
            ErrorCode.BAD_SETTING,
            f"{place} has no name of a format that is written here: --format says which of "
            f"{' and '.join(each.value for each in ResultFormat)}",
        )
    return found


def _check_target(place: Path | None, to: str | None, *, force: bool) -> None:
    """Before the query runs, which may take long."""
    if to == _PIPE and sys.stdout.isatty():
        raise ConfigurationError(
            ErrorCode.BAD_SETTING,
            "stdout is a terminal, and rows are no text: send it into a pipe or a file, or leave "
            "out -o to see the first rows",
        )
    if place is None:
        return
    if place.exists() and not force:
        raise ConfigurationError(
            ErrorCode.FILE_EXISTS, f"{place} is there already: --force overwrites it"
        )
    if not place.parent.is_dir():
        raise ConfigurationError(
            ErrorCode.BAD_SETTING,
            f"there is no folder {place.parent} for {place.name}: make it first, or correct the "
            "path",
        )


def _followed(client: StatementClient, statement: Statement) -> Statement:
    """The statement once it has finished; on a terminal its state is shown meanwhile."""
    with _progress() as progress:
        task = progress.add_task("", total=None)
        is_said = False

        def told(now: Statement) -> None:
            nonlocal is_said
            # which it was for as long as sending it has waited
            if now["state"] == "PENDING" and not is_said:
                is_said = True
                say(
                    f"the statement {now['id']} waits for a process that runs statements: one "
                    "that starts takes up to a minute; if there is none, whoever runs the service "
                    "starts `cachemgr worker --statements`"
                )
            progress.update(task, description=f"{now['id']} {now['state']}")

        return client.finished(statement, told)


def _write(
    client: StatementClient,
    statement: Statement,
    place: Path | None,
    to: str | None,
    kind: ResultFormat,
) -> None:
    schema = client.schema(statement["id"])
    batches = client.batches(statement["id"])
    if to is None:
        _show(schema, batches)
    elif place is None:
        _encode(sys.stdout.buffer, kind, schema, batches, statement)
    else:
        part = place.with_name(f"{place.name}.part")
        try:
            with part.open("wb") as file:
                _encode(file, kind, schema, batches, statement)
                file.flush()
                os.fsync(file.fileno())
            part.replace(place)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


def _encode(
    file: IO[bytes],
    kind: ResultFormat,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    statement: Statement,
) -> None:
    from cachemgr.results.formats import encoded

    with _progress() as progress:
        task = progress.add_task("", total=statement["rows"])
        size = 0
        marked = ((batch, "") for batch in _counted(batches, progress, task))
        for piece in encoded(kind, schema, marked):
            file.write(piece)
            size += len(piece)
            progress.update(task, description=f"{size:,} bytes")


def _counted(
    batches: Iterable[pa.RecordBatch], progress: Progress, task: Any
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch
        progress.advance(task, batch.num_rows)


def _show(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    if not schema.names:  # of INSERT
        return
    rows = [row for batch in batches for row in zip(*map(list, batch.columns), strict=True)]
    show_rows(
        schema.names, [["NULL" if c.as_py() is None else str(c) for c in row] for row in rows]
    )


def _tell(statement: Statement, *, keep: bool) -> None:
    written = statement["written"]
    if written is not None:
        version = written["version"]
        nothing = f"there was nothing to change in {written['table']}"
        say(nothing if version is None else f"version {version} of {written['table']} is written")
        return
    caches = statement["caches"] or []
    by = f"hit {', '.join(caches)}" if caches else "miss"
    more = "; there are more rows" if statement["truncated"] else ""
    kept = f"; kept until {statement['expiresAt']} for --statement {statement['id']}"
    say(f"{plural(statement['rows'], 'row')}, {by}{more}{kept if keep else ''}")


def _progress() -> Progress:
    """On stderr, and on a terminal alone."""
    console = Console(stderr=True)
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TextColumn("{task.completed:,.0f} rows"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


@contextmanager
def _cancelled_by_signals() -> Iterator[None]:
    """SIGTERM ends it as Ctrl-C does, which cancels what the service runs; a second signal at once
    does not keep that from being said to the service."""
    last: float | None = None

    def interrupt(*_: object) -> None:
        nonlocal last
        now = time.monotonic()
        before, last = last, now
        if before is None or now - before > _ONE_SIGNAL_SECONDS:
            raise KeyboardInterrupt

    both = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(each, interrupt) for each in both]
    try:
        yield
    except KeyboardInterrupt:
        say("cancelled")
        raise typer.Exit(130) from None
    finally:
        for each, handler in zip(both, before, strict=True):
            signal.signal(each, handler)
