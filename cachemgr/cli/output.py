"""Data to stdout, as a table for people or as JSON; messages to stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cachemgr.printable import printable


class Format(StrEnum):
    """How data are shown."""

    TABLE = "table"
    JSON = "json"


Output = Annotated[Format, typer.Option("-o", "--output", help="How data are shown.")]


def show(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], output: Format) -> None:
    """A list of things.

    Args:
        rows: The things, whole.
        columns: What a table shows of each; `a.b` is b of a.
        output: As a table, or all of it as JSON.
    """
    if output is Format.JSON:
        typer.echo(json.dumps(list(rows), indent=2))
        return
    show_rows(
        [column.rsplit(".", 1)[-1] for column in columns],
        [[_inside(row, column) for column in columns] for row in rows],
    )


def show_rows(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Rows as a table for people.

    Args:
        columns: The headings.
        rows: A value for each of them.
    """
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(Text(printable(column)), overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    _console().print(table)


def show_one(thing: Mapping[str, Any], output: Format) -> None:
    """One thing, all of it."""
    if output is Format.JSON:
        typer.echo(json.dumps(thing, indent=2))
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    for key, value in thing.items():
        table.add_row(Text(printable(key)), Text(_cell(value)))
    _console().print(table)


def say(text: str) -> None:
    """A message for the person, not part of the data."""
    typer.echo(printable(text), err=True)


def _console() -> Console:
    # a pipe has no width: lines are not folded for it
    return Console(file=sys.stdout, width=None if sys.stdout.isatty() else 500, highlight=False)


def _inside(row: Mapping[str, Any], path: str) -> Any:
    found: Any = row
    for part in path.split("."):
        found = None if found is None else found.get(part)
    return found


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, dict | list):
        return json.dumps(value)
    return printable(str(value))
