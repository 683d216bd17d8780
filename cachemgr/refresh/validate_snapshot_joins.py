"""The record-preserving joins of a snapshot: which held at the versions that the refresh read."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import SparkSession

from cachemgr.access.redaction import is_marked, marked_keys, untold
from cachemgr.base_state import BaseState, TableAt, versions_of
from cachemgr.config.result_settings import agree
from cachemgr.delta.changes import Changes
from cachemgr.delta.tables import current_versions
from cachemgr.errors import JoinValidationError
from cachemgr.metastore.joins import Joins
from cachemgr.metastore.records import JoinRecord, SnapshotTableRecord
from cachemgr.metastore.store import Metastore
from cachemgr.refresh.by_change.incremental import Delta
from cachemgr.refresh.validate_join import (
    JOIN_COLUMN_LOST,
    JoinCheck,
    rows_lost,
    validate_join,
)
from cachemgr.telemetry import logger
from cachemgr.vocabulary import JoinState
from matcher.model.ir import CachePlan, RecordPreservingJoin


@dataclass(frozen=True, slots=True)
class JoinChecks:
    """With what the joins of a cache are checked.

    Attributes:
        session: A session of ours.
        metastore: Where the joins' states are kept.
        settings: Those that the cache is refreshed under: what a join's keys are depends on them,
            as on the time zone, so that it is right for those who read under the same ones.
        now: This moment.
    """

    session: SparkSession
    metastore: Metastore
    settings: Mapping[str, str]
    now: datetime

    def covers(self, join: JoinRecord) -> bool:
        """Whether a join was validated under these settings."""
        return join.validated_under is not None and agree(join.validated_under, self.settings)


def declared_joins(joins: Joins, plan: CachePlan) -> tuple[JoinRecord, ...]:
    """The declared joins both of whose tables the plan reads."""
    places = {r.key for r in plan.tables}
    return tuple(j for j in joins.all() if j.left.location in places and j.right.location in places)


def joins_to_follow(
    checks: JoinChecks,
    before: Sequence[SnapshotTableRecord],
    changes: Mapping[str, Changes],
) -> tuple[JoinRecord, ...]:
    """The declared joins from a table of a snapshot that has changed since, which held for its very
    rows then: by them a query may join more than the cache has.

    Left out are those of a table whose columns may have changed: the key may be another column of
    that name, in rows that nobody looks at again.
    """
    then = _not_redefined(before, changes)
    found = []
    for join in checks.metastore.joins.all() if then else ():
        left = join.left.location
        checked = join.validated_versions.get(left) if checks.covers(join) else None
        if left in then and join.finds_each and checked is not None:
            if join.state is JoinState.VALID and checked.agrees(then[left]):
                found.append(join)
    return tuple(found)


def _not_redefined(
    before: Sequence[SnapshotTableRecord], changes: Mapping[str, Changes]
) -> dict[str, BaseState]:
    """The tables that have changed since a snapshot and have the same columns still, as it read
    them."""
    return {
        t.location: t.state
        for t in before
        if t.location in changes and not changes[t.location].redefined
    }


def is_checked(join: JoinRecord) -> bool:
    """False for a join that was declared NOT VALIDATED and never validated since."""
    return join.validated or join.state is not JoinState.NOT_VALIDATED


def check_joins(
    checks: JoinChecks, joins: Sequence[JoinRecord], tables: Sequence[TableAt]
) -> tuple[tuple[RecordPreservingJoin, ...], dict[str, str]]:
    """Validate joins at pinned versions, and note down what was found.

    A join that no longer holds becomes BROKEN at once and is left out of the snapshot; the cache
    itself is right either way, since its rows come from the join as it is. One that was validated
    at these very versions and under the same settings is not validated again.

    Args:
        checks: With what.
        joins: The joins to check.
        tables: The pinned base tables.

    Returns:
        The joins that hold or were declared NOT VALIDATED, and the messages of those that do not
        hold.
    """
    pinned = {t.location: t for t in tables}
    facts: list[RecordPreservingJoin] = []
    broken: dict[str, str] = {}
    for join in joins:
        if not is_checked(join):
            facts.append(join.as_fact(validated=False))
            continue
        message = _known(join, pinned) if checks.covers(join) else None
        if message is None:
            check, message = _checked(checks, join, versions_of(tables))
            message = _note(checks, join, check, message, pinned)
        if message:
            broken[join.name] = message
        else:
            facts.append(join.as_fact())
    return tuple(facts), broken


def check_joins_on_delta(
    checks: JoinChecks,
    joins: Sequence[JoinRecord],
    held: Collection[RecordPreservingJoin],
    tables: Sequence[TableAt],
    delta: Delta,
    *,
    kept: Collection[RecordPreservingJoin],
    before: Sequence[SnapshotTableRecord] = (),
    changes: Mapping[str, Changes],
) -> tuple[tuple[RecordPreservingJoin, ...], dict[str, str]]:
    """The same after rows were appended to one table, of what held before: on those rows alone.

    A table that did not change is still unique on the key, and its rows still find theirs; no row
    is lost by a LEFT JOIN. A join whose joined side grew, or that is not among those that held, is
    validated as a whole.

    Args:
        checks: With what.
        joins: The joins to check.
        held: Those that held at the versions that the appended rows came after. One that was
            declared since under the name of another is none of them.
        tables: The pinned base tables.
        delta: What was appended.
        kept: Those of which the counts tell already that each appended row found its partner.
        before: The base tables as that snapshot read them.
        changes: What happened to them since, by location; empty where that is not known.

    Returns:
        As `check_joins` does.
    """
    grown = delta.table.location
    proven, rows, whole = [], [], []
    for join in joins:
        fact = join.as_fact()
        if fact not in held or not is_checked(join) or join.right.location == grown:
            whole.append(join)
        elif join.left.location != grown or fact in kept or not join.finds_each:
            proven.append(join)
        else:
            rows.append(join)
    facts, broken = check_joins(checks, whole, tables)
    found = [join.as_fact() for join in proven]
    lost = _lost(checks, rows, delta, tables) if rows else {}
    pinned = {t.location: t for t in tables}
    for join in rows:
        check = lost[join.name]
        if check.ok:
            found.append(join.as_fact())
            proven.append(join)
            continue
        message = str(check.message(join.name, join.left.name, join.right.name, join.keys))
        broken[join.name] = _note(checks, join, check, message, pinned)
    same = _not_redefined(before, changes)
    for join in filter(checks.covers, proven):
        if all(_has_same_keys(join, pinned[side.location], same) for side in join.telling):
            _note(checks, join, JoinCheck(ok=True), "", pinned)
    return (*facts, *found), broken


def _has_same_keys(join: JoinRecord, table: TableAt, before: Mapping[str, BaseState]) -> bool:
    """Whether a table has the columns that it had when a join was validated: it is in that state,
    or was in it `before`, and nobody has redefined it since."""
    checked, then = join.validated_versions.get(table.location), before.get(table.location)
    return _is_at(join, table) or (
        checked is not None and then is not None and checked.agrees(then)
    )


def follow_joins(
    checks: JoinChecks,
    joins: Sequence[JoinRecord],
    tables: Sequence[TableAt],
    changes: Mapping[str, Changes],
) -> None:
    """Note down whether joins hold for the rows that tables have now: a look at the rows that came
    tells, however they were refreshed. Where the joined side changed, a join is left to VALIDATE.

    Args:
        checks: With what.
        joins: See `joins_to_follow`.
        tables: The pinned base tables.
        changes: What happened to them since the snapshot before, by location.
    """
    pinned = {t.location: t for t in tables}
    joins = [join for join in joins if not _is_at(join, pinned[join.left.location])]
    others = {j.right.location: j.right.name for j in joins if j.right.location not in pinned}
    heads = dict(pinned) | current_versions(checks.session, others)
    by_table: dict[str, list[JoinRecord]] = {}
    for join in joins:
        head = heads[join.right.location]
        if isinstance(head, TableAt) and _is_at(join, head):
            pinned[head.location] = head
            by_table.setdefault(join.left.location, []).append(join)
    for place, some in by_table.items():
        since = some[0].validated_versions[place].version
        assert since is not None
        lost: dict[str, JoinCheck] = {}
        if changes[place].added:
            came = Delta(pinned[place], since, changes[place], (), (), 0, 0.0, 0.0)
            lost = _lost(checks, some, came, list(pinned.values()))
        for join in some:
            check = lost.get(join.name, JoinCheck(ok=True))
            message = str(check.message(join.name, join.left.name, join.right.name, join.keys))
            if message:
                logger.warning(
                    "record-preserving join %s does not hold any more and serves no query: correct "
                    "what SHOW RECORD PRESERVING JOINS names, then VALIDATE RECORD PRESERVING "
                    "JOIN %s",
                    join.name,
                    join.name,
                )
            _note(checks, join, check, message, pinned)


def _lost(
    checks: JoinChecks, joins: Sequence[JoinRecord], delta: Delta, tables: Sequence[TableAt]
) -> dict[str, JoinCheck]:
    return rows_lost(checks.session, joins, delta, versions_of(tables), checks.settings)


def _is_at(join: JoinRecord, table: TableAt) -> bool:
    """Whether a join was validated in the state in which one of its tables is."""
    checked = join.validated_versions.get(table.location)
    return checked is not None and checked.is_same(table.state)


def _checked(
    checks: JoinChecks, join: JoinRecord, versions: Mapping[str, int]
) -> tuple[JoinCheck, str]:
    """What a validation finds; a join by a column that is gone does not hold."""
    left, right = join.left, join.right
    try:
        check = validate_join(
            checks.session,
            left.location,
            right.location,
            join.keys,
            versions,
            checks.settings,
            told=join.name,
            names=(left.name, right.name),
            finds_each=join.finds_each,
        )
    except JoinValidationError as error:
        if error.code != JOIN_COLUMN_LOST:
            raise
        return JoinCheck(ok=False), error.message
    return check, str(check.message(join.name, left.name, right.name, join.keys))


def _known(join: JoinRecord, pinned: Mapping[str, TableAt]) -> str | None:
    """What an earlier validation at these very versions found ('' for a join that holds), else
    None.
    """
    for side in join.telling:
        if not _is_at(join, pinned[side.location]):
            return None
    if join.state is JoinState.VALID:
        return ""
    return join.message if join.state is JoinState.BROKEN else None


def _note(
    checks: JoinChecks,
    join: JoinRecord,
    check: JoinCheck,
    message: str,
    pinned: Mapping[str, TableAt],
) -> str:
    """Note down what was found of a join; the message as others may be told it."""
    if message and is_marked(join, marked_keys(checks.metastore.tables.restricted())):
        message = untold(join.name)
    checks.metastore.joins.update_state(
        join.id,
        JoinState.VALID if check.ok else JoinState.BROKEN,
        message=message or None,
        validated_versions={
            side.location: pinned[side.location].state for side in (join.left, join.right)
        },
        validated_under=checks.settings,
        validated_at=checks.now,
    )
    return message


def move_validations(
    metastore: Metastore,
    plan: CachePlan,
    before: Sequence[SnapshotTableRecord],
    tables: Sequence[TableAt],
) -> None:
    """Note down that joins which held in a snapshot hold in later versions with the same rows, so
    that nobody has to validate them again.

    Left out are those by columns that the cache does not read, since nobody has compared these.

    Args:
        metastore: Where the joins' states are kept.
        plan: What the cache reads.
        before: The base tables as the snapshot read them.
        tables: The same with the same rows, at their versions now.
    """
    then, now = {t.location: t for t in before}, {t.location: t for t in tables}
    if all(then[place].version == table.version for place, table in now.items()):
        return
    for join in declared_joins(metastore.joins, plan):
        sides = (join.left, join.right)
        if join.state is JoinState.VALID and all(
            _was_found_in(join, number, then[side.location])
            for number, side in enumerate(sides)
            if side in join.telling
        ):
            metastore.joins.update_state(
                join.id,
                JoinState.VALID,
                message=join.message,
                validated_versions={s.location: now[s.location].state for s in sides},
                validated_at=join.validated_at,
            )


def _was_found_in(join: JoinRecord, side: int, table: SnapshotTableRecord) -> bool:
    """Whether one side of a join was validated in a snapshot, by columns that the cache reads."""
    checked = join.validated_versions.get(table.location)
    if checked is None or not checked.agrees(table.state) or table.columns is None:
        return False
    read = set(json.loads(table.columns))
    return read.issuperset(key[side].lower() for key in join.keys)


def joins_text(joins: Sequence[JoinRecord]) -> list[str]:
    """Which joins are declared and how, so that a later refresh sees that one was added or
    changed.
    """
    return sorted(
        f"{j.name}: {j.left.location} {j.right.location} {[list(k) for k in j.keys]} "
        f"{'' if j.finds_each else 'LEFT '}{'checked' if is_checked(j) else 'not validated'}"
        for j in joins
    )
