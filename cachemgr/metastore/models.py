"""The tables of the metastore. Rows of these classes never leave `cachemgr.metastore`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Identity,
    Index,
    Integer,
    MetaData,
    String,
    Text,
    UniqueConstraint,
    false,
    text,
    true,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator

# Not alembic's default name: the database may be shared with another application's migrations.
VERSION_TABLE = "cachemgr_schema_version"


class UtcDateTime(TypeDecorator[datetime]):
    """An aware datetime, stored in UTC.

    SQLite drops the zone and would hand back naive datetimes, which compare wrongly with the
    aware ones that PostgreSQL returns; a naive one is refused on the way in.
    """

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Refuse a naive value, bring an aware one to UTC."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a datetime without a time zone cannot be stored: {value!r}")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Give the zone back that SQLite does not keep."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    """Names constraints the same way everywhere, so that migrations can name them too."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy reads it from the class
        datetime: UtcDateTime,
        dict[str, Any]: JSON(none_as_null=True),
        list[Any]: JSON(none_as_null=True),
        float: Float(53),
    }


def _cache_id(*, primary_key: bool = False) -> Mapped[str]:
    return mapped_column(
        String(32), ForeignKey("caches.id", ondelete="CASCADE"), primary_key=primary_key
    )


class CacheRow(Base):
    """A relational cache, dropped ones included until their grace is over."""

    __tablename__ = "caches"
    __table_args__ = (
        # Partial: a dropped cache keeps its row for a while, and must not keep its name.
        Index(
            "uq_caches_live_name",
            "namespace_key",
            "name_key",
            unique=True,
            sqlite_where=text("dropped_at IS NULL"),
            postgresql_where=text("dropped_at IS NULL"),
        ),
        Index("ix_caches_revision", "revision"),
    )

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    namespace: Mapped[str] = mapped_column(Text)
    name: Mapped[str] = mapped_column(Text)
    namespace_key: Mapped[str] = mapped_column(Text)
    name_key: Mapped[str] = mapped_column(Text)
    comment: Mapped[str | None] = mapped_column(Text)
    definition: Mapped[str] = mapped_column(Text)
    definition_hash: Mapped[str] = mapped_column(Text)
    context: Mapped[dict[str, Any]]
    settings: Mapped[dict[str, Any]]
    plan: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    plan_version: Mapped[str | None] = mapped_column(Text)
    columns: Mapped[list[Any]]
    partition_by: Mapped[list[Any]]
    cluster_by: Mapped[list[Any]]
    # Ids of the caches that the definition names; NULL as [] (rows older than the column).
    depends_on: Mapped[list[Any] | None] = mapped_column(JSON(none_as_null=True))
    location: Mapped[str] = mapped_column(Text)
    properties: Mapped[dict[str, Any]]
    refresh_trigger: Mapped[dict[str, Any]]
    refresh_mode: Mapped[str] = mapped_column(String(32))
    freshness: Mapped[str] = mapped_column(String(32))
    max_staleness_seconds: Mapped[int | None] = mapped_column(BigInteger)
    rewrite_enabled: Mapped[bool]
    paused: Mapped[bool]
    narrowed: Mapped[bool]
    owner: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    dropped_at: Mapped[datetime | None]
    version: Mapped[int]
    # No foreign key: runs already point at caches, and a circle could not be created at once.
    published_refresh_id: Mapped[str | None] = mapped_column(String(32))
    # What is wrong with its files, so that it answers nothing until a refresh has mended it.
    damaged: Mapped[str | None] = mapped_column(Text)
    # The registry revision of the last change, so that a session loads only what is new to it.
    revision: Mapped[int] = mapped_column(BigInteger)


class GroupingSetRow(Base):
    """One grouping set of a cache as published."""

    __tablename__ = "grouping_sets"

    cache_id: Mapped[str] = _cache_id(primary_key=True)
    grouping_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    ordinal: Mapped[int]
    columns: Mapped[list[Any]]
    rows: Mapped[int | None] = mapped_column(BigInteger)
    bytes: Mapped[int | None] = mapped_column(BigInteger)


class RefreshRunRow(Base):
    """One refresh of a cache."""

    __tablename__ = "refresh_runs"
    __table_args__ = (
        Index(None, "cache_id", "started_at"),
        # A scheduler asks for the last ones of each cache every second.
        Index(None, "cache_id", "fencing_token"),
        Index(None, "cache_id", "state", "fencing_token"),
    )

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    cache_id: Mapped[str] = _cache_id()
    state: Mapped[str] = mapped_column(String(16))
    mode: Mapped[str] = mapped_column(String(32))
    reason: Mapped[str] = mapped_column(Text)
    holder: Mapped[str] = mapped_column(Text)
    fencing_token: Mapped[int] = mapped_column(BigInteger)
    commit_number: Mapped[int | None] = mapped_column(BigInteger)
    parent_version: Mapped[int | None] = mapped_column(BigInteger)
    cache_version: Mapped[int | None] = mapped_column(BigInteger)
    started_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]
    rows: Mapped[int | None] = mapped_column(BigInteger)
    bytes: Mapped[int | None] = mapped_column(BigInteger)
    error: Mapped[str | None] = mapped_column(Text)
    stages: Mapped[list[Any]]
    facts: Mapped[dict[str, Any]]
    plan: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    origin: Mapped[str] = mapped_column(String(16), server_default="STATEMENT")
    requested_by: Mapped[str | None] = mapped_column(Text)
    requested_at: Mapped[datetime | None]
    cancel_requested: Mapped[bool] = mapped_column(server_default=false())


class RefreshRequestRow(Base):
    """A refresh that waits for a worker; the run that it becomes has its id."""

    __tablename__ = "refresh_requests"
    # One for each cache: whoever asks again while one waits is answered with that one.
    __table_args__ = (UniqueConstraint("cache_id"), Index(None, "requested_at"))

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    cache_id: Mapped[str] = _cache_id()
    mode: Mapped[str | None] = mapped_column(String(32))
    origin: Mapped[str] = mapped_column(String(16))
    why: Mapped[str] = mapped_column(Text)
    requested_by: Mapped[str | None] = mapped_column(Text)
    requested_at: Mapped[datetime]


class ScheduleRow(Base):
    """What the scheduler has to remember of a cache besides its runs."""

    __tablename__ = "schedules"

    cache_id: Mapped[str] = _cache_id(primary_key=True)
    # Moves with each refresh that is asked for by schedule: of two schedulers that found the same
    # cache due, one gets to ask.
    epoch: Mapped[int] = mapped_column(BigInteger)
    failures: Mapped[int]
    retry_at: Mapped[datetime | None]
    behind_since: Mapped[datetime | None]
    paused_because: Mapped[str | None] = mapped_column(Text)


class SnapshotTableRow(Base):
    """One base table at the version that a refresh read."""

    __tablename__ = "snapshot_tables"

    refresh_id: Mapped[str] = mapped_column(
        String(32), ForeignKey("refresh_runs.id", ondelete="CASCADE"), primary_key=True
    )
    ordinal: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    name: Mapped[str] = mapped_column(Text)
    location: Mapped[str] = mapped_column(Text)
    table_id: Mapped[str | None] = mapped_column(Text)
    version: Mapped[int | None] = mapped_column(BigInteger)
    commit_timestamp_ms: Mapped[int | None] = mapped_column(BigInteger)
    commit_id: Mapped[str | None] = mapped_column(Text)
    columns: Mapped[str | None] = mapped_column(Text)


class BaseTableRow(Base):
    """A base table under one of its names, as it was last seen."""

    __tablename__ = "base_tables"

    location: Mapped[str] = mapped_column(Text, primary_key=True)
    name: Mapped[str] = mapped_column(Text, primary_key=True)
    table_id: Mapped[str] = mapped_column(Text)
    version: Mapped[int] = mapped_column(BigInteger)
    commit_timestamp_ms: Mapped[int] = mapped_column(BigInteger)
    columns: Mapped[str] = mapped_column(Text)


class JoinRow(Base):
    """A record-preserving join and what is known about it."""

    __tablename__ = "record_preserving_joins"
    __table_args__ = (UniqueConstraint("name_key"),)

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    name_key: Mapped[str] = mapped_column(Text)
    definition: Mapped[str] = mapped_column(Text)
    left: Mapped[dict[str, Any]]
    right: Mapped[dict[str, Any]]
    keys: Mapped[list[Any]]
    validated: Mapped[bool]
    state: Mapped[str] = mapped_column(String(16))
    message: Mapped[str | None] = mapped_column(Text)
    validated_versions: Mapped[dict[str, Any]]
    validated_at: Mapped[datetime | None]
    validated_under: Mapped[dict[str, Any] | None]
    created_at: Mapped[datetime]
    finds_each: Mapped[bool] = mapped_column(server_default=true())


class GrantRow(Base):
    """One principal who may be answered from a cache."""

    __tablename__ = "grants"

    cache_id: Mapped[str] = _cache_id(primary_key=True)
    principal: Mapped[str] = mapped_column(Text, primary_key=True)


class PastGrantRow(Base):
    """Until when a principal could be answered from a cache; the empty one stands for everybody."""

    __tablename__ = "past_grants"

    cache_id: Mapped[str] = _cache_id(primary_key=True)
    principal: Mapped[str] = mapped_column(Text, primary_key=True)
    until: Mapped[datetime]


class RestrictedTableRow(Base):
    """A base table that no cache answers for anyone not granted."""

    __tablename__ = "restricted_tables"
    # one that was replaced at its place has a mark of its own beside that of the table before
    __table_args__ = (UniqueConstraint("location", "table_id"),)

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    location: Mapped[str] = mapped_column(Text)
    table_id: Mapped[str | None] = mapped_column(Text)
    restricted_by: Mapped[str] = mapped_column(Text)
    restricted_at: Mapped[datetime]


class TokenRow(Base):
    """A bearer token of the service; of its secret only a digest is kept."""

    __tablename__ = "tokens"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    principal: Mapped[str] = mapped_column(Text)
    role: Mapped[str] = mapped_column(String(16))
    digest: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class IdempotencyRow(Base):
    """A request that a client may repeat, and the answer that it then gets."""

    __tablename__ = "idempotency_keys"

    principal: Mapped[str] = mapped_column(Text, primary_key=True)
    key: Mapped[str] = mapped_column(String(128), primary_key=True)
    request: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[datetime]
    status: Mapped[int | None]
    body: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))


class StatementRow(Base):
    """A statement that the service runs for a principal, its lease and its result included."""

    __tablename__ = "statements"
    __table_args__ = (
        # Sent again under its key, it is answered with the one that is there; without a key, never.
        UniqueConstraint("principal", "idempotency_key"),
        Index(None, "principal", "created_at"),
        # One for each look: what waits longest, whose lease has ended, what is past its time, what
        # can be forgotten.
        Index(None, "state", "created_at"),
        Index(None, "state", "lease_until"),
        Index(None, "state", "expires_at"),
        Index(None, "state", "finished_at"),
    )

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    principal: Mapped[str] = mapped_column(Text)
    idempotency_key: Mapped[str | None] = mapped_column(String(128))
    request: Mapped[str] = mapped_column(String(64))
    text: Mapped[str] = mapped_column(Text)
    catalog: Mapped[str | None] = mapped_column(Text)
    schema_name: Mapped[str | None] = mapped_column(Text)
    settings: Mapped[dict[str, Any]]
    options: Mapped[dict[str, Any]]
    state: Mapped[str] = mapped_column(String(16))
    # NULL until it is analysed.
    reads_only: Mapped[bool | None]
    handed_over: Mapped[bool]
    cancel_requested: Mapped[bool]
    cancel_requested_by: Mapped[str | None] = mapped_column(Text)
    holder: Mapped[str | None] = mapped_column(Text)
    fencing_token: Mapped[int] = mapped_column(BigInteger)
    lease_until: Mapped[datetime | None]
    attempts: Mapped[int]
    # Signs the tokens of the result's pages.
    secret: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    timeout_seconds: Mapped[float]
    keep_seconds: Mapped[float]
    expires_at: Mapped[datetime | None]
    read_until: Mapped[datetime | None]
    error_code: Mapped[str | None] = mapped_column(String(64))
    error: Mapped[str | None] = mapped_column(Text)
    result: Mapped[dict[str, Any] | None]
    # Those of the result, which are summed up for a principal's quota.
    bytes: Mapped[int | None] = mapped_column(BigInteger)
    hits: Mapped[list[Any]]


class SelectGrantRow(Base):
    """A base table that the service may read for a principal."""

    __tablename__ = "select_grants"

    place: Mapped[str] = mapped_column(Text, primary_key=True)
    principal: Mapped[str] = mapped_column(Text, primary_key=True)
    table_name: Mapped[str] = mapped_column(Text)
    granted_at: Mapped[datetime]


class LeaseRow(Base):
    """Who refreshes a cache now; the token grows with every change of hands."""

    __tablename__ = "leases"

    cache_id: Mapped[str] = _cache_id(primary_key=True)
    holder: Mapped[str | None] = mapped_column(Text)
    token: Mapped[int] = mapped_column(BigInteger)
    expires_at: Mapped[datetime | None]


class CommitNumberRow(Base):
    """The last number given to a Delta commit of a cache."""

    __tablename__ = "commit_numbers"

    cache_id: Mapped[str] = _cache_id(primary_key=True)
    last: Mapped[int] = mapped_column(BigInteger)


class DecisionRow(Base):
    """One decision about a query."""

    __tablename__ = "rewrite_decisions"
    # A batch that is sent again, because its answer was lost, finds itself here.
    __table_args__ = (Index(None, "at"), UniqueConstraint("batch", "position"))

    # SQLite numbers rows by itself for INTEGER alone, not for BIGINT.
    id: Mapped[int] = mapped_column(
        BigInteger().with_variant(Integer, "sqlite"), Identity(), primary_key=True
    )
    at: Mapped[datetime]
    session_id: Mapped[str] = mapped_column(Text)
    query_hash: Mapped[str] = mapped_column(Text)
    outcome: Mapped[str] = mapped_column(String(16))
    caches: Mapped[list[Any]]
    grouping_set: Mapped[str | None] = mapped_column(Text)
    reasons: Mapped[list[Any]]
    millis: Mapped[float]
    principal: Mapped[str | None] = mapped_column(Text)
    batch: Mapped[str | None] = mapped_column(String(64))
    position: Mapped[int | None]
    local: Mapped[bool] = mapped_column(server_default=false())
    filters: Mapped[list[Any] | None] = mapped_column(JSON(none_as_null=True))


class RegistryRevisionRow(Base):
    """The one counter that every change to what sessions match moves."""

    __tablename__ = "registry_revision"

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    revision: Mapped[int] = mapped_column(BigInteger)
    # Another one for each metastore that was made: revisions of two do not compare.
    epoch: Mapped[str] = mapped_column(String(32), server_default="")
