"""Applies a document of definitions: first the plan of what would change, then the changes.

What the document does not name is left alone unless it is to be pruned. Everything is checked, by
Spark too, before anything is changed; each change is one transaction of the metastore. Should one
fail all the same, the answer says which were made, which failed and which were not tried; applying
again goes on from there, since a change that was made is none the second time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from cachemgr.cache_spec import SPEC_FIELDS
from cachemgr.config.judged.judge import is_of_an_application
from cachemgr.config.result_settings import fingerprint, result_settings
from cachemgr.config.substitution import refuse_substitution
from cachemgr.ddl import parse
from cachemgr.ddl.names import DEFAULT_NAMESPACE, SESSION_CATALOG, namespace_of
from cachemgr.ddl.render import render
from cachemgr.ddl.render_parts import render_name
from cachemgr.ddl.single_clauses import read_name
from cachemgr.ddl.statements import (
    CreateRecordPreservingJoin,
    CreateRelationalCache,
    ExplainCreate,
    QualifiedName,
    SelectText,
)
from cachemgr.errors import CacheManagerError, ConfigurationError, ErrorCode
from cachemgr.metastore.caches import Caches
from cachemgr.metastore.records import CacheRecord
from cachemgr.metastore.store import Metastore
from cachemgr.secrets import masked_properties, masked_sql, refuse_secrets
from cachemgr.statements.create_cache import refuse_properties, refuse_secrets_in
from cachemgr.statements.document_order import Key, in_order, key_of, name_key, sources_in
from cachemgr.statements.export import (
    CacheDefinition,
    Definitions,
    JoinDefinition,
    as_data,
    export,
    masked_definition,
)
from cachemgr.statements.results import ResultRows

# What only a new cache can have otherwise; the rest is changed in place.
_REPLACING: Final = frozenset(
    {"definition", "partitioned_by", "cluster_by", "location", "catalog", "schema", "settings"}
)


@dataclass(frozen=True)
class Context:
    """Where and how a definition is looked up."""

    catalog: str
    schema: str
    settings: Mapping[str, str] | None


class Execute(Protocol):
    """One of our statements on Spark, in a context of its own."""

    def __call__(self, text: str, context: Context | None) -> ResultRows:
        """Carry it out; raises CacheManagerError."""
        ...


@dataclass(frozen=True)
class FieldChange:
    """One field of a definition."""

    field: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Change:
    """One thing to do.

    Args:
        kind: cache or join.
        name: Of what.
        action: CREATE, CHANGE (in place), REPLACE (it is refreshed anew) or DROP.
        fields: What differs, for CHANGE and REPLACE.
    """

    kind: str
    name: str
    action: str
    fields: tuple[FieldChange, ...] = ()


@dataclass(frozen=True)
class Applied:
    """What became of a change: DONE, FAILED (with the reason) or NOT_TRIED."""

    change: Change
    outcome: str
    message: str | None = None


def plan(metastore: Metastore, wanted: Definitions, *, prune: bool) -> tuple[Change, ...]:
    """What would have to change for the document to be true.

    Args:
        metastore: What there is.
        wanted: The document.
        prune: Also drop what it does not name.

    Returns:
        The changes in the order in which they are made; none if it is true already.

    Raises:
        CacheManagerError: Something in it cannot be read, or is named twice.
    """
    now = export(metastore)
    return (
        *_joins_before(now, wanted),
        *_caches(now, wanted),
        *(_drops(now, wanted) if prune else ()),
    )


def statements(changes: Iterable[Change], wanted: Definitions) -> Iterable[CreateRelationalCache]:
    """The statements of the caches that would be made."""
    return [_statement(cache) for cache in _made(changes, wanted)]


def check(changes: Iterable[Change], wanted: Definitions, execute: Execute) -> None:
    """Let Spark analyse every definition that is new. One that names caches which are to be made
    first is analysed when these are there.

    Raises:
        CacheManagerError: One cannot be cached, or has a property that none may have; nothing was
            changed.
    """
    for wish in wanted.caches:
        refuse_properties(wish.name, wish.spec.properties)
    _refuse_new_secrets(changes, wanted)
    made = _made(changes, wanted)
    new = {key_of(cache) for cache in made}
    for cache in made:
        if not sources_in(cache, new):
            execute(render(ExplainCreate(_statement(cache))), _context(cache))


def _refuse_new_secrets(changes: Iterable[Change], wanted: Definitions) -> None:
    wishes = _wishes(wanted)
    for change in changes:
        if change.kind != "cache" or change.action == "DROP":
            continue
        wish, fields = wishes[name_key(change.name)], {f.field: f for f in change.fields}
        if change.action != "CHANGE":
            refuse_secrets_in(_statement(wish))
            continue
        texts = {k: text for k, text in wish.spec.texts.items() if k.lower() in fields}
        properties = wish.spec.properties
        before = fields["properties"].before if "properties" in fields else properties
        shown = masked_properties(properties)
        new = {k: v for k, v in properties.items() if before.get(k) not in (v, shown[k])}
        refuse_secrets(f"cache {wish.name}", texts, new)


def _made(changes: Iterable[Change], wanted: Definitions) -> list[CacheDefinition]:
    wishes = _wishes(wanted)
    made = [c for c in changes if c.kind == "cache" and c.action in ("CREATE", "REPLACE")]
    return [wishes[name_key(change.name)] for change in made]


def apply(
    metastore: Metastore, changes: Sequence[Change], wanted: Definitions, execute: Execute
) -> tuple[Applied, ...]:
    """Make the changes, until one fails.

    Args:
        metastore: Where.
        changes: Of `plan`.
        wanted: The document.
        execute: Spark.

    Returns:
        What became of each.
    """
    wishes = _wishes(wanted)
    done: list[Applied] = []
    for change in changes:
        if done and done[-1].outcome != "DONE":
            done.append(Applied(change, "NOT_TRIED"))
            continue
        try:
            _make(metastore, change, wanted, wishes, execute)
        except CacheManagerError as error:
            done.append(Applied(change, "FAILED", str(error)))
        else:
            done.append(Applied(change, "DONE"))
    return tuple(done)


def _joins_before(now: Definitions, wanted: Definitions) -> Iterable[Change]:
    known = {j.name.lower(): j for j in now.joins}
    seen: set[str] = set()
    for join in sorted(wanted.joins, key=lambda j: j.name.lower()):
        statement = _join_statement(join)
        _once(seen, join.name.lower(), f"join {join.name}")
        found = known.get(join.name.lower())
        text = masked_sql(render(statement))
        if found is None:
            yield Change("join", join.name, "CREATE")
        elif found.ddl != text:
            yield Change("join", join.name, "REPLACE", (FieldChange("ddl", found.ddl, text),))


def _caches(now: Definitions, wanted: Definitions) -> Iterable[Change]:
    known = {key_of(c): c for c in now.caches}
    seen: set[Key] = set()
    for cache in wanted.caches:
        _once(seen, key_of(cache), f"cache {cache.name}")
    for cache in in_order(sorted(wanted.caches, key=key_of)):
        wish = _canonical(cache)
        found = known.get(key_of(wish))
        if found is None:
            yield Change("cache", wish.name, "CREATE")
            continue
        fields = tuple(_differences(found, wish))
        if fields:
            replaced = any(f.field in _REPLACING for f in fields)
            yield Change("cache", wish.name, "REPLACE" if replaced else "CHANGE", fields)


def _drops(now: Definitions, wanted: Definitions) -> Iterable[Change]:
    caches = _wishes(wanted)
    joins = {j.name.lower() for j in wanted.joins}
    # those first that are defined over others, by name as far as that leaves a choice
    for cache in reversed(in_order(reversed(now.caches))):
        if key_of(cache) not in caches:
            yield Change("cache", cache.name, "DROP")
    for join in now.joins:
        if join.name.lower() not in joins:
            yield Change("join", join.name, "DROP")


def _once(seen: set[Any], key: Any, what: str) -> None:
    if key in seen:
        raise ConfigurationError(
            ErrorCode.NAMED_TWICE, f"the document names the {what} twice: keep one"
        )
    seen.add(key)


def _wishes(wanted: Definitions) -> dict[Key, CacheDefinition]:
    found = map(_canonical, wanted.caches)
    return {key_of(cache): cache for cache in found}


def _canonical(cache: CacheDefinition) -> CacheDefinition:
    """As an export would write it."""
    name = read_name(cache.name)
    if len(name.parts) == 1:
        name = QualifiedName((DEFAULT_NAMESPACE, *name.parts))
    text = render(_statement(replace(cache, name=render_name(name))))
    refuse_substitution(text, f"the definition of cache {cache.name}")
    _refuse_settings(cache)
    statement = parse(text)
    assert isinstance(statement, CreateRelationalCache)
    return replace(
        cache,
        name=render_name(statement.name),
        definition=statement.select.text,
        grants=None if cache.grants is None else tuple(sorted(set(cache.grants))),
        settings=None if cache.settings is None else result_settings(cache.settings),
    )


def _refuse_settings(cache: CacheDefinition) -> None:
    """A definition is read under the settings that change rows, and brings no others with it: those
    that an export of an earlier version holds besides are left out."""
    foreign = next((key for key in cache.settings or () if is_of_an_application(key)), None)
    if foreign is not None:
        raise ConfigurationError(
            ErrorCode.SETTING_REFUSED,
            f"cache {cache.name}: {foreign} is not a setting of a definition, which holds those "
            "spark.sql.* settings that change rows: leave it out",
        )


def _differences(found: CacheDefinition, wish: CacheDefinition) -> Iterable[FieldChange]:
    """What differs where credentials are left out: those that a cache holds since before they were
    refused are in no export, and a file that still has them is no reason to change it."""
    before, after = as_data(found), as_data(masked_definition(wish))
    for name, value in after.items():
        if name != "name" and not _equal(name, before[name], value):
            yield FieldChange(name, before[name], value)


def _equal(name: str, before: Any, after: Any) -> bool:
    if name in ("settings", "grants") and after is None:
        return True  # the document leaves them as they are
    if name == "settings":
        return fingerprint(after) <= fingerprint(before)
    if name in ("partitioned_by", "cluster_by"):
        return [c.lower() for c in before] == [c.lower() for c in after]
    if name in ("catalog", "schema"):
        return str(before).lower() == str(after).lower()
    return bool(before == after)


def _statement(cache: CacheDefinition, *, or_replace: bool = False) -> CreateRelationalCache:
    return CreateRelationalCache(
        name=read_name(cache.name),
        select=SelectText(cache.definition.strip()),
        or_replace=or_replace,
        spec=cache.spec,
    )


def _join_statement(join: JoinDefinition) -> CreateRecordPreservingJoin:
    refuse_substitution(join.ddl, f"the ddl of join {join.name}")
    statement = parse(join.ddl)
    if not isinstance(statement, CreateRecordPreservingJoin):
        raise ConfigurationError(
            ErrorCode.NOT_A_CREATE,
            f"join {join.name}: ddl is no CREATE RECORD PRESERVING JOIN statement",
        )
    if str(statement.name).lower() != join.name.lower():
        raise ConfigurationError(
            ErrorCode.NAMES_DIFFER,
            f"join {join.name}: its ddl names {statement.name}: make them equal",
        )
    return replace(statement, if_not_exists=False)


def _context(cache: CacheDefinition) -> Context:
    return Context(cache.catalog, cache.schema, cache.settings)


def _make(
    metastore: Metastore,
    change: Change,
    wanted: Definitions,
    wishes: Mapping[Key, CacheDefinition],
    execute: Execute,
) -> None:
    if change.kind == "join":
        _make_join(metastore, change, wanted, execute)
        return
    if change.action == "DROP":
        metastore.caches.drop(_find(metastore.caches, change.name).id, now=metastore.clock.now())
        return
    wish = wishes[name_key(change.name)]
    if change.action == "CHANGE":
        _change(metastore, change, wish)
        return
    statement = _statement(wish, or_replace=change.action == "REPLACE")
    execute(render(statement), _context(wish))
    cache = _find(metastore.caches, wish.name)
    if wish.grants is not None:
        metastore.grants.replace(cache.id, wish.grants)
    if wish.paused:
        metastore.caches.update(cache.id, cache.version, now=metastore.clock.now(), paused=True)


def _make_join(metastore: Metastore, change: Change, wanted: Definitions, execute: Execute) -> None:
    before = metastore.joins.named(change.name)
    if before is not None:
        metastore.joins.drop(before.name)
    if change.action == "DROP":
        return
    wish = next(j for j in wanted.joins if j.name.lower() == change.name.lower())
    try:
        execute(render(_join_statement(wish)), None)
    except CacheManagerError:
        if before is not None:
            metastore.joins.create(before, now=metastore.clock.now())
        raise


def _change(metastore: Metastore, change: Change, wish: CacheDefinition) -> None:
    cache = _find(metastore.caches, wish.name)
    fields = {f.field for f in change.fields}
    values: dict[str, Any] = {n: getattr(wish.spec, n) for n in fields.intersection(SPEC_FIELDS)}
    if "paused" in fields:
        values["paused"] = wish.paused
    if "properties" in values:  # one that is masked in the document stays
        values["properties"] = _unmasked(wish.spec.properties, cache.spec.properties)
    if "grants" in fields and wish.grants is not None:
        metastore.grants.replace(cache.id, wish.grants)
    if values:
        metastore.caches.update(cache.id, cache.version, now=metastore.clock.now(), **values)


def _unmasked(wished: Mapping[str, str], stored: Mapping[str, str]) -> dict[str, str]:
    shown, held = masked_properties(wished), masked_properties(stored)
    return {k: stored[k] if held.get(k) == shown[k] else v for k, v in wished.items()}


def _find(caches: Caches, name: str) -> CacheRecord:
    parts = read_name(name)
    namespace = namespace_of(parts, SESSION_CATALOG, DEFAULT_NAMESPACE)
    found = caches.named(namespace, parts.last)
    if found is None:
        raise ConfigurationError(ErrorCode.CACHE_NOT_FOUND, f"the cache {name} is gone: plan again")
    return found
