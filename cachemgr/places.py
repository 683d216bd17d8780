"""Places of tables as they are written: their one spelling, and those that can hold none."""

from __future__ import annotations

import re
from typing import Final

from cachemgr.errors import DefinitionError

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
            "PLACE_NOT_SUPPORTED",
            f"{what}: {scheme}: is no storage that Delta tables can lie in: give a path, or a URI "
            "of a file system (file:, hdfs:, s3a:, abfss:, gs:, …)",
        )
