"""Caches and joins as they may be shown: without credentials that an older release let in.

What is stored stays as it is, since a cache is refreshed and matched by its own text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from cachemgr.metastore.models import CacheRow, RefreshRunRow
from cachemgr.metastore.record_rows import PLAIN_CLAUSES
from cachemgr.metastore.records import CacheRecord, JoinRecord
from cachemgr.secrets import (
    masked,
    masked_properties,
    masked_sql,
    secret_places,
)


def masked_cache(cache: CacheRecord) -> CacheRecord:
    """A cache for showing.

    Args:
        cache: As it is stored.
    """
    return replace(
        cache,
        definition=masked_sql(cache.definition),
        spec=cache.spec.masked(),
        location=masked(cache.location),
        settings=masked_properties(cache.settings),
        damaged=None if cache.damaged is None else masked(cache.damaged),
    )


def masked_join(join: JoinRecord) -> JoinRecord:
    """A record-preserving join for showing.

    Args:
        join: As it is stored.
    """
    left, right = (
        replace(side, name=masked_sql(side.name), location=masked(side.location))
        for side in (join.left, join.right)
    )
    message = None if join.message is None else masked(join.message)
    return replace(
        join, definition=masked_sql(join.definition), left=left, right=right, message=message
    )


def masked_rows(rows: Mapping[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """The rows of a cache as its record beside its table keeps them: what is only shown (comment,
    properties, errors and reasons of refreshes) without credentials. The definition, its plan and
    its place stay: a cache that is rebuilt is refreshed by them, and must give the same rows.

    Args:
        rows: By table, as a dump has them.
    """
    found = {name: [dict(row) for row in values] for name, values in rows.items()}
    for row in found.get(CacheRow.__tablename__, ()):
        for name in PLAIN_CLAUSES & row.keys():
            row[name] = masked(row[name]) if isinstance(row[name], str) else row[name]
        row["properties"] = masked_properties(row["properties"] or {})
    for row in found.get(RefreshRunRow.__tablename__, ()):
        for name in ("error", "reason"):
            row[name] = None if row[name] is None else masked(row[name])
    return found


def held_secrets(caches: Iterable[CacheRecord]) -> tuple[str, ...]:
    """Where stored caches hold credentials, one line a cache; never what stands there.

    Args:
        caches: The caches.
    """
    found = []
    for cache in caches:
        texts = {"the SELECT": cache.definition, **cache.spec.texts}
        texts.setdefault("LOCATION", cache.location)
        places = secret_places(texts, cache.spec.properties)
        if places:
            found.append(f"cache {cache.qualified_name}: {', '.join(places)}")
    return tuple(found)
