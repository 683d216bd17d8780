"""Statements on the wire: what is asked for, and how it stands."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from cachemgr.api.models import MAX_SQL, _Body, _Model
from cachemgr.metastore.statement_records import StatementRecord
from cachemgr.secrets import masked_sql
from cachemgr.vocabulary import StatementState


class NewStatement(_Body):
    """A query whose rows are wanted, or a change of rows."""

    sql: Annotated[str, Field(min_length=1, max_length=MAX_SQL)]
    catalog: Annotated[str | None, Field(min_length=1, max_length=255)] = None
    schema_name: Annotated[str | None, Field(alias="schema", min_length=1, max_length=255)] = None
    settings: Annotated[
        dict[str, str],
        Field(
            max_length=1000,
            description="Settings of Spark that may change rows, such as the time zone; those left "
            "out have the service's values.",
        ),
    ] = Field(default_factory=dict)
    max_rows: Annotated[
        int | None, Field(ge=1, le=10**12, description="No more rows than that; all if left out.")
    ] = None
    timeout_seconds: Annotated[
        float | None, Field(gt=0, description="How long it may run; the service's own at most.")
    ] = None
    keep_seconds: Annotated[
        float | None,
        Field(gt=0, description="How long its result is kept; the service's own at most."),
    ] = None
    wait_seconds: Annotated[
        float, Field(ge=0, le=60, description="Answer later, once it is over.")
    ] = 0


class StatementColumn(_Model):
    """A column of a result, with Spark's type as its JSON has it."""

    name: str
    type: Any


class StatementError(_Model):
    """Why there is no result."""

    type: str | None
    message: str | None


class StatementWrite(_Model):
    """What a statement writes to."""

    table: str
    version: Annotated[
        int | None,
        Field(description="That it has made; none before, and where there was nothing to change."),
    ]


class Statement(_Model):
    """A statement, and how it stands."""

    id: str
    state: StatementState
    sql: str
    principal: str
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    expires_at: Annotated[
        datetime | None, Field(description="Until when its result is kept; for its readers longer.")
    ] = None
    rows: int | None = None
    bytes: int | None = None
    files: int | None = None
    truncated: Annotated[
        bool | None, Field(description="Whether the query has more rows than maxRows.")
    ] = None
    ordered: bool | None = None
    columns: list[StatementColumn] | None = None
    caches: Annotated[
        list[str] | None,
        Field(description="The caches that answered a query; none if nothing did."),
    ] = None
    written: Annotated[
        StatementWrite | None,
        Field(
            description="The table that a statement writes to, from the moment when Spark has it."
        ),
    ] = None
    error: StatementError | None = None

    @classmethod
    def of(cls, record: StatementRecord, reader: str) -> Statement:
        """As its principal and operators see it; what an error says quotes rows, and is for him.

        Args:
            record: The statement.
            reader: Who is told.
        """
        result = record.result or {}
        writes = "table" in result
        said = record.error if record.principal == reader else None
        failed = record.error_code is not None or record.error is not None
        return cls.model_validate(
            {
                "id": record.id,
                "state": record.state,
                "sql": masked_sql(record.asked.text),
                "principal": record.principal,
                "created_at": record.created_at,
                "started_at": record.started_at,
                "finished_at": record.finished_at,
                "expires_at": record.expires_at,
                **{name: result.get(name) for name in _OF_RESULT},
                "caches": list(record.hits) if result and not writes else None,
                "written": {n: result.get(n) for n in ("table", "version")} if writes else None,
                "error": {"type": record.error_code, "message": said} if failed else None,
            }
        )


_OF_RESULT = ("rows", "bytes", "files", "truncated", "ordered", "columns")


class StatementList(_Model):
    """Statements, newest first."""

    statements: list[Statement]
    next_page_token: str | None


class StatementFile(_Model):
    """A Parquet file of a result: its columns are called c0, c1, …."""

    number: int
    rows: int
    bytes: int
    href: str


class StatementFiles(_Model):
    """The files of a result in the order of its rows."""

    columns: list[StatementColumn]
    files: list[StatementFile]
