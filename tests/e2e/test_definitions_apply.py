"""Definitions of one metastore, applied to another by a process with a Spark of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cachemgr.metastore import open_metastore
from tests.processes import SMALL_SPARK
from tests.worlds.lab_star import JOIN

pytestmark = pytest.mark.spark


def run(lab, *words: str):
    conf = {**SMALL_SPARK, "spark.sql.warehouse.dir": str(lab.folder / "other-warehouse")}
    tables = {name: f"{lab.folder / 'tables' / name}" for name in ("sales", "cust")}
    init = [f"CREATE SCHEMA {lab.schema}", f"USE {lab.schema}"]
    init += [f"CREATE TABLE {n} USING delta LOCATION '{p}'" for n, p in tables.items()]
    environment = {
        **os.environ,
        "CACHEMGR_LOCATION": str(lab.folder / "other-caches"),
        "CACHEMGR_SPARK_MASTER": "local[1]",
        "CACHEMGR_SPARK_CONF": json.dumps(conf),
        "CACHEMGR_SPARK_INIT": json.dumps(init),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    command = [sys.executable, "-c", "from cachemgr.cli import main; main()", *words]
    return subprocess.run(
        command, env=environment, cwd=lab.folder, capture_output=True, text=True, timeout=300
    )


def test_the_same_definitions_elsewhere(lab):
    lab.sql(JOIN)
    lab.spark.conf.set("spark.sql.ansi.enabled", "false")
    lab.cache(
        "totals REFRESH EVERY 1 HOUR AUTO MAX STALENESS INTERVAL 2 HOURS AS "
        "SELECT region, SUM(amt) AS s FROM sales GROUP BY region",
        refresh=False,
    )
    lab.sql("GRANT USE ON RELATIONAL CACHE totals TO ann")
    lab.sql("ALTER RELATIONAL CACHE totals PAUSE")
    file, other = str(lab.folder / "caches.yaml"), f"sqlite:///{lab.folder / 'other.db'}"
    there = ("--metastore", other)
    exported = run(lab, "export", "-f", file, "--metastore", lab.url)
    assert exported.returncode == 0, exported.stderr
    # earlier versions exported settings that only decide how Spark writes
    text = Path(file).read_text()
    ansi = next(line for line in text.splitlines() if "spark.sql.ansi.enabled" in line)
    more = ansi[: ansi.index("spark.")] + "spark.sql.sources.partitionOverwriteMode: dynamic"
    Path(file).write_text(text.replace(ansi, f"{ansi}\n{more}"))
    assert run(lab, "db", "upgrade", *there).returncode == 0
    assert run(lab, "diff", "-f", file, *there).returncode == 2

    applied = run(lab, "apply", "-f", file, "-o", "json", *there)

    assert applied.returncode == 0, applied.stderr
    changes = [(c["action"], c["kind"], c["outcome"]) for c in json.loads(applied.stdout)]
    assert changes == [("CREATE", "join", "DONE"), ("CREATE", "cache", "DONE")]
    again = run(lab, "diff", "-f", file, "--prune", *there)
    assert (again.returncode, again.stdout) == (0, ""), again.stdout + again.stderr
    with open_metastore(lab.url) as here, open_metastore(other) as store:
        (before,), (after,) = here.caches.all(), store.caches.all()
        assert after.settings.items() >= {("spark.sql.ansi.enabled", "false")}
        assert "spark.sql.sources.partitionOverwriteMode" not in after.settings
        assert after.context["schema"] == lab.schema and after.paused and after.narrowed
        assert after.columns == before.columns and after.plan == before.plan
        assert after.spec.refresh == before.spec.refresh
        assert [j.state.value for j in store.joins.all()] == ["VALID"]
    assert "Traceback" not in applied.stderr
