"""What requests and answers look like. Names are camelCase on the wire."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from cachemgr.ddl.names import DEFAULT_NAMESPACE, SESSION_CATALOG
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


class Query(_Body):
    """A query, and the session that it is read under."""

    sql: Annotated[str, Field(min_length=1, max_length=MAX_SQL)]
    catalog: Annotated[
        str, Field(min_length=1, max_length=255, description="The current catalog.")
    ] = SESSION_CATALOG
    schema_name: Annotated[
        str,
        Field(alias="schema", min_length=1, max_length=255, description="The current schema."),
    ] = DEFAULT_NAMESPACE
    settings: Annotated[
        dict[str, str],
        Field(
            max_length=1000,
            description="The session's settings; those left out have the service's values.",
        ),
    ] = Field(default_factory=dict)


class QueryToExplain(Query):
    """A query to explain."""

    candidates: Annotated[
        int,
        Field(ge=0, le=10_000, description="Tell of so many caches, those nearest to the query."),
    ] = 10


class TableAt(_Model):
    """A base table at a version."""

    name: str
    location: str
    table_id: str
    version: int


class TableThen(_Model):
    """A base table at the version that was read of it."""

    table: str
    version: int


class WhyNot(_Model):
    """Why something is not answered from a cache, and what would help."""

    code: str
    detail: str
    suggestion: str


class Rewritten(_Model):
    """The SQL to run instead of a query, or why there is none.

    Its rows are those of the query at the versions in `tables`; `exact` says that these were the
    newest when the request came. `settings` are those that change results, as they were taken.
    """

    hit: bool
    sql: str | None
    caches: list[str]
    exact: bool
    tables: list[TableAt]
    reasons: list[WhyNot]
    settings: dict[str, str]


class Considered(_Model):
    """A view of a cache, and what became of it; `cost` is in rows to read and work on them."""

    cache: str
    grouping_set: list[str] | None
    outcome: str
    cost: float | None
    reasons: list[WhyNot]


class Behind(_Model):
    """A cache that answers as of an earlier moment, as its MAX STALENESS allows (null: any)."""

    cache: str
    read_at: datetime
    max_staleness_seconds: int | None
    tables: list[TableThen]
    detail: str


class Explained(_Model):
    """Which cache would answer a query, and why the others would not.

    `behind` has the caches that do not show the tables as they are now. `steps` are the
    compensations, `joins` the record-preserving joins that are relied on, `version` that of this
    form, which EXPLAIN REWRITE FORMAT JSON and the offline explain have too.
    """

    hit: bool
    caches: list[str]
    grouping_set: str | None
    rewritten_sql: str | None
    steps: list[str]
    joins: list[str]
    unvalidated_joins: list[str]
    behind: list[Behind]
    exact: bool
    tables: list[TableAt]
    reasons: list[WhyNot]
    candidates: list[Considered]
    settings: dict[str, str]
    version: int


class Decision(_Model):
    """What was decided about a query."""

    id: int
    at: datetime
    session_id: str
    query_hash: str
    outcome: str
    caches: list[str]
    grouping_set: str | None
    reasons: list[dict[str, Any]]
    millis: float
    principal: str | None


class ReasonCount(_Model):
    """One reason of misses: in how many decisions, and what it said last."""

    code: str
    count: int
    latest_at: datetime
    detail: str


class Why(_Model):
    """The decisions that concern a cache, added up."""

    hits: Annotated[
        int, Field(description="Queries that it answered, or would have where they were explained.")
    ]
    misses: Annotated[
        int, Field(description="Those with a part of its tables that no cache answered.")
    ]
    reasons: list[ReasonCount]
    latest: list[Decision]


class DecisionList(_Model):
    """Decisions, newest first."""

    decisions: list[Decision]


class CacheDefinition(_Body):
    """A cache with every clause, as export writes it and apply reads it."""

    name: Annotated[str, Field(min_length=1, max_length=512)]
    definition: Annotated[str, Field(min_length=1, max_length=MAX_SQL)]
    comment: str | None = None
    partitioned_by: list[str] = []
    cluster_by: list[str] = []
    location: str | None = None
    properties: dict[str, str] = {}
    refresh: Annotated[str, Field(max_length=500)] = "ON DEMAND AUTO"
    freshness: Annotated[str, Field(max_length=200)] = "STRICT"
    rewrite_enabled: bool = True
    paused: bool = False
    grants: Annotated[
        list[str] | None,
        Field(description="Who may use it; null leaves that as it is, at first to everybody."),
    ] = None
    catalog: str = SESSION_CATALOG
    catalog_schema: Annotated[str, Field(alias="schema")] = DEFAULT_NAMESPACE
    settings: Annotated[
        dict[str, str] | None,
        Field(description="spark.sql.* settings that it is computed under; null for the service's"),
    ] = None


class JoinDefinition(_Body):
    """A record-preserving join by its DDL."""

    name: Annotated[str, Field(min_length=1, max_length=512)]
    ddl: Annotated[str, Field(min_length=1, max_length=MAX_SQL)]


class Definitions(_Body):
    """All definitions, without any state."""

    version: Literal[1] = 1
    caches: Annotated[list[CacheDefinition], Field(max_length=10_000)] = []
    joins: Annotated[list[JoinDefinition], Field(max_length=10_000)] = []


class Wanted(_Body):
    """Definitions to apply."""

    definitions: Definitions
    prune: Annotated[bool, Field(description="Also drop what the document does not name.")] = False


class FieldChange(_Model):
    """One field of a definition."""

    field: str
    before: Any
    after: Any


class Change(_Model):
    """One thing that would change, or was changed."""

    kind: Literal["cache", "join"]
    name: str
    action: Literal["CREATE", "CHANGE", "REPLACE", "DROP"]
    fields: list[FieldChange]
    outcome: Literal["PLANNED", "DONE", "FAILED", "NOT_TRIED"]
    message: str | None


class ChangeList(_Model):
    """Changes in their order; none if the definitions are true already."""

    changes: list[Change]


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
