"""What a person declares of a cache: the clauses of its CREATE, as one object.

Statements carry it, the metastore stores it, and SHOW CREATE, DESCRIBE, REST and the definitions
file are made from it. How each clause is spelled is in `cachemgr.ddl.cache_clauses`. A cache's name
and SELECT stand beside it, since a statement has them as they were written, and a stored cache as
they were resolved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from cachemgr.secrets import masked, masked_properties
from cachemgr.vocabulary import FreshnessKind, RefreshMode
from scheduler.triggers import (
    Cron,
    Every,
    OnCommit,
    OnDemand,
    TargetLag,
    Trigger,
    check_seconds,
)


@dataclass(frozen=True, slots=True)
class UnreadableTrigger:
    """A stored trigger that means nothing here: of another release, or damaged.

    Args:
        data: As it is stored.
        why: What is wrong with it.
    """

    data: Mapping[str, Any]
    why: str


@dataclass(frozen=True, slots=True)
class RefreshPolicy:
    """The REFRESH clause: when, and how."""

    trigger: Trigger | UnreadableTrigger = field(default_factory=OnDemand)
    mode: RefreshMode = RefreshMode.AUTO


@dataclass(frozen=True, slots=True)
class Freshness:
    """A freshness promise; seconds belong to MAX_STALENESS and to it alone."""

    kind: FreshnessKind = FreshnessKind.STRICT
    max_staleness_seconds: int | None = None

    def __post_init__(self) -> None:
        check_seconds(self.max_staleness_seconds)
        if (self.kind is FreshnessKind.MAX_STALENESS) != (self.max_staleness_seconds is not None):
            raise ValueError(f"{self.kind.value} with {self.max_staleness_seconds} seconds")


@dataclass(frozen=True, slots=True)
class CacheSpec:
    """The clauses of a cache.

    Attributes:
        comment: COMMENT.
        partitioned_by: PARTITIONED BY.
        cluster_by: CLUSTER BY.
        location: LOCATION, as it was given; None for the root of whoever created it.
        properties: TBLPROPERTIES.
        refresh: REFRESH.
        freshness: STRICT or MAX STALENESS.
        rewrite_enabled: ENABLE or DISABLE REWRITE.
    """

    comment: str | None = None
    partitioned_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    location: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    refresh: RefreshPolicy = field(default_factory=RefreshPolicy)
    freshness: Freshness = field(default_factory=Freshness)
    rewrite_enabled: bool = True

    @property
    def texts(self) -> dict[str, str]:
        """What is free text in it, by the clause: where a credential may stand.

        >>> CacheSpec(comment="sales by day").texts
        {'COMMENT': 'sales by day'}
        """
        found = {name.upper(): getattr(self, name) for name in SPEC_FIELDS}
        return {clause: value for clause, value in found.items() if isinstance(value, str)}

    def masked(self) -> CacheSpec:
        """As it may be shown: its texts and properties without credentials."""
        texts: Any = {clause.lower(): masked(text) for clause, text in self.texts.items()}
        return replace(self, properties=masked_properties(self.properties), **texts)


SPEC_FIELDS: tuple[str, ...] = tuple(f.name for f in fields(CacheSpec))


def trigger_json(trigger: Trigger | UnreadableTrigger) -> dict[str, Any]:
    """A refresh trigger as the metastore and REST have it.

    Args:
        trigger: The trigger.

    >>> trigger_json(Every(60))
    {'kind': 'EVERY', 'seconds': 60}
    """
    match trigger:
        case OnDemand():
            return {"kind": "ON_DEMAND"}
        case OnCommit(seconds):
            return {"kind": "ON_COMMIT", "at_most_every_seconds": seconds}
        case TargetLag(seconds):
            return {"kind": "TARGET_LAG", "seconds": seconds}
        case Every(seconds):
            return {"kind": "EVERY", "seconds": seconds}
        case Cron(expression, time_zone):
            return {"kind": "CRON", "expression": expression, "time_zone": time_zone}
        case UnreadableTrigger(data):
            return dict(data)


def trigger_of(data: Mapping[str, Any]) -> Trigger | UnreadableTrigger:
    """The inverse of `trigger_json`.

    Args:
        data: What is stored, or came by REST.

    >>> trigger_of({"kind": "WHENEVER"}).why
    "unknown refresh trigger 'WHENEVER'"
    """
    try:
        return _readable(data)
    except (ValueError, KeyError, TypeError) as error:
        return UnreadableTrigger(dict(data), str(error) or type(error).__name__)


def _readable(data: Mapping[str, Any]) -> Trigger:
    match data.get("kind"):
        case "ON_DEMAND":
            return OnDemand()
        case "ON_COMMIT":
            return OnCommit(data.get("at_most_every_seconds"))
        case "TARGET_LAG":
            return TargetLag(int(data["seconds"]))
        case "EVERY":
            return Every(int(data["seconds"]))
        case "CRON":
            return Cron(str(data["expression"]), data.get("time_zone"))
        case kind:
            raise ValueError(f"unknown refresh trigger {kind!r}")


def freshness_of(kind: FreshnessKind, max_staleness_seconds: int | None) -> Freshness:
    """A freshness promise as it is stored. One that contradicts itself promises nothing.

    Args:
        kind: The kind.
        max_staleness_seconds: The bound that stands beside it.

    >>> freshness_of(FreshnessKind.MAX_STALENESS, None)
    Freshness(kind=<FreshnessKind.STRICT: 'STRICT'>, max_staleness_seconds=None)
    """
    try:
        return Freshness(kind, max_staleness_seconds)
    except ValueError:
        return Freshness(FreshnessKind.STRICT)
