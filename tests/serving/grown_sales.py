"""Sales, to which rows were appended since all caches of it were refreshed, and the stores, which
stand where they stood or got new keys alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from cachemgr.base_state import BaseState, TableAt
from cachemgr.config.result_settings import SettingsComparer
from cachemgr.delta.base_columns import kept_columns
from cachemgr.delta.base_commits import BaseCommit, CommitRange, FileAction
from cachemgr.delta.changes import Changes, DataFile
from cachemgr.delta.past import Past
from cachemgr.metastore.records import JoinRecord
from cachemgr.serving.appended import FreshLimits
from cachemgr.serving.eligibility import Checks, Eligibility, QueryState
from cachemgr.serving.freshness import Histories
from cachemgr.serving.served_cache import ServedCache
from cachemgr.vocabulary import FreshnessKind
from matcher.examples import plan_of
from matcher.index.registry import Registry
from matcher.model.integer_bounds import Bounds
from matcher.model.ir import RecordPreservingJoin

SALES, STORES = "default.sales", "default.stores"
MANY = 1 << 24  # INT alone proves no sum of so many rows
SMALL = {(SALES, "qty"): (0, 50)}
BY_STORE = "SELECT store, SUM(qty) AS q, COUNT(qty) AS k, COUNT(*) AS n FROM sales GROUP BY store"
# mapped by name, so that its files know it by another one
QTY = {
    "name": "qty",
    "type": "integer",
    "nullable": True,
    "metadata": {"delta.columnMapping.physicalName": "col-1"},
}
SCHEMA = json.dumps({"type": "struct", "fields": [QTY]})
COLUMNS = kept_columns(SCHEMA, {"qty"})
STORE = {"name": "store", "type": "integer", "nullable": True, "metadata": {}}
STORES_SCHEMA = json.dumps({"type": "struct", "fields": [STORE]})


def cache(
    definition: str = BY_STORE,
    *,
    name: str = "c",
    rows: int | None = MANY,
    bounds: Mapping[tuple[str, str], Bounds] = SMALL,
    joins: tuple[RecordPreservingJoin, ...] = (),
) -> ServedCache:
    plan = plan_of(definition)
    plan = replace(plan, name=name, base_rows=rows, joins=joins, rows=10)
    plan = replace(plan, bounds=tuple(bounds.items()))
    return ServedCache(
        id=name,
        name=name,
        plan=plan,
        location=f"file:/{name}",
        version=1,
        snapshot={place: BaseState(f"id-{place}", 5, "txn:5", 50) for place in (SALES, STORES)},
        freshness=FreshnessKind.STRICT,
        max_staleness_seconds=None,
        rewrite_enabled=True,
        settings=frozenset(),
        principals=None,
        unvalidated=frozenset(),
        reads=frozenset(),
        columns={SALES: COLUMNS, STORES: kept_columns(STORES_SCHEMA, {"store"})},
    )


class _AllNew:
    """What was appended to a dimension has new keys."""

    def are_new(
        self, table: TableAt, since: BaseState, changes: Changes, columns: tuple[str, ...]
    ) -> bool:
        return True


def world(
    *caches: ServedCache,
    appended: int | None = 7,
    size: int = 10,
    said: Mapping[str, Bounds] | None = None,
    promised: tuple[JoinRecord, ...] = (),
    new_stores: Mapping[str, Bounds] | None = None,
) -> tuple[Registry, Eligibility]:
    """The caches' plans and states after so many rows, in one file of that size, of which the log
    has so `said` the bounds; and after one file of `new_stores` of such bounds, unless None."""
    stores = (5, 50, "txn:5") if new_stores is None else (6, 60, "txn:6")
    seen = {
        SALES: [TableAt("sales", SALES, f"id-{SALES}", 6, 60, "txn:6", SCHEMA)],
        STORES: [TableAt("stores", STORES, f"id-{STORES}", *stores, STORES_SCHEMA)],
    }
    added = {
        SALES: FileAction(DataFile("f", "", size, appended, bounds=said or {}), True),
        STORES: FileAction(DataFile("g", "", 10, 1, bounds=new_stores or {}), True),
    }
    schemas = {SALES: SCHEMA, STORES: STORES_SCHEMA}
    histories = Histories(
        lambda table, version, *, columns_then: Past("txn:5", 50, 60, schemas[table.location]),
        lambda table, version: CommitRange(
            "txn:5", 50, (BaseCommit(6, "txn:6", 60, added=(added[table.location],)),)
        ),
    )
    registry, served = Registry(), {c.name: c for c in caches}
    for one in caches:
        registry.put(one.plan)
    state = QueryState(seen, frozenset(), "ann", 100, 5, fresh=FreshLimits(10, 1 << 40, 1 << 40))
    comparer = SettingsComparer(lambda key: None)
    checks = Checks(served.get, comparer, histories, dict, new_keys=_AllNew())
    return registry, Eligibility(state, checks, promised)
