"""Who may be answered from which cache: the one place that every door asks.

A cache that nobody was granted on serves whoever may read its base tables; the first GRANT narrows
it to those granted. A base table marked restricted is never answered from a cache for anyone who
was not granted on that cache, its owner included: the owner of a cache that a service refreshes may
never have read the table himself.

A table is known by its table id, its place and its name, and each of them is enough: a table
created again at a restricted place or under a restricted one's name, and a restricted one that was
moved or renamed, stay restricted. A name can so restrict a table too many, never one too few. What
a cache made from a restricted table holds is restricted like it, so a cache over that cache is too.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cachemgr.cache_spec import CacheSpec
from cachemgr.ddl.statements import (
    CreateRelationalCache,
    ExplainCreate,
    GrantSelect,
    GrantUse,
    Reading,
    RestrictBaseTable,
    RevokeSelect,
    RevokeUse,
    Statement,
    UnrestrictBaseTable,
)
from cachemgr.metastore.records import JoinSide, RestrictedTable
from cachemgr.metastore.registry_records import RegistryEntry
from cachemgr.roles import Role
from matcher.model.message import CacheName, PrincipalName, TableName
from matcher.model.reasons import Reason, ReasonCode
from matcher.render.select import quote

# A cache's files lie in a folder named by its id; Delta's own table ids have dashes.
_CACHE_ID = re.compile(r"[0-9a-f]{32}")
# A folder that was lost is left, and another one beside it has a number
# (`delta.places.moved_location`).
_CACHE_FOLDER = re.compile(r"([0-9a-f]{32})((?:-\d+)?)")


def may_use(
    principal: str,
    cache: str,
    principals: Collection[str] | None,
    reads: Iterable[str],
    restricted: Mapping[str, str],
    *,
    vouched: bool = True,
) -> Reason | None:
    """Why somebody may not be answered from a cache; None if he may.

    Every door that answers, explains or hands out a rewrite asks here: the sessions' decider, the
    rewrite and explain of the REST interface, the catalog that remote hooks follow, the SQL shell.

    Args:
        principal: Who asks: the token's in the service, `sparkUser` in a session on the metastore.
        cache: The cache's name, for the reason.
        principals: Who was granted on it; None if nobody ever was (`CacheRecord.narrowed` is
            False), which lets everybody in unless a table is restricted.
        reads: What the cache reads (`reads_of`), and what the block that it would answer reads and
            the rewrite does not read itself (`keys_of` each place, and the table ids).
        restricted: What is restricted now, from `restricted_keys`.
        vouched: Somebody has authenticated the name of him who asks.

    Returns:
        The reason, `TABLE_RESTRICTED`, `NOT_GRANTED` or `NOT_AUTHENTICATED`.
    """
    if principals is not None and principal in principals:
        return None if vouched else _claimed(principal, cache)
    remedy = "GRANT USE ON RELATIONAL CACHE {cache} TO {quoted}"
    table = next((restricted[key] for key in reads if key in restricted), None)
    if table is not None:
        return Reason(
            ReasonCode.TABLE_RESTRICTED,
            "{table} is restricted, and {principal} has no grant on cache {cache}",
            remedy,
            table=TableName(table),
            principal=PrincipalName(principal),
            quoted=PrincipalName(quote(principal)),
            cache=CacheName(cache),
        )
    if principals is not None:
        return Reason(
            ReasonCode.NOT_GRANTED,
            "{principal} has no grant on cache {cache}",
            remedy,
            principal=PrincipalName(principal),
            quoted=PrincipalName(quote(principal)),
            cache=CacheName(cache),
        )
    return None


def _claimed(principal: str, cache: str) -> Reason:
    return Reason(
        ReasonCode.NOT_AUTHENTICATED,
        "cache {cache} is granted to {principal}, and nobody has authenticated that it is he "
        "who asks",
        "let the server authenticate its users, or set spark.cachemgr.trustUserNames=true in its "
        "configuration if something before it does",
        cache=CacheName(cache),
        principal=PrincipalName(principal),
    )


def role_needed(statement: Statement) -> Role:
    """The least role that a statement needs where roles are asked for: at the service's doors. (A
    session on the metastore itself has the rights of the database's user.)

    Who sees which rows is the admin's to say. So is where a cache's files go, since whoever may
    read that place reads what the service was able to.

    Args:
        statement: Any statement.
    """
    match statement:
        case GrantUse() | RevokeUse() | RestrictBaseTable() | UnrestrictBaseTable():
            return Role.ADMIN
        case GrantSelect() | RevokeSelect():
            return Role.ADMIN
        case CreateRelationalCache(spec=CacheSpec(location=str())):
            return Role.ADMIN
        case ExplainCreate():
            # it tells what the service's Spark can see of any table that is named
            return Role.OPERATOR
        case _:
            return Role.VIEWER if isinstance(statement, Reading) else Role.OPERATOR


def keys_of(location: str) -> tuple[str, ...]:
    """What a place is known by: itself, and the id of the cache whose files lie there, plain and
    hashed_id.

    >>> keys_of("file:/data/t"), len(keys_of("file:/caches/" + "0" * 32))
    (('file:/data/t',), 3)
    >>> keys_of("file:/caches/" + "0" * 32 + "-7")[1] == "0" * 32
    True
    """
    found = _CACHE_FOLDER.fullmatch(location.rstrip("/").rpartition("/")[2])
    return (location,) if found is None else (location, found[1], hashed_id(found[1]))


def named_key(name: str) -> str:
    """The key of a table's name, which is no place and no id.

    Args:
        name: Its name in the catalog.

    >>> named_key("Shop.Sales")
    'table shop.sales'
    """
    return f"table {name.lower()}"


def keys_of_side(side: JoinSide) -> frozenset[str]:
    """The keys of a table that a declared join names.

    Args:
        side: The table.
    """
    ids = {side.table_id} if side.table_id is not None else set()
    return frozenset({*keys_of(side.location), named_key(side.name), *ids})


def keys_of_relations(relations: Iterable[Sequence[Any]]) -> frozenset[str]:
    """The keys of the tables that a stored plan reads.

    Args:
        relations: Its relations, each as its place and its name.
    """
    found: set[str] = set()
    for place, name in relations:
        found.update(keys_of(str(place)))
        found.add(named_key(str(name)))
    return frozenset(found)


def hashed_id(key: str) -> str:
    """A key as it is told to those who may not use the cache that it may be the id of. An id names
    the folder of the cache's files; its SHA-256 tells whoever has found them all the same that they
    are that cache's, and nobody where they are.

    Args:
        key: A place, a table id or a cache's id; the first two stay as they are.
    """
    return hashlib.sha256(key.encode()).hexdigest() if _CACHE_ID.fullmatch(key) else key


def redacted_location(location: str) -> str:
    """A place with the id of the cache whose files lie there hashed_id.

    >>> redacted_location("file:/data/t")
    'file:/data/t'
    """
    folder, slash, last = location.rstrip("/").rpartition("/")
    found = _CACHE_FOLDER.fullmatch(last)
    return location if found is None else f"{folder}{slash}{hashed_id(found[1])}{found[2]}"


def reads_of(entry: RegistryEntry) -> frozenset[str]:
    """The places, names and table ids of the tables that a cache's rows come from.

    Those of its definition and of its published snapshot both count: a view in it may have been
    redefined since.

    Args:
        entry: The cache as the metastore hands it out.
    """
    published = entry.published
    plans = [entry.cache.plan, published.run.plan if published is not None else None]
    found = {key for plan in plans for key in keys_of_relations((plan or {}).get("relations", ()))}
    for table in published.tables if published is not None else ():
        found.update(keys_of(table.location), (named_key(table.name),))
        found |= {table.table_id} if table.table_id else set()
    return frozenset(found)


def restricted_keys(
    marks: Iterable[RestrictedTable], caches: Iterable[tuple[str, frozenset[str]]]
) -> dict[str, str]:
    """What is restricted, to the name of the base table that makes it so.

    Args:
        marks: The marked base tables.
        caches: The ids of all caches with what each reads.

    Returns:
        Places, names, table ids, and the ids of the caches that hold rows of a marked table, also
        by way of other caches.
    """
    found: dict[str, str] = {}
    for mark in marks:
        found |= dict.fromkeys((*keys_of(mark.location), named_key(mark.name)), mark.name)
        if mark.table_id is not None:
            found[mark.table_id] = mark.name
    rest = dict(caches) if found else {}
    moved = True
    while moved:
        hit = {i: k for i, reads in rest.items() if (k := _first(reads, found)) is not None}
        moved = bool(hit)
        for cache_id, name in hit.items():
            found[cache_id] = name
            del rest[cache_id]
    return found


def _first(reads: frozenset[str], found: Mapping[str, str]) -> str | None:
    return next((found[key] for key in sorted(reads) if key in found), None)


def shown_to(principal: str, entry: RegistryEntry) -> RegistryEntry:
    """A cache as its registry entry may be given to one principal: who else was granted is not
    told, and `may_use` says the same of it.

    Args:
        principal: Whom it is given to.
        entry: The cache.
    """
    return replace(entry, grants=entry.grants & {principal})
