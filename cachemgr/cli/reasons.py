"""Why queries are, or are not, answered from caches, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import typer

from cachemgr.cli.output import show_rows
from cachemgr.printable import printable

_HEADINGS = ("CACHE", "GROUPING SET", "OUTCOME", "COST", "REASONS")


def reason_line(reason: Mapping[str, Any]) -> str:
    """One reason: its code, what it says, and what would help."""
    cure = f" ({reason['suggestion']})" if reason["suggestion"] else ""
    return f"{reason['code']}: {reason['detail']}{cure}"


def show_reasons(reasons: Sequence[Mapping[str, Any]]) -> None:
    """Reasons, one a line.

    Args:
        reasons: As everywhere: code, detail, suggestion.
    """
    for reason in reasons:
        typer.echo(printable(reason_line(reason)))


def show_candidates(candidates: Sequence[Mapping[str, Any]]) -> None:
    """The views that were considered, as a table.

    Args:
        candidates: As EXPLAIN REWRITE FORMAT JSON gives them.
    """
    show_rows(_HEADINGS, [_row(candidate) for candidate in candidates])


def _row(candidate: Mapping[str, Any]) -> list[str]:
    keys, cost = candidate["grouping_set"], candidate["cost"]
    return [
        candidate["cache"],
        "-" if keys is None else f"({', '.join(keys)})",
        candidate["outcome"],
        "-" if cost is None else f"{cost:.0f}",
        "\n".join(map(reason_line, candidate["reasons"])),
    ]
