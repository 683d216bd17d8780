"""What requests and answers look like. Names are camelCase on the wire."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from cachemgr.vocabulary import SparkState

MAX_SQL = 1_000_000
RefreshState = Literal["RUNNING", "PUBLISHED", "UNCHANGED", "FAILED", "SUPERSEDED", "CANCELLED"]


class _Model(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, from_attributes=True)


class _Body(_Model):
    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", strict=True
    )


class ErrorBody(_Model):
    """What went wrong."""

    type: str
    message: str
    code: int
    request_id: str | None


class Error(_Model):
    """The one body of all errors."""

    error: ErrorBody


class Trigger(_Model):
    """When a cache is refreshed."""

    kind: Literal["ON_DEMAND", "ON_COMMIT", "TARGET_LAG", "EVERY", "CRON"]
    seconds: int | None = None
    at_most_every_seconds: int | None = None
    expression: str | None = None
    time_zone: str | None = None


class Status(_Model):
    """Where a cache stands; `combined` is the word to watch."""

    definition: str
    refresh: str
    availability: str
    combined: str


class SnapshotTable(_Model):
    """A base table at the version that the published refresh read."""

    name: str
    location: str
    version: int | None


class Published(_Model):
    """The snapshot that a cache serves from."""

    refresh_id: str
    cache_version: int | None
    rows: int | None
    bytes: int | None
    finished_at: datetime | None
    sparks: Annotated[list[str], Field(description="The minors of Spark that computed its rows.")]
    tables: list[SnapshotTable]


class LastRun(_Model):
    """The latest refresh of a cache that does not wait any more, whatever came of it."""

    state: RefreshState
    started_at: datetime
    finished_at: datetime | None


class Cache(_Model):
    """A relational cache."""

    id: str
    name: str
    namespace: str
    comment: str | None
    definition: str
    ddl: str
    depends_on: list[str]
    owner: str | None
    version: int
    created_at: datetime | None
    updated_at: datetime | None
    rewrite_enabled: bool
    paused: bool
    paused_because: str | None
    trigger: Trigger
    refresh_mode: str
    freshness: str
    max_staleness_seconds: int | None
    status: Status
    damaged: Annotated[str | None, Field(description="What is wrong with its files.")] = None
    published: Published | None
    last_run: LastRun | None
    refreshing: Annotated[
        Literal["PENDING", "RUNNING"] | None,
        Field(description="Whether a refresh waits for a worker, or runs."),
    ]
    next_due_at: Annotated[
        datetime | None,
        Field(description="Past if it is due and nobody has asked for the refresh yet."),
    ]
    narrowed: bool
    grants: Annotated[
        list[str] | None,
        Field(description="Who may use it, if it is narrowed and an admin reads it."),
    ] = None


class CacheList(_Model):
    """A page of caches."""

    caches: list[Cache]
    next_page_token: str | None


class NewCache(_Body):
    """A cache by its DDL."""

    ddl: Annotated[str, Field(min_length=1, max_length=MAX_SQL)]


class CacheChange(_Body):
    """What to change of a cache, if it still has this version."""

    version: Annotated[int, Field(ge=1)]
    rewrite_enabled: bool | None = None
    paused: bool | None = None
    refresh: Annotated[
        str | None, Field(max_length=500, description="A REFRESH clause: EVERY 1 HOUR AUTO.")
    ] = None
    freshness: Annotated[
        str | None, Field(max_length=200, description="A clause: MAX STALENESS INTERVAL 1 HOUR.")
    ] = None


class NewRefresh(_Body):
    """How to refresh."""

    mode: Literal["AUTO", "FULL", "INCREMENTAL", "INCREMENTAL_ONLY"] | None = None


class Refresh(_Model):
    """A refresh that waits, runs or is over."""

    id: str
    cache: str
    state: Literal["PENDING", RefreshState]
    mode: str | None
    reason: str
    origin: str
    requested_by: str | None
    requested_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    holder: str | None
    cancel_requested: bool
    cache_version: int | None
    rows: int | None
    bytes: int | None
    error: str | None
    way: Annotated[
        str | None,
        Field(
            description="The way taken: FULL, APPEND, PARTIALS, REPLACE, UNCHANGED, RESTORE, JOINS "
            "or ADOPT; null before one is chosen."
        ),
    ] = None
    code: Annotated[
        str | None,
        Field(
            description="Why everything was computed, or why INCREMENTAL ONLY failed: a code of "
            "docs/refresh.md."
        ),
    ] = None
    detail: Annotated[str | None, Field(description="What the code speaks of.")] = None
    cure: Annotated[
        str | None, Field(description="What to do about the code; null if nothing.")
    ] = None
    seconds: Annotated[float | None, Field(description="From its start to its end.")] = None
    rows_written: Annotated[
        int | None, Field(description="Rows that this run wrote; `rows` are those of the cache.")
    ] = None
    bytes_written: Annotated[int | None, Field(description="The bytes of these.")] = None
    changed_rows: Annotated[
        int | None,
        Field(
            description="Rows that were appended to base tables since the refresh before; null "
            "where others went as well."
        ),
    ] = None
    changed_bytes: Annotated[
        int | None, Field(description="Bytes of the base tables' files that came and went.")
    ] = None
    change_estimate: Annotated[
        int | None,
        Field(
            description="What adding the change was expected to cost, in bytes; null where there "
            "was no choice."
        ),
    ] = None
    full_estimate: Annotated[
        int | None, Field(description="What a full refresh was expected to cost, likewise.")
    ] = None
    change_seconds: Annotated[
        float | None,
        Field(
            description="How long adding the change was expected to take, by past refreshes of the "
            "cache; null where there was no choice or none of them tells."
        ),
    ] = None
    full_seconds: Annotated[
        float | None,
        Field(description="How long a full refresh was expected to take, likewise."),
    ] = None


class RefreshList(_Model):
    """A page of refreshes, newest first."""

    refreshes: list[Refresh]
    next_page_token: str | None


class Join(_Model):
    """A record-preserving join."""

    name: str
    kind: Annotated[
        Literal["INNER", "LEFT"],
        Field(description="INNER: each row finds exactly one; LEFT: one or none."),
    ]
    definition: str
    state: str
    validated: bool
    message: str | None
    validated_at: datetime | None


class JoinList(_Model):
    """All record-preserving joins."""

    joins: list[Join]


class NewJoin(_Body):
    """A record-preserving join by its DDL."""

    ddl: Annotated[str, Field(min_length=1, max_length=MAX_SQL)]


class Info(_Model):
    """What answers here."""

    version: str
    schema_version: str
    revision: int


class Health(_Model):
    """Whether the process lives, and whether it can serve."""

    status: Literal["ok", "unavailable"]
    detail: str | None = None
    spark: Annotated[
        SparkState | None,
        Field(description="The Spark of this process, which the first who needs it starts."),
    ] = None
