"""Records of caches, their clauses given beside the other fields."""

from __future__ import annotations

from typing import Any

from cachemgr.cache_spec import SPEC_FIELDS, CacheSpec
from cachemgr.metastore.records import CacheRecord


def cache_of(given: str | None = None, **fields: Any) -> CacheRecord:
    """A record.

    Args:
        given: The LOCATION clause; `location` is where the table lies.
        fields: Of `CacheRecord` and of `CacheSpec`.
    """
    clauses = {n: fields.pop(n) for n in SPEC_FIELDS if n in fields and n != "location"}
    return CacheRecord(spec=CacheSpec(location=given, **clauses), **fields)
