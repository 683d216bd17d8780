"""A metastore with many caches over the tables of the Star Schema Benchmark, and Delta logs without
data: all that the text door of the service looks at.

One cache in ten is over the five tables themselves, the others over copies of them in other places.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bench.population import plans
from cachemgr.base_state import TableAt
from cachemgr.delta.base_columns import columns_read, kept_columns
from cachemgr.delta.head_lookup import Heads
from cachemgr.metastore import Metastore
from cachemgr.metastore.records import CacheRecord, Publication, SnapshotTableRecord, new_id
from matcher.model.codec import PLAN_VERSION, encode_plan
from matcher.model.ir import CachePlan, Relation

SETTINGS = {"spark.sql.session.timeZone": "UTC"}
COLUMNS = {
    "lineorder": "lo_orderkey:long lo_custkey:long lo_partkey:long lo_suppkey:long "
    "lo_orderdate:long lo_quantity:long lo_extendedprice:long lo_discount:long lo_revenue:long "
    "lo_supplycost:long lo_tax:long",
    "dates": "d_datekey:long d_year:integer d_yearmonthnum:integer d_weeknuminyear:integer "
    "d_yearmonth:string",
    "customer": "c_custkey:long c_name:string c_city:string c_nation:string c_region:string",
    "supplier": "s_suppkey:long s_name:string s_city:string s_nation:string s_region:string",
    "part": "p_partkey:long p_name:string p_mfgr:string p_category:string p_brand1:string",
}


def schema_of(table: str) -> str:
    """The `schemaString` of a table; no column is ever NULL, as in the benchmark."""
    fields = [
        {"name": name, "type": kind, "nullable": False, "metadata": {}}
        for name, kind in (column.split(":") for column in COLUMNS[table].split())
    ]
    return json.dumps({"type": "struct", "fields": fields})


def make_log(folder: Path, table: str) -> TableAt:
    """A Delta log of three commits in a folder, the first of them with the schema."""
    log = folder / table / "_delta_log"
    log.mkdir(parents=True)
    table_id = f"id-of-{table}"
    metadata = {"id": table_id, "schemaString": schema_of(table), "configuration": {}}
    for version in range(3):
        actions: list[dict[str, object]] = [{"commitInfo": {"operation": "WRITE"}}]
        if version == 0:
            actions.append({"metaData": metadata})
        write_commit(log, version, actions)
    found = (log / f"{2:020d}.json").stat().st_mtime_ns // 1_000_000
    place = f"file:{folder / table}"
    return TableAt(f"default.{table}", place, table_id, 2, found, columns=schema_of(table))


def write_commit(log: Path, version: int, actions: list[dict[str, object]]) -> None:
    """Put a commit into a log as Delta does: complete, or not there."""
    part = log / f".{version}.tmp"
    part.write_text("".join(json.dumps(a) + "\n" for a in actions))
    os.link(part, log / f"{version:020d}.json")
    part.unlink()


def populate(store: Metastore, folder: Path, count: int) -> dict[str, TableAt]:
    """Fill a metastore with published caches.

    Args:
        store: The metastore.
        folder: Where the tables' logs are made.
        count: How many caches; a tenth of them over the five tables.

    Returns:
        The five tables by name.
    """
    tables = {name: make_log(folder, name) for name in COLUMNS}
    store.tables.note(tables.values())
    heads = Heads().look(tables.values())
    now = store.clock.now()
    for plan in _plans(folder, count):
        cache_id = new_id()
        payload = encode_plan(plan)
        record = CacheRecord(
            namespace="default",
            name=plan.name,
            definition="SELECT …",
            definition_hash="h",
            location=f"{folder}/caches/{cache_id}",
            id=cache_id,
            settings=SETTINGS,
            plan=payload,
            plan_version=PLAN_VERSION,
        )
        store.caches.create(record, now=now)
        _make_stored(Path(record.location))
        run = store.refreshes.start(
            cache_id, "load", now=now, lease_seconds=60, mode="FULL", reason="load"
        )
        store.refreshes.update(run.id, run.fencing_token, plan=payload)
        names = [r.name.rsplit(".")[-1] for r in plan.relations]
        read = columns_read(plan)
        snapshot = [
            SnapshotTableRecord(
                r.name,
                r.key,
                tables[n].table_id,
                2,
                commit_id=heads[tables[n].location].commit,
                columns=kept_columns(tables[n].columns, read[r.key]),
            )
            for r, n in zip(plan.relations, names, strict=True)
        ]
        store.refreshes.publish(
            run.id,
            run.fencing_token,
            Publication(cache_version=1, rows=1, bytes=1, tables=snapshot),
            now=now,
        )
    return tables


def _make_stored(location: Path) -> None:
    """The published version of a cache's table, as far as an answer looks at it: its log."""
    log = location / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{1:020d}.json").write_text('{"commitInfo": {}}\n')


def _plans(folder: Path, count: int) -> Iterator[CachePlan]:
    found = list(plans(1_000 + count - count // 10))
    for plan in (*found[: count // 10], *found[1_000:]):
        moved = tuple(
            Relation(r.key.replace("file:/warehouse", f"file:{folder}"), f"default.{r.name}")
            for r in plan.relations
        )
        joins = tuple(
            replace(
                j,
                left=j.left.replace("file:/warehouse", f"file:{folder}"),
                right=j.right.replace("file:/warehouse", f"file:{folder}"),
            )
            for j in plan.joins
        )
        yield replace(plan, relations=moved, joins=joins)
