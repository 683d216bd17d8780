"""Once a minute: the metastore forgets what is too old to be of use."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from cachemgr.metastore.store import Metastore
from cachemgr.telemetry import logger

# A look ends soon, since a process that stops waits for it; the next one goes on.
_MOST_PORTIONS: Final = 20


def forget_the_past(metastore: Metastore, days: int) -> int:
    """Delete runs of refreshes and decisions that are older than so many days.

    Args:
        metastore: Where they are.
        days: How many; see `HistoryWrites` for what is kept however old it is.

    Returns:
        How many were deleted.
    """
    before = metastore.reader.now() - timedelta(days=days)
    writer = metastore.writer
    runs = _portions(writer.prune_runs, before)
    decisions = _portions(writer.prune_decisions, before)
    if runs or decisions:
        logger.info("deleted %d runs and %d decisions of before %s", runs, decisions, before)
    return runs + decisions


def _portions(prune: Callable[[datetime], int], before: datetime) -> int:
    total = 0
    for _ in range(_MOST_PORTIONS):
        deleted = prune(before)
        total += deleted
        if not deleted:
            break
    return total
