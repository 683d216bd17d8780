"""The order in which definitions can be made: a cache that others name in FROM goes before them."""

from __future__ import annotations

from collections.abc import Iterable
from graphlib import TopologicalSorter

from sqlglot import exp
from sqlglot.errors import SqlglotError

from cachemgr.ddl.names import DEFAULT_NAMESPACE, SESSION_CATALOG, namespace_of
from cachemgr.ddl.single_clauses import read_name
from cachemgr.ddl.statements import QualifiedName
from cachemgr.metastore.dependants import cycle
from cachemgr.statements.export import CacheDefinition
from matcher.sql.parse import parse_statements
from scheduler.order import cycle_in

Key = tuple[str, str]


def in_order(caches: Iterable[CacheDefinition]) -> list[CacheDefinition]:
    """The caches of a document, each after those of the document that it names.

    Args:
        caches: In the order to keep otherwise.

    Raises:
        DefinitionError: Some are defined over each other; the circle is printed.
    """
    known = {key_of(cache): cache for cache in caches}
    reads = {key: sorted(sources_in(cache, known)) for key, cache in known.items()}
    labels = {key: ".".join(key) for key in known}
    circle = cycle_in({labels[k]: [labels[s] for s in over] for k, over in reads.items()})
    if circle:
        raise cycle(list(circle))
    return [known[key] for key in TopologicalSorter(reads).static_order()]


def sources_in(cache: CacheDefinition, known: Iterable[Key]) -> set[Key]:
    """Those of some caches whose names stand in the FROM clauses of one."""
    return set(known).intersection(_named(cache))


def key_of(cache: CacheDefinition) -> Key:
    """What a cache's name points to, in lower case."""
    return name_key(cache.name)


def name_key(name: str) -> Key:
    """What a cache's name in a document points to, in lower case."""
    return _key(read_name(name), SESSION_CATALOG, DEFAULT_NAMESPACE)


def _named(cache: CacheDefinition) -> set[Key]:
    try:
        select = parse_statements(cache.definition)[0]
    except (SqlglotError, IndexError):  # whoever makes it will say what is wrong
        return set()
    names = (tuple(part.name for part in t.parts) for t in select.find_all(exp.Table))
    return {
        _key(QualifiedName(parts), cache.catalog, cache.schema)
        for parts in names
        if 1 <= len(parts) <= 3 and all(parts)
    }


def _key(name: QualifiedName, catalog: str, schema: str) -> Key:
    return namespace_of(name, catalog, schema).lower(), name.last.lower()
