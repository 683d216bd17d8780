"""Caches and joins as they may be shown: without credentials that an older release let in.

What is stored stays as it is, since a cache is refreshed and matched by its own text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from cachemgr.metastore.models import CacheRow, RefreshRunRow
from cachemgr.metastore.records import CacheRecord, JoinRecord
from cachemgr.secrets import (
    masked,
    masked_properties,
    masked_sql,
    secret_places,
)

_LOCATION_GIVEN = "location"


def masked_cache(cache: CacheRecord) -> CacheRecord:
    """A cache for showing.

    Args:
        cache: As it is stored.
    """
    given = cache.context.get(_LOCATION_GIVEN)
    context: dict[str, Any] = dict(cache.context)
    if given is not None:
        context[_LOCATION_GIVEN] = masked(str(given))
    return replace(
        cache,
        definition=masked_sql(cache.definition),
        comment=None if cache.comment is None else masked(cache.comment),
        location=masked(cache.location),
        context=context,
        properties=masked_properties(cache.properties),
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
        row["comment"] = None if row["comment"] is None else masked(row["comment"])
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
        texts = {
            "the SELECT": cache.definition,
            "COMMENT": cache.comment or "",
            "LOCATION": str(cache.context.get(_LOCATION_GIVEN) or cache.location),
        }
        places = secret_places(texts, cache.properties)
        if places:
            found.append(f"cache {cache.qualified_name}: {', '.join(places)}")
    return tuple(found)
