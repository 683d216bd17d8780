"""Delta tables that SQL names by their folder, as in ``SELECT * FROM delta.`/data/sales` ``."""

from __future__ import annotations

import re
from urllib.parse import unquote

_LOCAL = re.compile(r"file:/+|/+")


def folder_in_text(path: str) -> str:
    """The one spelling of the folder that a text names; Hadoop's `Path` takes these for the same.

    A relative path stays one, and is then no table's: the text does not say where it starts.

    >>> [folder_in_text(p) for p in ("/data/sales/", "file:///data//sales", "s3a://lake/sales")]
    ['file:/data/sales', 'file:/data/sales', 's3a://lake/sales']
    """
    local = _LOCAL.match(path)
    if local is not None:
        path = "file:/" + re.sub("/+", "/", path[local.end() :])
    return path.rstrip("/")


def folder_of(location: str) -> str:
    """The same of a table's place, which is a URI.

    >>> folder_of("file:/data/a%20b")
    'file:/data/a b'
    """
    return unquote(location)
