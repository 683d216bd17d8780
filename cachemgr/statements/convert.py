"""From stored caches to the statements that would make them again."""

from __future__ import annotations

from cachemgr.ddl.statements import CreateRelationalCache, QualifiedName, SelectText
from cachemgr.metastore.records import CacheRecord


def create_statement(cache: CacheRecord) -> CreateRelationalCache:
    """The CREATE that would make this cache again: what SHOW CREATE renders."""
    namespace = tuple(cache.namespace.split(".")) if cache.namespace else ()
    return CreateRelationalCache(
        name=QualifiedName((*namespace, cache.name)),
        select=SelectText(cache.definition),
        spec=cache.spec,
    )
