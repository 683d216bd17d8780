"""What a run that ended before publishing left on top of a cache's log, as far as its base tables
still know the versions that it was made from.

On a table that gets a commit every few seconds these are never the versions of now. The commit is
right all the same for its own, so long as each is still a state of its table's history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from cachemgr.base_state import BaseState, TableAt
from cachemgr.delta.changed_files import gone_files
from cachemgr.delta.changes import ChangeCode, ChangeKind, Changes
from cachemgr.delta.ranges import changes_between
from cachemgr.delta.tables import commits_of, with_columns
from cachemgr.metastore.records import READ_AT, RefreshRunRecord, SnapshotRecord
from cachemgr.refresh.pin import changes_since


@dataclass(frozen=True, slots=True)
class Written:
    """The base tables of a commit that was not published.

    Args:
        tables: As the commit read them.
        changes: What happened to them from the published snapshot to there, by location.
        gone: Files that came or went in between and are not there any more.
        is_behind: The tables have later versions by now.
    """

    tables: tuple[TableAt, ...]
    changes: Mapping[str, Changes] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    is_behind: bool = False


def find_written(
    session: SparkSession,
    stamp: Mapping[str, Any],
    published: SnapshotRecord | None,
    tables: Sequence[TableAt],
) -> Written | None:
    """The base tables that a commit names; None where nobody can tell that one of them ever was in
    that state.

    Args:
        session: A session of ours.
        stamp: What the commit says of itself.
        published: The snapshot that serves now.
        tables: The base tables now.
    """
    states = _states(stamp)
    if states.keys() != {table.location for table in tables}:
        return None
    found = []
    for table in tables:
        state = states[table.location]
        version = state.version
        if table.identity[1:] == state[:3]:
            found.append(table)
            continue
        if version is None or not _went_on(session, table, state):
            return None
        then = replace(
            table,
            version=version,
            timestamp_ms=state.committed_ms,
            commit=state.commit,
        )
        found.append(with_columns(session, then))
    then_read = tuple(found)
    changes = changes_since(session, published, then_read)
    return Written(
        then_read, changes, _gone(session, changes), is_behind=then_read != tuple(tables)
    )


def _states(stamp: Mapping[str, Any]) -> dict[str, BaseState]:
    """The base tables of a stamp by location; nothing if it does not tell."""
    versions, moments = stamp.get("base_versions"), stamp.get("base_timestamps_ms")
    if not isinstance(versions, list) or not isinstance(moments, list):
        return {}
    if len(versions) != len(moments):
        return {}
    return {
        place: BaseState(table_id, version, commit, moment)
        for (place, table_id, version, commit), moment in zip(versions, moments, strict=True)
    }


def _went_on(session: SparkSession, table: TableAt, state: BaseState) -> bool:
    """Whether a table was in a state once, and its log tells of all that happened since."""
    changes = changes_between(table, state, partial(commits_of, session))
    return changes.kind is not ChangeKind.UNKNOWN


def _gone(session: SparkSession, changes: Mapping[str, Changes]) -> tuple[str, ...]:
    """Files that came were there in the version read; by now they may have been compacted."""
    looked_for = {
        place: replace(found, code=ChangeCode.RANGE_REWRITTEN)
        if found.kind is ChangeKind.APPENDS
        else found
        for place, found in changes.items()
    }
    return gone_files(session, looked_for)


def behind_fact(read_at: datetime | None) -> dict[str, str]:
    """What a run notes down that published a commit of earlier base versions.

    Args:
        read_at: When these were read, at the earliest; None if they are those of now.
    """
    return {} if read_at is None else {READ_AT: read_at.isoformat()}


def has_more_to_do(run: RefreshRunRecord) -> bool:
    """Whether a run published an earlier run's commit, and its base tables have later versions.

    Args:
        run: The run as it ended.
    """
    return READ_AT in run.facts
