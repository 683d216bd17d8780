"""`cachemgr query`: a statement that the service runs, its rows into a file, a pipe or a table."""

from __future__ import annotations

import os
import signal
import sys
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


def query(
    sql: Annotated[str, typer.Argument(help="One statement; - reads it from stdin.")] = _PIPE,
    to: Annotated[
        str | None,
        typer.Option("-o", "--to", help="The file to write, - for stdout; shown if left out."),
    ] = None,
    kind: Annotated[
        ResultFormat | None,
        typer.Option("--format", help="By the file's name if left out.", **one_of(ResultFormat)),
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
        if place is not None and place.exists() and not force:
            raise ConfigurationError(
                ErrorCode.FILE_EXISTS, f"{place} is there already: --force overwrites it"
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
                found = _run(client, text, key, asked, place, to, wanted)
        _tell(found)
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
) -> Statement:
    try:
        found = client.submit(text, key=key, **asked)
        try:
            found = _followed(client, found)
            _write(client, found, place, to, kind)
        finally:
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
    if place is None or place.suffix in (".arrow", ".arrows"):
        return ResultFormat.ARROW
    return ResultFormat.PARQUET


def _followed(client: StatementClient, statement: Statement) -> Statement:
    """The statement once it has finished; on a terminal its state is shown meanwhile."""
    with _progress() as progress:
        task = progress.add_task("", total=None)

        def told(now: Statement) -> None:
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


def _tell(statement: Statement) -> None:
    written = statement["written"]
    if written is not None:
        version = written["version"]
        nothing = f"there was nothing to change in {written['table']}"
        say(nothing if version is None else f"version {version} of {written['table']} is written")
        return
    caches = statement["caches"] or []
    by = f"hit {', '.join(caches)}" if caches else "miss"
    more = "; there are more rows" if statement["truncated"] else ""
    say(f"{plural(statement['rows'], 'row')}, {by}{more}")


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
    """SIGTERM ends it as Ctrl-C does, which cancels what the service runs."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except KeyboardInterrupt:
        say("cancelled")
        raise typer.Exit(130) from None
    finally:
        signal.signal(signal.SIGTERM, before)
