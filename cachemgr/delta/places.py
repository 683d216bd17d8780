"""Places of tables: their one spelling, those that can hold none, and where caches lie."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from cachemgr.errors import DefinitionError, ErrorCode

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
# Hadoop opens these for reading: the process would ask any server of its network, or any archive.
_NO_STORAGE: Final = frozenset(
    ("http", "https", "ftp", "ftps", "sftp", "data", "jar", "har", "mailto", "urn", "jdbc")
)


def scheme_of(place: str) -> str:
    """The scheme of a place in lower case; empty for a bare path.

    >>> scheme_of("S3A://bucket/x"), scheme_of("/data/a:b")
    ('s3a', '')
    """
    found = _SCHEME.match(place)
    return found[1].lower() if found else ""


def refuse_scheme(place: str, what: str) -> None:
    """Refuse a place that no Delta table can lie at.

    Args:
        place: A URI or a path.
        what: Whose it is, for the message.

    Raises:
        DefinitionError: Its scheme is none of a storage.
    """
    scheme = scheme_of(place)
    if scheme in _NO_STORAGE:
        raise DefinitionError(
            ErrorCode.PLACE_NOT_SUPPORTED,
            f"{what}: {scheme}: is no storage that Delta tables can lie in: give a path, or a URI "
            "of a file system (file:, hdfs:, s3a:, abfss:, gs:, …)",
        )


def storage_place(place: str, what: str) -> str:
    """A place that a table may be written to, in the one spelling that Hadoop gives it: Delta takes
    two spellings for two places.

    Args:
        place: A URI, or a path from the top.
        what: Whose it is, for the message.

    Raises:
        DefinitionError: It is relative, steps up, is on another machine, or is no storage.

    >>> storage_place("file:///caches//mine/", "cache c"), storage_place("s3a://b/x/", "cache c")
    ('file:/caches/mine', 's3a://b/x')
    """
    refuse_scheme(place, what)
    scheme = scheme_of(place)
    rest = place[len(scheme) + 1 :] if scheme else place
    host, path = "", rest
    if rest.startswith("//") and scheme:
        host, _, path = rest[2:].partition("/")
        path = f"/{path}"
    if scheme == "file" and host.lower() == "localhost":
        host = ""
    wrong = None
    if not path.startswith("/") or (scheme not in ("", "file") and not rest.startswith("//")):
        wrong = "is relative"
    elif scheme == "file" and host:
        wrong = f"names the machine {host}"
    elif {".", ".."} & set(path.split("/")) or not unquote(place).isprintable():
        wrong = "holds . or .. or what cannot be seen"
    elif not path.strip("/") and not host:
        wrong = "is the top of the file system"
    if wrong is not None:
        raise DefinitionError(
            ErrorCode.PLACE_NOT_SUPPORTED,
            f"{what}: {place!r} {wrong}: give a path from the top, as /folder, or a whole URI",
        )
    path = re.sub("/+", "/", path).rstrip("/")
    return f"{scheme}:{f'//{host}' if host else ''}{path}" if scheme else path


def is_inside(place: str, folder: str) -> bool:
    """Whether a place is a folder or below it; both as `storage_place` spells them.

    >>> is_inside("/a/b", "/a"), is_inside("/ab", "/a"), is_inside("file:/a", "/a")
    (True, False, True)
    """
    inner, outer = (p.removeprefix("file:").rstrip("/") + "/" for p in (place, folder))
    return inner.startswith(outer)


def above(place: str) -> list[str]:
    """A place and all folders above it, the place first.

    >>> above("file:/a/b"), above("s3a://bucket/x")
    (['file:/a/b', 'file:/a'], ['s3a://bucket/x', 's3a://bucket'])
    """
    scheme = scheme_of(place)
    rest = place[len(scheme) + 1 :] if scheme else place
    host = ""
    if scheme and rest.startswith("//"):
        name, _, path = rest[2:].partition("/")
        host, rest = f"//{name}", f"/{path}" if path else ""
    parts = rest.strip("/").split("/") if rest.strip("/") else []
    start = f"{scheme}:{host}" if scheme else ""
    found = [f"{start}/{'/'.join(parts[:n])}" for n in range(len(parts), 0, -1)]
    return [*found, start] if host else found


def absolute_location(root: str) -> str:
    """A root folder with a scheme or from the top, so that a later chdir changes nothing.

    Args:
        root: A URI or a path.
    """
    if scheme_of(root):
        return root.rstrip("/")
    return str(Path(root).absolute())


def as_path(location: str) -> str:
    """A table's place in its one spelling, a URI, as Spark takes a path: nothing is escaped.

    Args:
        location: As `cachemgr.delta.tables.normalise_location` gives it.

    >>> as_path("file:/data/my%20table"), as_path("s3a://bucket/100%25")
    ('file:/data/my table', 's3a://bucket/100%')
    """
    return unquote(location)


def is_local(location: str) -> bool:
    """Whether a place is in this machine's own file system.

    >>> is_local("/caches"), is_local("file:///caches"), is_local("s3a://bucket/caches")
    (True, True, False)
    """
    return scheme_of(location) in ("", "file")


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
