"""Finds out whether statements that write have written, of which nobody could tell: the commit of
each says its id, so that the history of the table has the answer.

That a commit is there is certain for ever. That there is none is not: a process that was given up
may still be about to make it. So what is UNKNOWN becomes FINISHED, and nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from cachemgr.errors import CacheManagerError
from cachemgr.metastore.store import Metastore
from cachemgr.telemetry import logger

_LOOK_SECONDS: Final = 60.0
# So long after its process was given up a commit may still come.
_LOOKED_FOR: Final = timedelta(days=1)

Written = Callable[[str, Mapping[str, Any]], int | None]


def without_rows(run: int, into: Mapping[str, Any], version: int | None) -> dict[str, Any]:
    """The result of a statement that has written, and gives no rows or has lost them.

    Args:
        run: The fencing token of who ran it.
        into: What it writes to.
        version: What it has made of that; None if there was nothing to change.
    """
    return {
        "run": run,
        "rows": 0,
        "bytes": 0,
        "files": 0,
        "truncated": False,
        "ordered": False,
        "columns": [],
        "places": list(into["places"]),
        "table": into["table"],
        "version": version,
    }


class Settling:
    """Looks at the tables of statements that are UNKNOWN, again and again for a while.

    Args:
        metastore: Where they are.
        written: The version that a statement has made of what it writes to; None for none yet;
            raises CacheManagerError where that cannot be told.
    """

    def __init__(self, metastore: Metastore, written: Written) -> None:
        self._statements = metastore.statements
        self._clock = metastore.clock
        self._written = written
        self._looked: float | None = None

    def look(self, *, at_once: bool = False) -> None:
        """Look, unless that was done not long ago.

        Args:
            at_once: Look all the same.
        """
        now = time.monotonic()
        if not at_once and self._looked is not None and now - self._looked < _LOOK_SECONDS:
            return
        self._looked = now
        for statement in self._statements.unsettled(self._clock.now() - _LOOKED_FOR):
            into = statement.result or {}
            try:
                version = self._written(statement.id, into)
            except CacheManagerError as error:
                logger.warning(
                    "whether statement %s wrote is not known: %s", statement.id, error.code
                )
                continue
            if version is not None:
                result = without_rows(statement.fencing_token, into, version)
                self._statements.settle(statement.id, result=result)
                logger.info("statement %s wrote version %d: FINISHED", statement.id, version)
