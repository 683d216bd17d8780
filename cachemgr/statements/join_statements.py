"""CREATE, VALIDATE and DROP RECORD PRESERVING JOIN, carried out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from cachemgr.access.redaction import Discretion, is_marked, marked_keys, untold
from cachemgr.ddl.names import no_join
from cachemgr.ddl.statements import CreateRecordPreservingJoin, QualifiedName
from cachemgr.errors import AlreadyExistsError, ErrorCode, JoinValidationError, NotFoundError
from cachemgr.metastore import Metastore
from cachemgr.metastore.records import JoinRecord
from cachemgr.statements.columns import VALIDATED
from cachemgr.statements.create_cache import refuse_name
from cachemgr.statements.create_join import build_join
from cachemgr.statements.engine import Engine, JoinVerdict
from cachemgr.statements.results import ResultRows, done, table
from cachemgr.vocabulary import JoinState


class JoinStatements:
    """Carries out the statements about record-preserving joins.

    Args:
        metastore: Where they are recorded.
        engine: Spark.
        now: The clock.
    """

    def __init__(self, metastore: Metastore, engine: Engine, now: Callable[[], datetime]) -> None:
        self._metastore = metastore
        self._engine = engine
        self._now = now

    def create(self, statement: CreateRecordPreservingJoin) -> ResultRows:
        """Declare a join. Unless it is to be declared unvalidated, it must hold now.

        Raises:
            CacheManagerError: What is wrong, with what, and what to do.
        """
        if statement.if_not_exists and self._metastore.joins.named(str(statement.name)) is not None:
            return done(str(statement.name), "exists already, nothing was changed")
        if self._metastore.joins.named(str(statement.name)) is not None:
            raise AlreadyExistsError(
                ErrorCode.JOIN_EXISTS,
                f"the record-preserving join {statement.name} exists already: "
                "use IF NOT EXISTS, drop it first, or take another name",
            )
        refuse_name(statement.name, "record-preserving join")
        record = build_join(statement, self._engine)
        if statement.validated:
            record = self._validated(record)
        self._metastore.joins.create(record, now=self._now())
        names = {side.location: side.name for side in (record.left, record.right)}
        self._metastore.tables.note(self._engine.base_tables(names))
        return done(record.name, "created" if statement.validated else "created, not validated")

    def validate(self, name: QualifiedName) -> ResultRows:
        """Look whether a join holds now, and note it.

        Raises:
            NotFoundError: There is no such join, or none any more.
        """
        join = self._find_join(name)
        verdict = self._engine.validate(join)
        state = JoinState.BROKEN if verdict.message else JoinState.VALID
        message = self._contradiction(join, verdict)
        if message:
            again = f"VALIDATE RECORD PRESERVING JOIN {join.name}"
            message = f"{message}; correct the data and run {again}"
        noted = self._metastore.joins.update_state(
            join.id,
            state,
            message=message or None,
            validated_versions=verdict.versions,
            validated_under=verdict.under,
            validated_at=self._now(),
            validated=True,
        )
        if noted is None:
            raise NotFoundError(
                ErrorCode.JOIN_NOT_FOUND,
                f"the record-preserving join {join.name} was dropped while it was validated: "
                "nothing was noted; if it was declared again, run "
                f"VALIDATE RECORD PRESERVING JOIN {join.name} again",
            )
        return table(VALIDATED, [(join.name, state.value, message)])

    def drop(
        self, name: QualifiedName, if_exists: bool, told: Callable[[], Discretion]
    ) -> ResultRows:
        """Drop a join, where who asks may do that.

        Raises:
            CacheManagerError: There is none, or he may not.
        """
        if if_exists and self._metastore.joins.named(str(name)) is None:
            return done(str(name), "did not exist, nothing was changed")
        self._find_join(name)
        told().refuse_join_drop(str(name))
        self._metastore.joins.drop(str(name))
        return done(str(name), "dropped")

    def _validated(self, record: JoinRecord) -> JoinRecord:
        verdict = self._engine.validate(record)
        if verdict.message:
            found = self._contradiction(record, verdict)
            raise JoinValidationError(
                ErrorCode.JOIN_DOES_NOT_HOLD,
                f"{found}; nothing was created: correct the data and run the statement again"
                f"{self._what_holds(record)}",
            )
        return replace(
            record,
            validated=True,
            state=JoinState.VALID,
            validated_versions=verdict.versions,
            validated_under=verdict.under,
            validated_at=self._now(),
        )

    def _what_holds(self, record: JoinRecord) -> str:
        """What to write where a LEFT JOIN keeps each row, or where it is the other side whose rows
        each have one partner."""
        left, right = record.left, record.right
        if not record.finds_each:
            return ""
        if not self._engine.validate(replace(record, finds_each=False)).message:
            on = " AND ".join(f"{left.name}.{a} = {right.name}.{b}" for a, b in record.keys)
            return (
                f"; or declare {left.name} LEFT JOIN {right.name} ON {on} PRESERVES {left.name}, "
                "which holds: no row has several partners. Caches that join it so answer queries "
                "without it"
            )
        keys = tuple((key, preserved) for preserved, key in record.keys)
        if self._engine.validate(replace(record, left=right, right=left, keys=keys)).message:
            return ""
        return f"; or write PRESERVES {right.name}, each of whose rows has one partner"

    def _contradiction(self, join: JoinRecord, verdict: JoinVerdict) -> str:
        """What contradicts a join, as it may be told and kept."""
        marks = self._metastore.tables.restricted()
        if verdict.message and is_marked(join, marked_keys(marks)):
            return untold(join.name)
        return verdict.message

    def _find_join(self, name: QualifiedName) -> JoinRecord:
        join = self._metastore.joins.named(str(name))
        if join is None:
            names = [known.name for known in self._metastore.joins.all()]
            raise no_join(str(name), names, "SHOW RECORD PRESERVING JOINS")
        return join
