"""Whether the Delta tables on S3 may have more than one writer.

S3A creates a file without asking whether it is there. Delta's own log store for S3 keeps the
writers of one JVM apart by a lock in its memory. Where two drivers commit the same version at once,
both succeed, and one of the commits is lost.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from cachemgr.delta.places import scheme_of

S3: Final = ("s3", "s3a", "s3n")
ONE_DRIVER: Final = "S3SingleDriverLogStore"
_FOR_ALL: Final = "spark.delta.logStore.class"


def log_store_key(scheme: str) -> str:
    """The setting that names the log store of a scheme.

    >>> log_store_key("s3a")
    'spark.delta.logStore.s3a.impl'
    """
    return f"spark.delta.logStore.{scheme}.impl"


def for_one_driver(places: Collection[str], conf: Mapping[str, str]) -> dict[str, str]:
    """The schemes of S3 whose tables one driver alone may write to, each with one of its places.

    Args:
        places: Where tables lie.
        conf: Spark's settings.

    >>> for_one_driver(["s3a://b/x", "/data"], {})
    {'s3a': 's3a://b/x'}
    >>> for_one_driver(["s3a://b/x"], {log_store_key("s3a"): "io.delta.storage.S3DynamoDBLogStore"})
    {}
    """
    found: dict[str, str] = {}
    for place in sorted(places):
        scheme = scheme_of(place)
        named = conf.get(log_store_key(scheme)) or conf.get(_FOR_ALL) or ONE_DRIVER
        if scheme in S3 and named.rpartition(".")[2] == ONE_DRIVER:
            found.setdefault(scheme, place)
    return found
