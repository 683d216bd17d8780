"""What the stages of one refresh have found so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cachemgr.delta.commits import Commit
from cachemgr.metastore.records import RefreshRunRecord
from cachemgr.refresh.by_change.incremental import Delta
from cachemgr.refresh.full.build import Built
from cachemgr.refresh.measure import Measured
from cachemgr.refresh.source import Source
from matcher.model.ir import RecordPreservingJoin


@dataclass
class Progress:
    """What one stage leaves for those after it.

    Attributes:
        run: The open run.
        source: The cache that is read instead of the base tables.
        joins: The record-preserving joins that hold at the pinned versions; None where nobody
            looked.
        broken: Those that do not, with what is wrong.
        version: The version to publish.
        built: The rows of a full refresh.
        delta: What an incremental one has added.
        read_at: When the base versions of what is published were read, at the earliest; None if
            they are those that this run reads.
        commit: What was written.
        totals: The counts that the write saw.
        measured: What is known of the written version.
        sparks: The minors of Spark that its rows were computed by.
    """

    run: RefreshRunRecord
    source: Source | None = None
    joins: tuple[RecordPreservingJoin, ...] | None = None
    broken: dict[str, str] = field(default_factory=dict)
    version: int | None = None
    built: Built | None = None
    delta: Delta | None = None
    read_at: datetime | None = None
    commit: Commit | None = None
    totals: Mapping[str, int] | None = None
    measured: Measured | None = None
    sparks: frozenset[str] = frozenset()


def source_json(source: Source) -> dict[str, Any]:
    """The cache that was read instead of the base tables, as it is noted down."""
    offer = source.offer
    return {"cache_id": offer.cache_id, "cache": offer.cache, "version": offer.version}
