"""The catalog and the decisions of sessions on the wire; see `cachemgr.serving.wire`."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, Literal

from pydantic import Field, field_validator

from cachemgr.api.models import _Body, _Model
from cachemgr.api.timestamps import Moment
from cachemgr.metastore.records import DecisionRecord
from cachemgr.serving.logged_filters import MOST_COLUMNS
from cachemgr.serving.wire import MAX_BATCH, MAX_DETAIL, MAX_NAMES, MAX_PARTS, MAX_REASONS
from cachemgr.vocabulary import Outcome
from matcher.model.message_codec import message_of

Name = Annotated[str, Field(max_length=512)]


class ServedSet(_Model):
    """The size of one grouping set."""

    grouping_id: int
    rows: int | None
    bytes: int | None


class ServedTable(_Model):
    """A base table at the version that a snapshot read."""

    name: str
    location: str
    table_id: str | None
    version: int | None
    committed_ms: int | None
    commit_id: Annotated[
        str | None,
        Field(
            description="The commit that made that version: its transaction id, or a hash of its "
            "file. Empty if only a checkpoint was left; null in what was stored before."
        ),
    ]
    columns: Annotated[
        str | None,
        Field(description="JSON: what the columns that the cache reads were; null likewise."),
    ]


class ServedSnapshot(_Model):
    """The snapshot that a cache serves from."""

    refresh_id: str
    cache_version: int | None
    read_at: datetime
    facts: dict[str, Any]
    tables: list[ServedTable]


class ServedCache(_Model):
    """All that a session needs of a cache to match against it."""

    id: str
    revision: int
    namespace: str
    name: str
    location: str
    partition_by: list[str]
    settings: dict[str, str]
    freshness: Literal["STRICT", "MAX_STALENESS", "UNLIMITED"]
    max_staleness_seconds: int | None
    rewrite_enabled: bool
    damaged: Annotated[
        str | None, Field(description="What is wrong with its files; it answers nothing then.")
    ] = None
    granted: Annotated[bool, Field(description="The principal has a grant on it.")]
    plan: dict[str, Any] | None
    grouping_sets: list[ServedSet]
    published: ServedSnapshot | None


class ServedSide(_Model):
    """One table of a record-preserving join."""

    name: str
    location: str
    table_id: str | None


class ServedJoin(_Model):
    """A record-preserving join."""

    name: str
    left: ServedSide
    right: ServedSide
    keys: list[list[str]]
    validated: bool
    state: str
    validated_versions: dict[str, list[str | int | None]]
    finds_each: Annotated[
        bool, Field(description="False of a LEFT JOIN: a row finds one row or none.")
    ]
    validated_under: Annotated[
        dict[str, str] | None,
        Field(description="The settings under which the tables were read when it was validated."),
    ] = None


class Catalog(_Model):
    """A page of what a principal may use. Who has read to the page without a nextPageToken stands
    at its revision."""

    catalog_version: str
    epoch: Annotated[str, Field(description="Revisions of two epochs do not compare.")]
    revision: int
    principal: str
    full: Annotated[bool, Field(description="This is everything, and no change.")]
    caches: list[ServedCache]
    gone: Annotated[
        list[str],
        Field(
            description="The SHA-256 of the ids of caches that were dropped, or that the principal "
            "may not use: the id of a cache names the folder of its files."
        ),
    ]
    restricted: Annotated[
        dict[str, str],
        Field(
            description="Places, table ids and the SHA-256 of cache ids that are restricted; whose "
            "table it is"
        ),
    ]
    joins: Annotated[
        list[ServedJoin],
        Field(
            description="All of them; of restricted tables those that a cache reads which the "
            "principal may use."
        ),
    ]
    digest: Annotated[
        str,
        Field(
            description="SHA-256 over a line `id revision` for each live cache, sorted by id: of "
            "whoever stands at this revision and has another, something is amiss."
        ),
    ]
    next_page_token: str | None


# What a session keeps while nobody takes it; the rest is the fault of a clock, or made up.
OLDEST: Final = timedelta(days=1)


class WhyMissed(_Body):
    """A reason."""

    code: Annotated[str, Field(max_length=64)]
    detail: Annotated[str, Field(max_length=MAX_DETAIL)]
    tables: Annotated[
        list[Annotated[str, Field(max_length=MAX_DETAIL)]],
        Field(
            default_factory=list,
            max_length=MAX_NAMES,
            description="Places of the tables that the part reads which was not answered.",
        ),
    ]
    parts: Annotated[
        dict[str, Any] | None,
        Field(
            description="The template of the text and its arguments by kind; none, or none that "
            "can be read, leaves the text alone."
        ),
    ] = None

    @field_validator("parts")
    @classmethod
    def _readable(cls, parts: dict[str, Any] | None) -> dict[str, Any] | None:
        """Parts that are no message, or a long one, are not stored."""
        try:
            if parts is None or len(json.dumps(parts)) > MAX_PARTS:
                return None
            str(message_of(parts))
        except (KeyError, TypeError, ValueError, AttributeError):
            return None
        return parts


class ColumnFilter(_Body):
    """How one column of a cache was compared with constants, without any of them."""

    column: Name
    kind: Literal["points", "range"]
    points: Annotated[int | None, Field(ge=0, le=1_000_000_000)] = None
    width: Annotated[float | None, Field(ge=0, allow_inf_nan=False)] = None


class CacheFilter(_Body):
    """By which columns a cache was read."""

    cache: Name
    columns: Annotated[list[ColumnFilter], Field(max_length=MOST_COLUMNS)]


class NewDecision(_Body):
    """What was decided about a query."""

    at: Annotated[Moment, Field(strict=False)]
    session_id: Annotated[str, Field(max_length=128)]
    query_hash: Annotated[str, Field(max_length=64)]
    outcome: Annotated[Outcome, Field(strict=False)]
    caches: Annotated[list[Name], Field(default_factory=list, max_length=MAX_NAMES)]
    grouping_set: Annotated[str | None, Field(max_length=MAX_DETAIL)] = None
    reasons: Annotated[list[WhyMissed], Field(default_factory=list, max_length=MAX_REASONS)]
    millis: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] = 0.0
    local: bool = False
    filters: Annotated[list[CacheFilter] | None, Field(max_length=MAX_NAMES)] = None

    def record(self, principal: str, now: datetime) -> DecisionRecord:
        """As the metastore stores it.

        Args:
            principal: Whose it is.
            now: This moment: none is later, and none much earlier, whatever the sender says.
        """
        return DecisionRecord(
            at=max(now - OLDEST, min(self.at, now)),
            session_id=self.session_id,
            query_hash=self.query_hash,
            outcome=self.outcome,
            caches=tuple(self.caches),
            grouping_set=self.grouping_set,
            reasons=tuple(r.model_dump(exclude_none=True) for r in self.reasons),
            millis=self.millis,
            principal=principal,
            local=self.local,
            filters=None
            if self.filters is None
            else tuple(f.model_dump(exclude_none=True) for f in self.filters),
        )


class DecisionBatch(_Body):
    """Decisions, under an id by which the batch is known when it comes again."""

    batch_id: Annotated[str, Field(min_length=8, max_length=64, pattern="^[A-Za-z0-9_-]+$")]
    decisions: Annotated[list[NewDecision], Field(min_length=1, max_length=MAX_BATCH)]


class DecisionsLogged(_Model):
    """How many were noted."""

    stored: int
    repeated: bool
