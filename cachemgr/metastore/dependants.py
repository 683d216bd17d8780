"""What a change may not do to caches that others are defined over.

Looked at inside the transaction of the change itself: two replicas may be at it at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from operator import eq

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cachemgr.errors import ConflictError, DefinitionError, ErrorCode
from cachemgr.metastore.models import CacheRow
from cachemgr.metastore.records import CacheRecord
from scheduler.order import cycle_in

Alike = Callable[[Mapping[str, str], Mapping[str, str]], bool]


def refuse_with_dependants(session: Session, row: CacheRow, what: str) -> None:
    """Refuse to take a cache away from others that are defined over it.

    Args:
        session: The transaction.
        row: The cache.
        what: What was to be done to it, as in "dropped".

    Raises:
        ConflictError: There are such others; they are named.
    """
    names = [_shown(other) for other in _dependants(session, row.id)]
    if names:
        raise ConflictError(
            ErrorCode.CACHE_HAS_DEPENDANTS,
            f"the relational cache {_shown(row)} cannot be {what}: {', '.join(names)} "
            f"{'is' if len(names) == 1 else 'are'} defined over it; drop "
            f"{'that' if len(names) == 1 else 'those'} first",
        )


def take_over(
    session: Session, old: CacheRow, record: CacheRecord, revision: int, alike: Alike = eq
) -> None:
    """Let the caches that are defined over a replaced cache follow the new one, if it holds the
    very same.

    Args:
        session: The transaction.
        old: The cache that is replaced.
        record: The one that takes its place.
        revision: The revision of this change, which is one to those that follow as well.
        alike: Whether the settings of the one and of the other mean the same.

    Raises:
        ConflictError: Caches are defined over it, and it would hold something else.
    """
    dependants = _dependants(session, old.id)
    same = (
        _json(old.plan) == _json(record.plan)
        and alike(old.settings, dict(record.settings))
        and [tuple(c)[:2] for c in old.columns] == [(c.name, c.type) for c in record.columns]
    )
    if dependants and not same:
        refuse_with_dependants(session, old, "replaced with another definition")
    for other in dependants:
        session.execute(
            update(CacheRow)
            .where(CacheRow.id == other.id)
            .values(
                depends_on=[record.id if i == old.id else i for i in other.depends_on or ()],
                revision=revision,
            )
            .execution_options(synchronize_session=False)
        )


def refuse_broken_order(session: Session, record: CacheRecord, replaces: str | None) -> None:
    """Refuse a cache that depends on one that is gone, or in the end on itself.

    Args:
        session: The transaction.
        record: The cache that is to be stored.
        replaces: Id of the cache whose place it takes.

    Raises:
        ConflictError: A cache that it names was dropped meanwhile.
        DefinitionError: The circle, printed.
    """
    if not record.depends_on:
        return
    query = select(CacheRow.id, CacheRow.namespace, CacheRow.name, CacheRow.depends_on).where(
        CacheRow.dropped_at.is_(None)
    )
    names: dict[str, str] = {}
    reads: dict[str, list[str]] = {}
    for cache_id, namespace, name, depends_on in session.execute(query):
        names[cache_id] = _name(namespace, name)
        reads[cache_id] = [record.id if i == replaces else i for i in depends_on or ()]
    if any(i not in names for i in record.depends_on):
        raise ConflictError(
            ErrorCode.CACHE_CHANGED,
            f"a cache that the definition of {record.qualified_name} names was dropped or replaced "
            "meanwhile: repeat",
        )
    reads.pop(replaces or "", None)
    reads[record.id] = [record.id if i == replaces else i for i in record.depends_on]
    names[record.id] = _name(record.namespace, record.name)
    circle = cycle_in(reads)
    if circle:
        raise cycle([names[i] for i in circle])


def cycle(names: list[str]) -> DefinitionError:
    """The refusal of caches that are defined over each other.

    Args:
        names: The circle, its first repeated at the end.
    """
    return DefinitionError(
        ErrorCode.CACHE_CYCLE,
        f"the caches would be defined over each other: {' → '.join(names)}; "
        "define one of them over its base tables",
    )


def _dependants(session: Session, cache_id: str) -> list[CacheRow]:
    rows = session.scalars(
        select(CacheRow)
        .where(CacheRow.dropped_at.is_(None), CacheRow.depends_on.is_not(None))
        .order_by(CacheRow.namespace_key, CacheRow.name_key)
    )
    return [row for row in rows if cache_id in (row.depends_on or ())]


def _shown(row: CacheRow) -> str:
    return _name(row.namespace, row.name)


def _name(namespace: str, name: str) -> str:
    return f"{namespace}.{name}" if namespace else name


def _json(plan: object) -> str:
    return json.dumps(plan, sort_keys=True)
