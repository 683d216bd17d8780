"""`cachemgr sql`: a shell on Spark with the caches in use; after each query it says hit or miss,
which cache, and how long."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cachemgr.cli.failure import handled
from cachemgr.cli.output import Format, Output, say, show_rows
from cachemgr.cli.serve import Location, Master, Metastore

if TYPE_CHECKING:
    from cachemgr.spark.shell import Answer

_HISTORY = Path("~/.cachemgr_history")
_PROMPT, _MORE = "cachemgr> ", "     ...> "


def sql(
    execute: Annotated[
        list[str] | None, typer.Option("-e", "--execute", help="Run this and end; repeatable.")
    ] = None,
    metastore: Metastore = None,
    spark_master: Master = None,
    location: Location = None,
    limit: Annotated[int, typer.Option(min=1, help="Rows shown of a query at most.")] = 1000,
    output: Output = Format.TABLE,
) -> None:
    """Run SQL, Spark's and ours, with the caches in use. Statements end with `;`.

    Without -e they are read from stdin: on a terminal with editing and history. With -o json a
    line for each statement. More settings: CACHEMGR_* and cachemgr.toml, as for `serve`. Exit code
    1 if a statement given by -e or a pipe fails; those behind it are not run."""
    from cachemgr.service_settings import service_settings
    from cachemgr.spark.host import host_of
    from cachemgr.spark.shell import run_statement

    asked = execute is None and sys.stdin.isatty()
    with handled():
        texts = [] if asked else _split("\n;".join(execute) if execute else sys.stdin.read())
        settings = service_settings(
            metastore_url=metastore, spark_master=spark_master, location=location
        )
        host = host_of(settings)
        try:
            spark = host.spark()
            for text in _typed() if asked else texts:
                try:
                    _tell(run_statement(spark, text, limit), output)
                except Exception as error:
                    if not asked:
                        raise
                    say(f"error: {_first_line(error)}")
        finally:
            host.stop()


def _split(text: str) -> list[str]:
    from cachemgr.ddl.text import split_statements

    pieces = [text[begin:end].strip() for begin, end in split_statements(text)]
    return [piece for piece in pieces if piece]


def _typed() -> Iterator[str]:
    """Statements as they are typed, each up to its `;`."""
    import readline

    from cachemgr.errors import StatementError

    history = _HISTORY.expanduser()
    try:
        readline.read_history_file(history)
    except OSError:
        pass  # the first time there is none
    typed = ""
    try:
        while True:
            try:
                typed += input(_MORE if typed.strip() else _PROMPT) + "\n"
            except KeyboardInterrupt:
                typed = ""
                say("")
                continue
            except EOFError:
                return
            if not typed.strip().endswith(";"):
                if typed.strip().lower() in ("exit", "quit"):
                    return
                continue
            try:
                found = _split(typed)
            except StatementError:  # a quote that is open still: its other end may follow
                continue
            typed = ""
            yield from found
    finally:
        try:
            readline.write_history_file(history)
        except OSError as error:
            say(f"the history is not kept: {error}")


def _tell(answer: Answer, output: Format) -> None:
    if output is Format.JSON:
        typer.echo(json.dumps(asdict(answer)))
        return
    if answer.columns:
        show_rows(answer.columns, answer.rows)
    more = ", and more: --limit shows more" if answer.more else ""
    verdict = "" if answer.verdict is None else f"{answer.verdict}; "
    say(f"{verdict}{len(answer.rows)} rows{more}, {answer.seconds:.3f} s")


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
