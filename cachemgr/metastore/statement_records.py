"""What the metastore hands out and takes of statements that the service runs, and of the tables
that it may read for a principal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from cachemgr.vocabulary import StatementState


@dataclass(frozen=True)
class StatementRequest:
    """A statement that a principal asks the service to run.

    Args:
        principal: Who asks.
        request: A digest (SHA-256, hex) of all that is asked; tells whether a key is used again for
            the same.
        text: The statement.
        timeout_seconds: How long it may run.
        keep_seconds: How long its result is kept after it has finished.
        key: The key under which the principal may send it again; None for none.
        catalog: The catalog that names are looked up in; None for the service's own.
        schema_name: The schema that names are looked up in; None for the catalog's own.
        settings: The Spark settings of the request.
        options: What else is asked; not read here.
    """

    principal: str
    request: str
    text: str
    timeout_seconds: float
    keep_seconds: float
    key: str | None = None
    catalog: str | None = None
    schema_name: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StatementRecord:
    """A statement that the service runs, and how it stands.

    Args:
        id: Its id.
        asked: What was asked for.
        state: Where it stands.
        created_at: When it was submitted.
        secret: 32 random bytes in hex that sign the tokens of its pages; never shown.
        reads_only: Whether it changes nothing; None until it is analysed.
        handed_over: Whether Spark has begun to execute it.
        cancel_requested: Whether somebody has cancelled it.
        cancel_requested_by: Who did so first.
        holder: Who runs it, or ran it last.
        fencing_token: Of the one who runs it; grows each time that it is taken.
        lease_until: When its lease ends unless it is renewed.
        attempts: How often it was taken and not given back in an orderly way.
        started_at: When it was taken last.
        finished_at: When it was over; never before it began, though a clock was set back.
        expires_at: Until when its result is kept.
        read_until: Until when somebody reads its result.
        error_code: Why it failed or was cancelled: the code.
        error: The same in words.
        result: What its process said of the result; its `bytes` count for the quota. Of one that
            writes, as long as there is none, what it writes to.
        hits: The caches that answered it.
    """

    id: str
    asked: StatementRequest
    state: StatementState
    created_at: datetime
    secret: str = field(repr=False)
    reads_only: bool | None = None
    handed_over: bool = False
    cancel_requested: bool = False
    cancel_requested_by: str | None = None
    holder: str | None = None
    fencing_token: int = 0
    lease_until: datetime | None = None
    attempts: int = 0
    started_at: datetime | None = None
    finished_at: datetime | None = None
    expires_at: datetime | None = None
    read_until: datetime | None = None
    error_code: str | None = None
    error: str | None = None
    result: Mapping[str, Any] | None = None
    hits: tuple[Any, ...] = ()

    @property
    def principal(self) -> str:
        """Who asked for it."""
        return self.asked.principal

    @property
    def times_out_at(self) -> datetime | None:
        """When it will have run for as long as it may; None while it does not run."""
        if self.started_at is None or self.state is not StatementState.RUNNING:
            return None
        return self.started_at + timedelta(seconds=self.asked.timeout_seconds)


def commit_mark(statement_id: str) -> str:
    """What the commit of a statement that writes says as its userMetadata.

    Args:
        statement_id: The statement's id.
    """
    return f"cachemgr statement {statement_id}"


@dataclass(frozen=True)
class Renewed:
    """A statement whose lease was renewed.

    Args:
        statement: The statement, which is still the caller's.
        at: The moment of the renewal, by the clock that all its moments are of.
    """

    statement: StatementRecord
    at: datetime

    @property
    def cancel_requested(self) -> bool:
        """Whether somebody has cancelled it: whoever runs it stops."""
        return self.statement.cancel_requested

    @property
    def is_timed_out(self) -> bool:
        """Whether it has run for as long as it may."""
        end = self.statement.times_out_at
        return end is not None and end <= self.at


@dataclass(frozen=True)
class SelectGrant:
    """A base table that the service may read for a principal; its name is only shown."""

    place: str
    principal: str
    table_name: str
    granted_at: datetime
