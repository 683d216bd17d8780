"""How long a session with 10,000 caches takes until all are matched, and the memory that they take.

The metastore is a real SQLite file whose rows are copies of one cache that was created and
published by the metastore's own writer. Loading is measured in a process of its own, since memory
once taken is not given back.
"""

from __future__ import annotations

import json
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.population import plans, published
from bench.results import Figure
from cachemgr.metastore import open_metastore
from cachemgr.metastore.records import SnapshotTableRecord
from matcher.model.codec import encode_plan

_COUNT = 10_000


def run() -> list[Figure]:
    """All figures of this module."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/metastore.db"
        _fill(url, Path(folder) / "metastore.db")
        done = subprocess.run(
            [sys.executable, "-m", "bench.start_up", url],
            check=True,
            capture_output=True,
            text=True,
        )
    found = json.loads(done.stdout)
    return [
        Figure(f"{_COUNT} caches loaded from the metastore", found["seconds"], "s", 5.0),
        Figure(f"memory of {_COUNT} caches", found["mib"], "MiB", 500.0),
    ]


def _fill(url: str, file: Path) -> None:
    population = list(plans(_COUNT))
    first = population[0]
    now = datetime.now(UTC)
    with open_metastore(url) as store:
        tables = [SnapshotTableRecord(r.name, r.key, "id", 3, 0) for r in first.relations]
        published(store, first, tables, now)
    base = sqlite3.connect(file)
    base.row_factory = sqlite3.Row
    with base:
        templates = {t: _rows(base, t) for t in ("caches", "refresh_runs", "snapshot_tables")}
        for i, plan in enumerate(population):
            text = json.dumps(encode_plan(plan))
            cache_id, run_id = f"{i:032x}", f"{i + _COUNT:032x}"
            mine = {"id": cache_id, "name": plan.name, "name_key": plan.name, "plan": text}
            _copy(base, "caches", templates["caches"][0], mine | {"published_refresh_id": run_id})
            _copy(base, "refresh_runs", templates["refresh_runs"][0],
                  {"id": run_id, "cache_id": cache_id, "plan": text})  # fmt: skip
            for row, relation in zip(templates["snapshot_tables"], plan.relations, strict=True):
                named = {"name": relation.name, "location": relation.key}
                _copy(base, "snapshot_tables", row, {"refresh_id": run_id, **named})
        base.execute("DELETE FROM caches WHERE name = 'template'")
    base.close()


def _rows(base: sqlite3.Connection, table: str) -> list[dict[str, Any]]:
    return [dict(row) for row in base.execute(f"SELECT * FROM {table}")]


def _copy(
    base: sqlite3.Connection, table: str, row: dict[str, Any], changed: dict[str, Any]
) -> None:
    values = {**row, **changed}
    names, marks = ", ".join(f'"{n}"' for n in values), ", ".join("?" * len(values))
    base.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(values.values()))


def _load(url: str) -> dict[str, float]:
    from cachemgr.serving.feed import Feed
    from cachemgr.serving.sources import MetastoreSource

    with open_metastore(url) as store:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        feed = Feed(MetastoreSource(store))
        start = time.perf_counter()
        feed.sync()
        seconds = time.perf_counter() - start
        if len(feed.registry.names()) != _COUNT:
            raise AssertionError(f"{len(feed.registry.names())} caches were loaded")
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": seconds, "mib": (after - before) / 1024}


if __name__ == "__main__":
    print(json.dumps(_load(sys.argv[1])))
