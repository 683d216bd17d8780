"""What a cache's name points to."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cachemgr.config.setting_names import nearest
from cachemgr.ddl.statements import QualifiedName
from cachemgr.errors import ErrorCode, NotFoundError

SESSION_CATALOG = "spark_catalog"
DEFAULT_NAMESPACE = "default"


def namespace_of(name: QualifiedName, catalog: str, schema: str) -> str:
    """The namespace of a cache by Spark's rules.

    Args:
        name: The name as written.
        catalog: The session's current catalog.
        schema: The session's current schema.

    Returns:
        `schema`, or `catalog.schema` outside of Spark's own catalog.

    >>> namespace_of(QualifiedName(("spark_catalog", "s", "c")), "spark_catalog", "default")
    's'
    """
    parts = name.namespace
    if len(parts) == 2:
        catalog, schema = parts
    elif len(parts) == 1:
        schema = parts[0]
    return schema if catalog.lower() == SESSION_CATALOG else f"{catalog}.{schema}"


def shown_name(namespace: str, name: str) -> str:
    """The name under which the matcher and EXPLAIN know a cache: bare in the default schema.

    >>> shown_name("Default", "c"), shown_name("s", "c")
    ('c', 's.c')
    """
    return name if namespace.lower() in ("", DEFAULT_NAMESPACE) else f"{namespace}.{name}"


def no_cache(
    written: str,
    known: Iterable[tuple[str, str]],
    lists: str,
    here: str = DEFAULT_NAMESPACE,
) -> NotFoundError:
    """That there is no such cache, with the one that was most likely meant.

    Args:
        written: The name as the user wrote it.
        known: Namespace and name of all caches.
        lists: What shows them all, for the message.
        here: The namespace in which a bare name is looked up; in another one than `default` those
            of `default` need theirs.

    >>> no_cache("sale", [("s", "sales")], "SHOW …").message
    'there is no relational cache sale: did you mean s.sales? SHOW … lists those that exist'
    >>> no_cache("sales", [("default", "sales")], "SHOW …", here="s").message
    'there is no relational cache sales: did you mean default.sales? SHOW … lists those that exist'
    """
    shown = shown_name if here.lower() == DEFAULT_NAMESPACE else "{}.{}".format
    near = meant_cache(written, [shown(namespace, name) for namespace, name in known])
    hint = f"did you mean {near}? " if near else ""
    return NotFoundError(
        ErrorCode.CACHE_NOT_FOUND,
        f"there is no relational cache {written}: {hint}{lists} lists those that exist",
    )


def meant_cache(written: str, names: Iterable[str]) -> str | None:
    """The cache that was most likely meant, by its whole name or else by the last part of it.

    Args:
        written: The name of one that does not exist.
        names: Those that do.

    >>> meant_cache("sales.by_regoin", ["by_item", "by_region"])
    'by_region'
    """
    names = tuple(names)
    near = nearest(written, names)
    if near is None:
        by_last = {full.rpartition(".")[2]: full for full in names}
        last = nearest(written.rpartition(".")[2], by_last)
        near = None if last is None else by_last[last]
    return near


def no_join(written: str, known: Iterable[str], lists: str) -> NotFoundError:
    """That there is no such record-preserving join, with the one that was most likely meant.

    Args:
        written: The name as the user wrote it.
        known: The names of all joins.
        lists: What shows them all, for the message.

    >>> no_join("oss", ["os", "dates"], "SHOW …").message
    'there is no record-preserving join oss: did you mean os? SHOW … lists those that exist'
    """
    near = nearest(written, known)
    hint = f"did you mean {near}? " if near else ""
    return NotFoundError(
        ErrorCode.JOIN_NOT_FOUND,
        f"there is no record-preserving join {written}: {hint}{lists} lists those that exist",
    )


def hinted_name(written: str, catalog: str, schema: str, known: Callable[[str], str | None]) -> str:
    """The lower-case name of the cache that a hint means: by Spark's rules that of the session's
    own schema, or else the name as it is shown.

    Args:
        written: The name in the hint, without quotes.
        catalog: The session's current catalog.
        schema: The session's current schema.
        known: A cache's name by its shown name in any case; None where there is no such cache.

    >>> hinted_name("C", "spark_catalog", "s", {"s.c": "s.c"}.get)
    's.c'
    >>> hinted_name("C", "spark_catalog", "s", {}.get)
    'c'
    """
    parts = tuple(part.strip() for part in written.split("."))
    if all(parts) and len(parts) <= 3:
        namespace = namespace_of(QualifiedName(parts), catalog, schema)
        found = shown_name(namespace, parts[-1]).lower()
        if known(found) is not None:
            return found
    return written.lower()
