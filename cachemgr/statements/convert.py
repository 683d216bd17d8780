"""Between statements, as parsed, and records, as the metastore keeps them. Decides nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cachemgr.ddl.statements import (
    CreateRelationalCache,
    Freshness,
    QualifiedName,
    RefreshPolicy,
    SelectText,
)
from cachemgr.metastore.records import CacheRecord
from scheduler.triggers import Cron, Every, OnCommit, OnDemand, TargetLag, Trigger

LOCATION_GIVEN = "location"


def trigger_json(trigger: Trigger) -> dict[str, Any]:
    """A refresh trigger as the metastore keeps it."""
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


def trigger_of(data: Mapping[str, Any]) -> Trigger:
    """The inverse of `trigger_json`.

    Raises:
        ValueError: The kind is unknown.
    """
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


def policy_fields(policy: RefreshPolicy) -> dict[str, Any]:
    """The record's fields of a REFRESH clause."""
    return {
        "refresh_trigger": trigger_json(policy.trigger),
        "refresh_mode": policy.mode,
    }


def freshness_fields(freshness: Freshness) -> dict[str, Any]:
    """The record's fields of a freshness clause."""
    return {
        "freshness": freshness.kind,
        "max_staleness_seconds": freshness.max_staleness_seconds,
    }


def policy_of(cache: CacheRecord) -> RefreshPolicy:
    """The REFRESH clause of a stored cache."""
    return RefreshPolicy(trigger_of(cache.refresh_trigger), cache.refresh_mode)


def freshness_of(cache: CacheRecord) -> Freshness:
    """The freshness clause of a stored cache."""
    return Freshness(cache.freshness, cache.max_staleness_seconds)


def create_statement(cache: CacheRecord) -> CreateRelationalCache:
    """The CREATE that would make this cache again: what SHOW CREATE renders."""
    namespace = tuple(cache.namespace.split(".")) if cache.namespace else ()
    return CreateRelationalCache(
        name=QualifiedName((*namespace, cache.name)),
        select=SelectText(cache.definition),
        comment=cache.comment,
        partitioned_by=cache.partition_by,
        cluster_by=cache.cluster_by,
        location=cache.context.get(LOCATION_GIVEN),
        properties=tuple(cache.properties.items()),
        refresh=policy_of(cache),
        freshness=freshness_of(cache),
        rewrite_enabled=cache.rewrite_enabled,
    )
