"""How the service tells sessions which caches there are: registry entries, joins and decisions as
plain JSON data, and back.

What matching does not ask for (owners, statements, the history of refreshes) does not travel, and
comes back empty.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final

from cachemgr.access.grants import shown_to
from cachemgr.base_state import BaseState
from cachemgr.cache_spec import CacheSpec, freshness_of
from cachemgr.config.cache_properties import FRESH_HITS, has_fresh_hits
from cachemgr.metastore.column_bounds import BOUNDS, rounded_bounds
from cachemgr.metastore.logged_reasons import PARTS
from cachemgr.metastore.records import (
    CacheRecord,
    DecisionRecord,
    GroupingSetRecord,
    JoinRecord,
    JoinSide,
    RefreshRunRecord,
    SnapshotRecord,
    SnapshotTableRecord,
)
from cachemgr.metastore.registry_records import RegistryEntry
from cachemgr.sparks import SPARKS
from cachemgr.vocabulary import FreshnessKind, JoinState, RunState
from matcher.model.codec import PLAN_VERSION
from matcher.model.message import Text, mapped
from matcher.model.message_codec import message_data, message_of

_FORMAT = 4
CATALOG_VERSION: Final = f"{_FORMAT}.{PLAN_VERSION}"
"""What both sides must agree on: the form of these data, and the meaning of plans in them."""

MAX_BATCH: Final = 500
MAX_NAMES: Final = 100
MAX_REASONS: Final = 100
MAX_DETAIL: Final = 2_000
MAX_PARTS: Final = 4 * MAX_DETAIL
NEVER = datetime.fromtimestamp(0, UTC)


def digest(live: Mapping[str, int]) -> str:
    """What tells two sets of caches apart.

    Args:
        live: Id of each cache to the revision of its last change.
    """
    text = "\n".join(f"{cache_id} {revision}" for cache_id, revision in sorted(live.items()))
    return hashlib.sha256(text.encode()).hexdigest()


def encode_entry(entry: RegistryEntry, principal: str) -> dict[str, Any]:
    """A cache as JSON data for one principal: who else was granted is not told."""
    cache, spec, published = entry.cache, entry.cache.spec, entry.published
    planned = published is not None and published.run.plan is not None
    plan = published.run.plan if published is not None and planned else cache.plan
    return {
        "id": cache.id,
        "revision": cache.revision,
        "namespace": cache.namespace,
        "name": cache.name,
        "location": cache.location,
        "partitionBy": list(spec.partitioned_by),
        "settings": dict(cache.settings),
        "freshness": spec.freshness.kind.value,
        "maxStalenessSeconds": spec.freshness.max_staleness_seconds,
        "rewriteEnabled": spec.rewrite_enabled,
        "freshHits": has_fresh_hits(spec.properties),
        "damaged": cache.damaged,
        "granted": cache.narrowed and bool(shown_to(principal, entry).grants),
        "plan": None if plan is None else dict(plan),
        "groupingSets": [
            {"groupingId": s.grouping_id, "rows": s.rows, "bytes": s.bytes}
            for s in entry.grouping_sets
        ],
        "published": None if published is None else _encode_snapshot(published),
    }


def _encode_snapshot(published: SnapshotRecord) -> dict[str, Any]:
    facts = published.run.facts
    return {
        "refreshId": published.run.id,
        "cacheVersion": published.run.cache_version,
        "readAt": published.read_at.isoformat(),
        "facts": _told(facts),
        "tables": [_encode_table(t) for t in published.tables],
    }


def _told(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What a refresh found that hits ask for. Who is told of a cache may not have read its tables,
    so no value of theirs is among it."""
    found = {k: facts[k] for k in ("base_rows", "base_bytes", SPARKS) if k in facts}
    rounded = rounded_bounds(facts)
    return found | {BOUNDS: rounded} if rounded else found


def _encode_table(table: SnapshotTableRecord) -> dict[str, Any]:
    return {
        "name": table.name,
        "location": table.location,
        "tableId": table.table_id,
        "version": table.version,
        "committedMs": table.commit_timestamp_ms,
        "commitId": table.commit_id,
        "columns": table.columns,
    }


def decode_entry(data: Mapping[str, Any], principal: str) -> RegistryEntry:
    """The inverse of `encode_entry`.

    Args:
        data: What `encode_entry` gave.
        principal: Whom it was sent to.

    Raises:
        KeyError, TypeError, ValueError: It is something else.
    """
    published = None if data["published"] is None else _decode_snapshot(data)
    cache = CacheRecord(
        id=data["id"],
        revision=data["revision"],
        namespace=data["namespace"],
        name=data["name"],
        definition="",
        definition_hash="",
        location=data["location"],
        spec=_decode_spec(data),
        settings=data["settings"],
        damaged=data.get("damaged"),
        narrowed=data["granted"],
        plan=data["plan"] if published is None else None,
        published_refresh_id=None if published is None else published.run.id,
    )
    sets = tuple(
        GroupingSetRecord(s["groupingId"], number, (), rows=s["rows"], bytes=s["bytes"])
        for number, s in enumerate(data["groupingSets"])
    )
    grants = frozenset({principal} if data["granted"] else ())
    return RegistryEntry(cache, sets, published, grants)


def _decode_spec(data: Mapping[str, Any]) -> CacheSpec:
    return CacheSpec(
        partitioned_by=tuple(data["partitionBy"]),
        properties={} if data.get("freshHits", True) else {FRESH_HITS: "false"},
        freshness=freshness_of(FreshnessKind(data["freshness"]), data["maxStalenessSeconds"]),
        rewrite_enabled=data["rewriteEnabled"],
    )


def _decode_snapshot(data: Mapping[str, Any]) -> SnapshotRecord:
    published = data["published"]
    run = RefreshRunRecord(
        id=published["refreshId"],
        cache_id=data["id"],
        state=RunState.PUBLISHED,
        mode="",
        reason="",
        holder="",
        fencing_token=0,
        started_at=datetime.fromisoformat(published["readAt"]),
        cache_version=published["cacheVersion"],
        facts=published["facts"],
        plan=data["plan"],
    )
    tables = tuple(
        SnapshotTableRecord(
            t["name"],
            t["location"],
            t["tableId"],
            t["version"],
            t["committedMs"],
            t["commitId"],
            t["columns"],
        )
        for t in published["tables"]
    )
    return SnapshotRecord(run, tables)


def encode_join(join: JoinRecord) -> dict[str, Any]:
    """A record-preserving join as JSON data."""
    return {
        "name": join.name,
        "left": _encode_side(join.left),
        "right": _encode_side(join.right),
        "keys": [list(pair) for pair in join.keys],
        "validated": join.validated,
        "state": join.state.value,
        "validatedVersions": {p: list(v) for p, v in join.validated_versions.items()},
        "findsEach": join.finds_each,
        "validatedUnder": None if join.validated_under is None else dict(join.validated_under),
    }


def decode_join(data: Mapping[str, Any]) -> JoinRecord:
    """The inverse of `encode_join`.

    Args:
        data: What `encode_join` gave.

    Raises:
        KeyError, TypeError, ValueError: It is something else.
    """
    return JoinRecord(
        name=data["name"],
        definition="",
        left=_decode_side(data["left"]),
        right=_decode_side(data["right"]),
        keys=tuple((left, right) for left, right in data["keys"]),
        id="",
        validated=data["validated"],
        state=JoinState(data["state"]),
        validated_versions={p: BaseState(*v) for p, v in data["validatedVersions"].items()},
        finds_each=data["findsEach"],
        validated_under=data.get("validatedUnder"),  # not told by an earlier release
    )


def _encode_side(side: JoinSide) -> dict[str, Any]:
    return {"name": side.name, "location": side.location, "tableId": side.table_id}


def _decode_side(data: Mapping[str, Any]) -> JoinSide:
    return JoinSide(data["name"], data["location"], data["tableId"])


def encode_decision(decision: DecisionRecord) -> dict[str, Any]:
    """A decision as JSON data, cut to what the service takes."""
    return {
        "at": decision.at.isoformat(),
        "sessionId": _clean(decision.session_id, 128),
        "queryHash": _clean(decision.query_hash, 64),
        "outcome": decision.outcome.value,
        "caches": [_clean(name, 512) for name in decision.caches[:MAX_NAMES]],
        "groupingSet": None
        if decision.grouping_set is None
        else _clean(decision.grouping_set, MAX_DETAIL),
        "reasons": _reasons(decision.reasons),
        "millis": max(0.0, decision.millis),
        # said only where it is so, since a service of an earlier release knows no such field
        **({"local": True} if decision.local else {}),
        **({} if decision.filters is None else {"filters": _filters(decision.filters)}),
    }


def _filters(filters: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "cache": _clean(each["cache"], 512),
            "columns": [c | {"column": _clean(c["column"], 512)} for c in each["columns"]],
        }
        for each in islice(filters, MAX_NAMES)
    ]


def _reasons(reasons: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [_reason(reason) for reason in islice(reasons, MAX_REASONS)]


def _reason(reason: Mapping[str, Any]) -> dict[str, Any]:
    found = {
        "code": _clean(str(reason["code"]), 64),
        "detail": _clean(str(reason["detail"]), MAX_DETAIL),
    }
    if reason.get(PARTS) is None:
        return found
    parts = message_data(mapped(message_of(reason[PARTS]), _without_nul))
    return found | {PARTS: parts} if len(json.dumps(parts)) <= MAX_PARTS else found


def _without_nul(text: Text) -> Text:
    return type(text)(_clean(text.value, MAX_DETAIL))


def _clean(text: str, most: int) -> str:
    # PostgreSQL stores no NUL, and no request may hold one
    return text.replace("\0", "")[:most]
