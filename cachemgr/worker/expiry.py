"""Ends the time of results, and deletes the files that nobody will read: those of results that have
expired, and what statements that failed, or were killed, have left behind."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from cachemgr.metastore.store import Metastore
from cachemgr.results.folders import Results
from cachemgr.telemetry import logger
from cachemgr.vocabulary import StatementState

_MOST_PORTIONS: Final = 20
_KEEPING: Final = frozenset(
    {StatementState.PENDING, StatementState.RUNNING, StatementState.FINISHED}
)


class Expiry:
    """What is done once a minute about results.

    Args:
        metastore: Where statements are.
        results: Where their rows are.
        history_days: How long a statement that is over is remembered.
    """

    def __init__(self, metastore: Metastore, results: Results, history_days: int) -> None:
        self._metastore = metastore
        self._statements = metastore.statements
        self._results = results
        self._history_days = history_days

    def look(self) -> None:
        """Expire, forget, and delete what is left.

        A task of a statement that was killed may write on for a while: its files go with a later
        look, for each look finds all folders that nobody has a right to.
        """
        for _ in range(_MOST_PORTIONS):
            expired = self._statements.expire()
            for statement in expired:
                logger.info("the result of statement %s has expired", statement.id)
                self._results.delete(statement.id)
            if not expired:
                break
        before = self._metastore.clock.now() - timedelta(days=self._history_days)
        for _ in range(_MOST_PORTIONS):
            if not self._statements.forget(before):
                break
        deleted = self.sweep()
        if deleted:
            logger.info("deleted %d folders of statements that have no result", deleted)

    def sweep(self) -> int:
        """Delete what belongs to no result, and to no run that goes on.

        Returns:
            How many folders were deleted.
        """
        # listed before the metastore is asked: a folder that is made later is no business of ours
        found = self._results.statements()
        deleted = 0
        for statement_id, runs in found.items():
            statement = self._statements.get(statement_id)
            if statement is None or statement.state not in _KEEPING:
                self._results.delete(statement_id)
                deleted += 1
                continue
            for run in runs - {statement.fencing_token}:
                self._results.delete_run(statement_id, run)
                deleted += 1
        return deleted
