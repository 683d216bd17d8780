"""What one refresh carries from stage to stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import SparkSession

from cachemgr.base_state import TableAt, versions_of
from cachemgr.delta.changes import Changes
from cachemgr.delta.tables import TableRead
from cachemgr.jvm.runtime import computing
from cachemgr.metastore.records import CacheRecord, SnapshotRecord
from cachemgr.metastore.store import Metastore
from cachemgr.refresh.by_change.incremental import Stored
from cachemgr.refresh.damage import Damage
from cachemgr.refresh.planning.steps import SourceOffer
from cachemgr.refresh.source import Source
from cachemgr.refresh.write import TableSpec
from matcher.model.ir import CachePlan

# None leaves the time to the metastore's clock, as replicas must, whose own clocks differ.
Clock = Callable[[], datetime | None]
Replan = Callable[[], CachePlan]
Checkpoint = Callable[[str], None]


@dataclass(frozen=True)
class Job:
    """A cache, what it is to hold, and where everything is.

    Args:
        metastore: Where the run is noted down.
        session: A session of ours with the cache's settings.
        cache: The cache as stored.
        plan: What to compute, as the definition resolves now.
        spec: Fingerprint of plan, settings and layout.
        table: The cache's own table.
        tables: The pinned base tables, with their columns.
        sources: The caches that it is defined over, as far as it can be built from them.
        published: The snapshot that serves now.
        stored: What the cache's table holds by it; None if another version of this program stored
            its plan.
        changes: What happened to the base tables that moved since, by location.
        gone: Files that came or went and are not there any more.
        repartitioned: The base tables that are partitioned otherwise than files that went.
        feeds: The base tables whose Change Data Feed tells what changed, by location.
        damage: What is wrong with the table that serves now.
        now: The clock.
        checkpoint: Called after each step.
    """

    metastore: Metastore
    session: SparkSession
    cache: CacheRecord
    plan: CachePlan
    spec: str
    table: TableSpec
    tables: tuple[TableAt, ...]
    sources: tuple[Source | SourceOffer, ...]
    published: SnapshotRecord | None
    stored: Stored | None
    changes: Mapping[str, Changes]
    gone: tuple[str, ...]
    feeds: frozenset[str]
    repartitioned: frozenset[str]
    damage: Damage
    now: Clock
    checkpoint: Checkpoint

    @property
    def name(self) -> str:
        """The cache's name, for messages."""
        return self.cache.qualified_name

    @property
    def spark(self) -> str:
        """The Spark that computes, as `sparks.on_java` gives it."""
        return computing(self.session)

    @property
    def reads(self) -> list[TableRead]:
        """What each relation of the plan reads, in the plan's order."""
        versions = versions_of(self.tables)
        return [TableRead(r.key, versions[r.key]) for r in self.plan.tables]
