"""Queries on the wire: to be rewritten or explained, and what was decided about those that ran."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from cachemgr.api.models import MAX_SQL, _Body, _Model
from cachemgr.ddl.names import DEFAULT_NAMESPACE, SESSION_CATALOG


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
    local: Annotated[bool, Field(description="Whether its rows were computed without a Spark job.")]


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
    local_hits: Annotated[
        int, Field(description="Those of them whose rows were computed without a Spark job.")
    ]
    misses: Annotated[
        int, Field(description="Those with a part of its tables that no cache answered.")
    ]
    reasons: list[ReasonCount]
    latest: list[Decision]


class DecisionList(_Model):
    """Decisions, newest first."""

    decisions: list[Decision]
