"""Carries out the statements of the DDL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def fetch(sql: str, **asked: Any) -> Iterator[Any]:
    """The rows of a query that a service runs, as Arrow batches: `cachemgr.results.client.fetch`,
    which says what may be asked.

    Args:
        sql: The query.
        asked: `server`, `token`, `max_rows` and more.
    """
    from cachemgr.extras import require

    require("cachemgr.statements.fetch", "results")
    from cachemgr.results.client import fetch as run

    return run(sql, **asked)
