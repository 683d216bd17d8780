"""Why queries are, or are not, answered from caches, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import typer

from cachemgr.cli.output import show_rows
from cachemgr.printable import printable
from cachemgr.reason_text import candidate_rows, reason_text

_HEADINGS = ("CACHE", "GROUPING SET", "OUTCOME", "COST", "REASONS")


def show_reasons(reasons: Sequence[Mapping[str, Any]]) -> None:
    """Reasons, one a line.

    Args:
        reasons: As everywhere: code, detail, suggestion.
    """
    for reason in reasons:
        typer.echo(printable(reason_text(reason)))


def show_candidates(
    candidates: Sequence[Mapping[str, Any]], told: Sequence[Mapping[str, Any]] = ()
) -> None:
    """The views that were considered, as a table; sets of a cube that are refused alike in one row.

    Args:
        candidates: As EXPLAIN REWRITE FORMAT JSON gives them.
        told: The reasons that were shown before.
    """
    rows = candidate_rows(candidates, told)
    show_rows(
        _HEADINGS,
        [[r.cache, r.sets or "-", r.outcome, r.cost or "-", "\n".join(r.reasons)] for r in rows],
    )
