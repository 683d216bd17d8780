"""Data to stdout, as a table for people or as JSON; messages to stderr."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cachemgr.cli.choice import one_of
from cachemgr.printable import printable


class Format(StrEnum):
    """How data are shown."""

    TABLE = "table"
    JSON = "json"


Output = Annotated[
    Format, typer.Option("-o", "--output", help="How data are shown.", **one_of(Format))
]
# A column of a table: a field, whose name is the heading, or a heading and its field.
Column = str | tuple[str, str]

_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_")
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?(?:Z|\+00:00)")
# A pipe has no width: nothing is folded or cropped for it.
_NO_WIDTH = 1_000_000


def show(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column], output: Format) -> None:
    """A list of things.

    Args:
        rows: The things, whole.
        columns: What a table shows of each; the field `a.b` is b of a.
        output: As a table, or all of it as JSON.
    """
    if output is Format.JSON:
        typer.echo(json.dumps(list(rows), indent=2))
        return
    named = [c if isinstance(c, tuple) else (_words(c.rsplit(".", 1)[-1]), c) for c in columns]
    show_rows(
        [heading.upper() for heading, _ in named],
        [[_cell(_inside(row, field)) for _, field in named] for row in rows],
    )


def show_rows(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Rows as a table for people.

    Args:
        columns: The headings.
        rows: A text for each of them.
    """
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(Text(printable(column)), overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    _console().print(table)


def show_one(thing: Mapping[str, Any], output: Format) -> None:
    """One thing, all of it."""
    if output is Format.JSON:
        typer.echo(json.dumps(thing, indent=2))
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(overflow="fold")
    for key, value in _items(thing):
        table.add_row(Text(printable(key)), Text(printable(_cell(value))))
    _console().print(table)


def moment(text: str) -> str:
    """A time as REST gives it, for people: to the second, in UTC. Any other text as it is."""
    found = _MOMENT.fullmatch(text)
    return text if found is None else f"{found[1]} {found[2]}Z"


def say(text: str) -> None:
    """A message for the person, not part of the data."""
    typer.echo(printable(text), err=True)


def show_line(text: str) -> None:
    """A line of the data, for people."""
    typer.echo(printable(text))


def _console() -> Console:
    return Console(
        file=sys.stdout, width=None if sys.stdout.isatty() else _NO_WIDTH, highlight=False
    )


def _inside(row: Mapping[str, Any], path: str) -> Any:
    found: Any = row
    for part in path.split("."):
        found = None if found is None else found.get(part)
    return found


def _words(name: str) -> str:
    """A field's name as words: `finishedAt` is `finished at`."""
    return _CAPITAL.sub(" ", name).lower()


def _items(thing: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """A thing's fields by their words, those of fields with fields of their own among them."""
    for key, value in thing.items():
        name = f"{above} {_words(key)}".strip()
        if isinstance(value, Mapping) and value:
            yield from _items(value, name)
        else:
            yield name, value


def _cell(value: Any) -> str:
    match value:
        case None | "" | []:
            return "-"
        case bool():
            return "yes" if value else "no"
        case Mapping():
            if not value:
                return "-"
            return ", ".join(f"{_words(k)} {_cell(v)}" for k, v in value.items())
        case list():
            return ("\n" if isinstance(value[0], Mapping) else ", ").join(map(_cell, value))
        case str():
            return moment(value)
        case float():
            return f"{value:.1f}"
        case _:
            return str(value)
