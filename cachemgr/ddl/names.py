"""Where a cache's name points to, and where its files go."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from cachemgr.ddl.statements import QualifiedName

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
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


def absolute_location(root: str) -> str:
    """A root folder with a scheme or from the top, so that a later chdir changes nothing.

    Args:
        root: A URI or a path.
    """
    if _SCHEME.match(root):
        return root.rstrip("/")
    return str(Path(root).absolute())


def is_local(location: str) -> bool:
    """Whether a place is in this machine's own file system.

    >>> is_local("/caches"), is_local("file:///caches"), is_local("s3a://bucket/caches")
    (True, True, False)
    """
    return _SCHEME.match(location) is None or location.startswith("file:")


def moved_location(location: str, cache_id: str, number: int) -> str:
    """Another place of a cache, beside the one that is lost.

    >>> moved_location("/caches/0a1b", "0a1b", 7)
    '/caches/0a1b-7'
    """
    return f"{location.rpartition('/')[0]}/{cache_id}-{number}"


def cache_location(root: str, cache_id: str) -> str:
    """The private place of one cache: never another cache's, also after OR REPLACE.

    Args:
        root: `spark.cachemgr.location`, or the LOCATION that the statement gave.
        cache_id: The cache's id.
    """
    return f"{absolute_location(root)}/{cache_id}"
