"""How a cache's published rows are read: as they lie, or one row a group where sets hold partial
rows, by the product's own SELECT."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cachemgr.config.match_options import match_options
from cachemgr.metastore.records import CacheRecord, SnapshotRecord
from matcher.model.codec import decode_plan
from matcher.model.ir import GROUPING_ID_COLUMN
from matcher.partials.collapse import render_collapsed
from matcher.render.shown_outputs import shown_list


def published_rows(spark: Any, cache: CacheRecord, snapshot: SnapshotRecord) -> Any:
    """The rows that a cache serves, its visible columns in the definition's order.

    Args:
        spark: A session without caches.
        cache: The cache.
        snapshot: What it published last.
    """
    reader = spark.read.format("delta").option("versionAsOf", snapshot.run.cache_version)
    stored = reader.load(cache.location)
    assert snapshot.run.plan is not None
    plan = decode_plan(dict(snapshot.run.plan))
    if plan.partials:
        text = render_collapsed(plan, "{stored}", match_options(cache.settings))
        stored = spark.sql(text, stored=stored)
    names = list(shown_list(plan))
    if GROUPING_ID_COLUMN in stored.columns:
        # of a cube it is no column of ours to name; the definitions here have it last
        names.append(f"CAST({GROUPING_ID_COLUMN} AS BIGINT) AS gid")
    return stored.selectExpr(*names)


def base_versions(snapshot: SnapshotRecord) -> Mapping[str, int]:
    """The versions of the base tables that it was computed from, by the table's own name."""
    return {t.location.rstrip("/").rpartition("/")[2]: t.version for t in snapshot.tables}
