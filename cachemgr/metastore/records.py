"""What the metastore hands out and takes: frozen records, free of the database."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal

from cachemgr.base_state import BaseState
from cachemgr.cache_spec import CacheSpec
from cachemgr.metastore.accounts import RunAccount, account_of, stored_message
from cachemgr.roles import Role
from cachemgr.sparks import BEFORE, SPARKS
from cachemgr.vocabulary import JoinState, Origin, Outcome, RefreshMode, RunState, kind_of_join
from matcher.model.ir import RecordPreservingJoin
from matcher.model.message import Message

Json = Mapping[str, Any]

ASKED: Final = "asked"
REASON_PARTS: Final = "reason_parts"
"""Among the facts of a run: the mode that somebody asked for, since `mode` says the way taken."""

CHECKED_UNDER_SETTINGS: Final = "joins_checked_under_settings"
"""Among the facts of a run: its joins were checked under the refresh's settings, not Spark's."""
BROKEN_JOINS: Final = "joins_broken"
"""Among the facts of a run: the record-preserving joins that did not hold, with what is wrong."""

READ_AT: Final = "read_at"
"""Among the facts of a run that published what another one wrote, of versions that the base tables
have left since: when that one began."""


UNSEEN_DAMAGE: Final = "a query failed to read one of its files"
"""What is noted of a cache whose file was read and is not what was written, of which no look at the
lengths of its files finds anything."""


def is_seen_by_looks(damage: str) -> bool:
    """Whether a look at a cache's files, which lifts this damage if it finds them whole, sees it.

    Args:
        damage: What was noted.
    """
    return damage != UNSEEN_DAMAGE


def new_id() -> str:
    """A fresh identifier for a cache, a join or a run."""
    return uuid.uuid4().hex


def name_key(name: str) -> str:
    """The form under which names are compared: Spark's names are case-insensitive."""
    return name.lower()


def as_utc(moment: datetime | int) -> datetime:
    """Bring a moment to an aware datetime in UTC.

    Args:
        moment: An aware datetime, or milliseconds since 1970 in UTC.

    Returns:
        The datetime in UTC.

    Raises:
        ValueError: The datetime has no time zone.
    """
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise ValueError(f"a moment needs a time zone: {moment!r}")
        return moment.astimezone(UTC)
    return datetime.fromtimestamp(moment / 1000, UTC)


@dataclass(frozen=True)
class ColumnRecord:
    """One column of a cache."""

    name: str
    type: str
    nullable: bool


@dataclass(frozen=True)
class CacheRecord:
    """A relational cache.

    `spec` is what was declared of it beside its name and SELECT, `depends_on` are the ids of the
    caches that its definition names.

    `damaged` says what is wrong with its files; None if nothing is known to be.

    `created_at`, `updated_at`, `version`, `revision`, `dropped_at`, `published_refresh_id`,
    `narrowed` and `damaged` are the metastore's own: what a new record says there is not stored.
    """

    namespace: str
    name: str
    definition: str
    definition_hash: str
    location: str
    columns: tuple[ColumnRecord, ...] = ()
    id: str = field(default_factory=new_id)
    spec: CacheSpec = field(default_factory=CacheSpec)
    context: Json = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    plan: Json | None = None
    plan_version: str | None = None
    depends_on: tuple[str, ...] = ()
    paused: bool = False
    owner: str | None = None
    narrowed: bool = False
    created_at: datetime | None = None
    updated_at: datetime | None = None
    dropped_at: datetime | None = None
    version: int = 0
    published_refresh_id: str | None = None
    damaged: str | None = None
    revision: int = 0

    @property
    def qualified_name(self) -> str:
        """Namespace and name, for messages."""
        return f"{self.namespace}.{self.name}" if self.namespace else self.name


@dataclass(frozen=True)
class GroupingSetRecord:
    """One grouping set of a cache: its keys, and how much it holds."""

    grouping_id: int
    ordinal: int
    columns: tuple[str, ...]
    rows: int | None = None
    bytes: int | None = None


@dataclass(frozen=True)
class RefreshRunRecord:
    """One refresh of a cache.

    Args:
        is_lost: It is RUNNING in the metastore, but its lease has ended: its process is gone, and
            nobody has taken over yet. Not stored.
    """

    id: str
    cache_id: str
    state: RunState
    mode: str
    reason: str
    holder: str
    fencing_token: int
    started_at: datetime
    commit_number: int | None = None
    parent_version: int | None = None
    cache_version: int | None = None
    finished_at: datetime | None = None
    rows: int | None = None
    bytes: int | None = None
    error: str | None = None
    stages: tuple[Any, ...] = ()
    facts: Json = field(default_factory=dict)
    plan: Json | None = None
    origin: Origin = Origin.STATEMENT
    requested_by: str | None = None
    requested_at: datetime | None = None
    cancel_requested: bool = False
    is_lost: bool = False

    @property
    def asked_mode(self) -> RefreshMode | None:
        """The mode that somebody asked for; None where the cache's own was taken."""
        found = self.facts.get(ASKED)
        return RefreshMode(found) if found in set(RefreshMode) else None

    @property
    def broken_joins(self) -> tuple[str, ...]:
        """The record-preserving joins that did not hold at the versions that it read."""
        return tuple(self.facts.get(BROKEN_JOINS) or ())

    @property
    def sparks(self) -> frozenset[str]:
        """The minors of Spark that computed its rows."""
        return frozenset(self.facts.get(SPARKS) or (BEFORE,))

    @property
    def message(self) -> Message:
        """Its reason in parts; as a text alone where none but that is stored."""
        return stored_message(self.facts.get(REASON_PARTS), self.reason)

    @property
    def account(self) -> RunAccount:
        """The way that it took, why, and what it cost."""
        return account_of(self.facts)

    @property
    def seconds(self) -> float | None:
        """How long it took from its lease on; None while it runs or waits, and of one that ended
        before it began."""
        if self.finished_at is None or self.fencing_token == 0:
            return None
        return (self.finished_at - self.started_at).total_seconds()


@dataclass(frozen=True)
class RefreshRequestRecord:
    """A refresh that waits for a worker; the run that it becomes has its id."""

    id: str
    cache_id: str
    origin: Origin
    why: str
    requested_at: datetime
    mode: str | None = None
    requested_by: str | None = None


@dataclass(frozen=True)
class ScheduleRecord:
    """What the scheduler knows of a cache, as of one moment.

    Args:
        cache: The cache, without its plan.
        epoch: Moves with each refresh asked for by schedule.
        failures: Scheduled refreshes that failed in a row.
        retry_at: When to try again after these.
        behind_since: When the first commit was made that the snapshot lacks, as far as was seen.
        paused_because: Why the scheduler paused it; None if it did not.
        busy: True if a refresh waits or runs.
        last: Its latest run.
        usual_seconds: How long its last refreshes that wrote something took.
    """

    cache: CacheRecord
    epoch: int = 0
    failures: int = 0
    retry_at: datetime | None = None
    behind_since: datetime | None = None
    paused_because: str | None = None
    busy: bool = False
    last: RefreshRunRecord | None = None
    usual_seconds: float = 0.0


@dataclass(frozen=True)
class SnapshotTableRecord:
    """What a snapshot holds of a base table that its refresh read.

    The stored form of a `TableAt`, and less than one: earlier releases stored less, and of the
    columns only those that the cache reads are kept.

    Args:
        name: Its name in the catalog.
        location: Where it lies.
        table_id: Tells a re-created table from its predecessor.
        version: The version.
        commit_timestamp_ms: When that version was committed, in milliseconds since 1970.
        commit_id: The identity of that commit (`BaseState.commit`); None in what was stored before
            identities were.
        columns: What is held of the columns that the cache reads (`kept_columns`); None likewise.
    """

    name: str
    location: str
    table_id: str | None
    version: int | None
    commit_timestamp_ms: int | None = None
    commit_id: str | None = None
    columns: str | None = None

    @property
    def state(self) -> BaseState:
        """The state that was read."""
        commit, made = self.commit_id or "", self.commit_timestamp_ms
        return BaseState(self.table_id, self.version, commit, made)


@dataclass(frozen=True, slots=True)
class Followed:
    """What a cache's definition stands for since its tables or views were changed.

    Args:
        plan: The plan, not measured.
        columns: The cache's columns, with the types that they have by now.
    """

    plan: Mapping[str, Any]
    columns: tuple[ColumnRecord, ...]


@dataclass(frozen=True, slots=True)
class Publication:
    """What a refresh wrote and read, and its cache serves from now on.

    Attributes:
        cache_version: The Delta version that it wrote.
        rows: Rows written.
        bytes: Bytes written.
        tables: The base versions that it read.
        sets: The cache's grouping sets with their rows and bytes.
        facts: What was measured on the way.
        plan: The plan of this snapshot; None keeps what the run has.
        location: Where it wrote, if that is another place than the cache's; None if it is not.
        unchanged: It computed nothing and found the rows that it published before: the run ends as
            UNCHANGED, and counts for nothing where the time of refreshes is looked at.
        followed: What the cache's own record says of its plan and columns from now on, since its
            definition stands for another plan; None where it is the one that is stored there.
    """

    cache_version: int
    rows: int | None
    bytes: int | None
    tables: Iterable[SnapshotTableRecord]
    sets: Iterable[GroupingSetRecord] = ()
    facts: Mapping[str, Any] | None = None
    plan: Mapping[str, Any] | None = None
    location: str | None = None
    unchanged: bool = False
    followed: Followed | None = None


@dataclass(frozen=True)
class TableUsage:
    """Which versions of a cache's table may be read still.

    Args:
        oldest: The least version that was served at some moment or later; None if none was.
        newest: The version published last.
        failed: The last refresh that had ended by then without publishing.
    """

    oldest: int | None
    newest: int | None
    failed: str | None


@dataclass(frozen=True)
class SnapshotRecord:
    """A refresh run and the base versions that it read."""

    run: RefreshRunRecord
    tables: tuple[SnapshotTableRecord, ...]

    @property
    def read_at(self) -> datetime:
        """When the base versions were read, at the earliest: each commit that it lacks came after
        that. A run that publishes what one before it has written says when that one began."""
        told = self.run.facts.get(READ_AT)
        return self.run.started_at if told is None else datetime.fromisoformat(told)

    @property
    def states(self) -> dict[str, BaseState]:
        """The states that were read, by location, of the tables of which they are known."""
        return {
            table.location: table.state
            for table in self.tables
            if table.table_id is not None and table.version is not None
        }


@dataclass(frozen=True)
class JoinSide:
    """One table of a record-preserving join."""

    name: str
    location: str
    table_id: str | None


@dataclass(frozen=True)
class JoinRecord:
    """A record-preserving join: each row of `left` finds exactly one row of `right` where it
    `finds_each` (INNER JOIN), else one or none (LEFT JOIN).

    `validated` says whether the declaration asked for validation (it is False after
    NOT VALIDATED); `state` is what the last validation found, of the tables in the states
    `validated_versions`, read under the settings `validated_under` (those that can change rows;
    None where an earlier release did not note them).
    """

    name: str
    definition: str
    left: JoinSide
    right: JoinSide
    keys: tuple[tuple[str, str], ...]
    id: str = field(default_factory=new_id)
    validated: bool = True
    state: JoinState = JoinState.NOT_VALIDATED
    message: str | None = None
    validated_versions: Mapping[str, BaseState] = field(default_factory=dict)
    validated_at: datetime | None = None
    created_at: datetime | None = None
    finds_each: bool = True
    validated_under: Mapping[str, str] | None = None

    @property
    def kind(self) -> Literal["INNER", "LEFT"]:
        """The join that keeps each row exactly once, as SQL spells it."""
        return kind_of_join(self.finds_each)

    @property
    def telling(self) -> tuple[JoinSide, ...]:
        """The tables whose rows say whether it holds: of a LEFT JOIN the joined one alone."""
        return (self.left, self.right) if self.finds_each else (self.right,)

    def as_fact(self, *, validated: bool = True) -> RecordPreservingJoin:
        """The join as the matcher knows it.

        Args:
            validated: Whether it was found to hold where the matcher is to rely on it.
        """
        keys = tuple((left, right) for left, right in self.keys)
        places = (self.left.location, self.right.location)
        return RecordPreservingJoin(self.name, *places, keys, validated, self.finds_each)


@dataclass(frozen=True)
class RestrictedTable:
    """A base table that no cache answers for anyone not granted; its name is only shown."""

    id: str
    name: str
    location: str
    table_id: str | None
    restricted_by: str
    restricted_at: datetime


# Who is granted on a cache that nobody narrowed, where past grants are told; no principal's name.
EVERYBODY: Final = ""


@dataclass(frozen=True)
class DecisionRecord:
    """One decision about a query; `local` if its rows were computed without a Spark job. `filters`
    says by which columns caches were read (`serving.logged_filters`); None if nobody noted that."""

    at: datetime
    session_id: str
    query_hash: str
    outcome: Outcome
    caches: tuple[str, ...] = ()
    grouping_set: str | None = None
    reasons: tuple[Json, ...] = ()
    millis: float = 0.0
    id: int | None = None
    principal: str | None = None
    local: bool = False
    filters: tuple[Json, ...] | None = None


@dataclass(frozen=True)
class TokenRecord:
    """A bearer token, without its secret."""

    id: str
    principal: str
    role: Role
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None


@dataclass(frozen=True)
class Repeated:
    """What is known of a request under an idempotency key.

    Args:
        is_new: Nobody has sent this key before: carry the request out, then store its answer.
        same: The request is the one that the key was first sent with.
        status: The answer's status; None while the first request is being carried out.
        body: The answer's body.
        again: Whoever carried it out before was cut off: some of it may be done.
    """

    is_new: bool
    same: bool = True
    status: int | None = None
    body: Json | None = None
    again: bool = False


@dataclass(frozen=True)
class LeaseRecord:
    """Who refreshes a cache now, if anyone."""

    cache_id: str
    holder: str | None
    token: int
    expires_at: datetime | None
