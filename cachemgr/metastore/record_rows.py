"""Rows to records and back; the only place that knows both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any, Final

from cachemgr.base_state import BaseState
from cachemgr.cache_spec import (
    SPEC_FIELDS,
    CacheSpec,
    RefreshPolicy,
    freshness_of,
    trigger_json,
    trigger_of,
)
from cachemgr.metastore.logged_reasons import masked_reason
from cachemgr.metastore.models import (
    CacheRow,
    DecisionRow,
    GroupingSetRow,
    JoinRow,
    LeaseRow,
    RefreshRequestRow,
    RefreshRunRow,
    SnapshotTableRow,
)
from cachemgr.metastore.records import (
    CacheRecord,
    ColumnRecord,
    DecisionRecord,
    GroupingSetRecord,
    JoinRecord,
    JoinSide,
    LeaseRecord,
    RefreshRequestRecord,
    RefreshRunRecord,
    SnapshotTableRecord,
    as_utc,
    name_key,
)
from cachemgr.vocabulary import FreshnessKind, JoinState, Origin, Outcome, RefreshMode, RunState

_OWN_FIELDS = frozenset(
    {
        "created_at",
        "updated_at",
        "version",
        "revision",
        "dropped_at",
        "published_refresh_id",
        "narrowed",
        "damaged",
    }
)
_LOCATION_GIVEN: Final = "location"
"""In a row's context: LOCATION as it was given."""

_CHANGEABLE: Final = frozenset(SPEC_FIELDS) - {"location"}
PLAIN_CLAUSES: Final = _CHANGEABLE - {"partitioned_by", "refresh", "freshness"}
"""Of `CacheSpec` the fields that are stored as they are, in columns of their names."""

_RECORD_FIELDS: Final = (
    frozenset(field.name for field in fields(CacheRecord)) - _OWN_FIELDS - {"id", "spec", "context"}
)
CACHE_FIELDS: Final = _RECORD_FIELDS | _CHANGEABLE

# a session that starts reads some for each cache: as plain columns they come in a third of the time
TABLE_COLUMNS: Final = tuple(
    getattr(SnapshotTableRow, field.name) for field in fields(SnapshotTableRecord)
)


def cache_record(row: CacheRow, *, with_plan: bool = True) -> CacheRecord:
    """Read a cache, with the plan that its definition has or without."""
    return CacheRecord(
        id=row.id,
        namespace=row.namespace,
        name=row.name,
        definition=row.definition,
        definition_hash=row.definition_hash,
        spec=spec_of(row),
        context={k: v for k, v in row.context.items() if k != _LOCATION_GIVEN},
        settings=row.settings,
        plan=row.plan if with_plan else None,
        plan_version=row.plan_version,
        columns=tuple(ColumnRecord(*column) for column in row.columns),
        depends_on=tuple(row.depends_on or ()),
        location=row.location,
        paused=row.paused,
        narrowed=row.narrowed,
        owner=row.owner,
        created_at=row.created_at,
        updated_at=row.updated_at,
        dropped_at=row.dropped_at,
        version=row.version,
        published_refresh_id=row.published_refresh_id,
        damaged=row.damaged,
        revision=row.revision,
    )


def spec_of(row: CacheRow) -> CacheSpec:
    """Read what was declared of a cache."""
    plain = {name: _as_declared(getattr(row, name)) for name in PLAIN_CLAUSES}
    return CacheSpec(
        partitioned_by=tuple(row.partition_by),
        location=row.context.get(_LOCATION_GIVEN),
        refresh=RefreshPolicy(trigger_of(row.refresh_trigger), RefreshMode(row.refresh_mode)),
        freshness=freshness_of(FreshnessKind(row.freshness), row.max_staleness_seconds),
        **plain,
    )


def _as_declared(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def cache_row(record: CacheRecord, now: datetime, revision: int) -> CacheRow:
    """Build the row of a new cache."""
    spec = {name: getattr(record.spec, name) for name in _CHANGEABLE}
    # LOCATION as it was given has no column of its own; behind these two, as it always stood
    first = {k: record.context[k] for k in ("catalog", "schema") if k in record.context}
    context = {**first, _LOCATION_GIVEN: record.spec.location, **record.context}
    values = cache_values({name: getattr(record, name) for name in _RECORD_FIELDS} | spec)
    return CacheRow(
        id=record.id,
        context=context,
        created_at=now,
        updated_at=now,
        version=1,
        narrowed=False,
        revision=revision,
        **values,
    )


def cache_values(changed: dict[str, Any]) -> dict[str, Any]:
    """Turn fields of a record, or of what was declared, into columns of its row.

    Args:
        changed: Field to value, as in `CacheRecord` and `CacheSpec`.

    Returns:
        Column to value.

    Raises:
        TypeError: A field does not exist or may not be set from outside.
    """
    wrong = sorted(set(changed) - CACHE_FIELDS)
    if wrong:
        raise TypeError(f"a cache's {', '.join(wrong)} cannot be set; {sorted(CACHE_FIELDS)} can")
    values: dict[str, Any] = {}
    for name, value in changed.items():
        values |= _COLUMNS[name](value) if name in _COLUMNS else {name: _as_stored(value)}
    for name in ("name", "namespace"):
        if name in values:
            values[f"{name}_key"] = name_key(values[name])
    return values


def _as_stored(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


# What is not stored in a column of its own name, or not as it is.
_COLUMNS: Final[Mapping[str, Callable[[Any], dict[str, Any]]]] = {
    "partitioned_by": lambda columns: {"partition_by": list(columns)},
    "refresh": lambda policy: {
        "refresh_trigger": trigger_json(policy.trigger),
        "refresh_mode": policy.mode.value,
    },
    "freshness": lambda promise: {
        "freshness": promise.kind.value,
        "max_staleness_seconds": promise.max_staleness_seconds,
    },
    "columns": lambda columns: {"columns": [[c.name, c.type, c.nullable] for c in columns]},
}


def set_record(row: GroupingSetRow) -> GroupingSetRecord:
    """Read a grouping set."""
    return GroupingSetRecord(
        row.grouping_id, row.ordinal, tuple(row.columns), rows=row.rows, bytes=row.bytes
    )


def set_rows(cache_id: str, records: Iterable[GroupingSetRecord]) -> list[GroupingSetRow]:
    """Build the rows of a cache's grouping sets."""
    return [
        GroupingSetRow(
            cache_id=cache_id,
            grouping_id=record.grouping_id,
            ordinal=record.ordinal,
            columns=list(record.columns),
            rows=record.rows,
            bytes=record.bytes,
        )
        for record in records
    ]


def run_record(row: RefreshRunRow, *, with_plan: bool = True) -> RefreshRunRecord:
    """Read a refresh run, with the plan that it computed or without."""
    return RefreshRunRecord(
        id=row.id,
        cache_id=row.cache_id,
        state=RunState(row.state),
        mode=row.mode,
        reason=row.reason,
        holder=row.holder,
        fencing_token=row.fencing_token,
        started_at=row.started_at,
        commit_number=row.commit_number,
        parent_version=row.parent_version,
        cache_version=row.cache_version,
        finished_at=row.finished_at,
        rows=row.rows,
        bytes=row.bytes,
        error=row.error,
        stages=tuple(row.stages),
        facts=row.facts,
        plan=row.plan if with_plan else None,
        origin=Origin(row.origin),
        requested_by=row.requested_by,
        requested_at=row.requested_at,
        cancel_requested=row.cancel_requested,
    )


def request_record(row: RefreshRequestRow) -> RefreshRequestRecord:
    """Read a refresh that waits."""
    return RefreshRequestRecord(
        id=row.id,
        cache_id=row.cache_id,
        origin=Origin(row.origin),
        why=row.why,
        requested_at=row.requested_at,
        mode=row.mode,
        requested_by=row.requested_by,
    )


def table_record(values: Iterable[Any]) -> SnapshotTableRecord:
    """Read a base table of a snapshot from its `TABLE_COLUMNS`."""
    return SnapshotTableRecord(*values)


def table_rows(refresh_id: str, records: Iterable[SnapshotTableRecord]) -> list[SnapshotTableRow]:
    """Build the rows of a snapshot's base tables."""
    return [
        SnapshotTableRow(
            refresh_id=refresh_id,
            ordinal=ordinal,
            name=record.name,
            location=record.location,
            table_id=record.table_id,
            version=record.version,
            commit_timestamp_ms=record.commit_timestamp_ms,
            commit_id=record.commit_id,
            columns=record.columns,
        )
        for ordinal, record in enumerate(records)
    ]


def join_record(row: JoinRow) -> JoinRecord:
    """Read a record-preserving join."""
    return JoinRecord(
        id=row.id,
        name=row.name,
        definition=row.definition,
        left=JoinSide(**row.left),
        right=JoinSide(**row.right),
        keys=tuple((left, right) for left, right in row.keys),
        validated=row.validated,
        state=JoinState(row.state),
        message=row.message,
        validated_versions={p: BaseState(*v) for p, v in row.validated_versions.items()},
        validated_at=row.validated_at,
        created_at=row.created_at,
        finds_each=row.finds_each,
        validated_under=row.validated_under,
    )


def join_row(record: JoinRecord, now: datetime) -> JoinRow:
    """Build the row of a new record-preserving join."""
    return JoinRow(
        id=record.id,
        name=record.name,
        name_key=name_key(record.name),
        definition=record.definition,
        left=_side(record.left),
        right=_side(record.right),
        keys=[list(pair) for pair in record.keys],
        validated=record.validated,
        state=record.state.value,
        message=record.message,
        validated_versions={p: list(v) for p, v in record.validated_versions.items()},
        validated_at=record.validated_at,
        created_at=now,
        finds_each=record.finds_each,
        validated_under=_settings(record.validated_under),
    )


def _settings(settings: Mapping[str, str] | None) -> dict[str, str] | None:
    return None if settings is None else dict(settings)


def _side(side: JoinSide) -> dict[str, Any]:
    return {"name": side.name, "location": side.location, "table_id": side.table_id}


def decision_record(row: DecisionRow) -> DecisionRecord:
    """Read a decision."""
    return DecisionRecord(
        id=row.id,
        at=row.at,
        session_id=row.session_id,
        query_hash=row.query_hash,
        outcome=Outcome(row.outcome),
        caches=tuple(row.caches),
        grouping_set=row.grouping_set,
        reasons=tuple(map(masked_reason, row.reasons)),
        millis=row.millis,
        principal=row.principal,
        local=row.local,
        filters=None if row.filters is None else tuple(row.filters),
    )


def decision_row(record: DecisionRecord) -> DecisionRow:
    """Build the row of a decision."""
    return DecisionRow(
        at=as_utc(record.at),
        session_id=record.session_id,
        query_hash=record.query_hash,
        outcome=record.outcome.value,
        caches=list(record.caches),
        grouping_set=record.grouping_set,
        reasons=[masked_reason(reason) for reason in record.reasons],
        millis=record.millis,
        principal=record.principal,
        local=record.local,
        filters=None if record.filters is None else list(record.filters),
    )


def lease_record(row: LeaseRow) -> LeaseRecord:
    """Read a lease."""
    return LeaseRecord(row.cache_id, row.holder, row.token, row.expires_at)
