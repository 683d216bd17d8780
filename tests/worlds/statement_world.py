"""A service and the process of its statements, over the lab's tables and caches."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from cachemgr.metastore import open_metastore
from cachemgr.results.client import StatementClient
from cachemgr.roles import Role
from tests.processes import CACHEMGR, ROOT, Replica, replica_settings, replicas, until
from tests.worlds.lab_star import make_lab

BIG = 200_000
BY_REGION = "SELECT region, SUM(amt) AS s, COUNT(*) AS n FROM sales GROUP BY region"
# minutes of it, whatever the machine
ENDLESS = "SELECT SUM(hash(a.id, b.id)) AS s FROM big a CROSS JOIN big b"


@dataclass
class World:
    """A service, the process of its statements, and who asks."""

    lab: Any
    serve: Replica
    worker: Replica
    tokens: dict[str, str]
    folder: Path

    def http(self, who: str = "ann") -> httpx.Client:
        token = {"Authorization": f"Bearer {self.tokens[who]}"}
        return httpx.Client(base_url=f"{self.serve.address}/api/v1", headers=token, timeout=120)

    def client(self, who: str = "ann") -> StatementClient:
        return StatementClient(self.serve.address, self.tokens[who])

    def run(self, sql: str, who: str = "ann", **asked: Any) -> dict[str, Any]:
        """A statement once it is over."""
        with self.client(who) as client:
            found = client.submit(sql, **asked)
            while found["state"] in ("PENDING", "RUNNING"):
                found = client.get(found["id"], wait_seconds=30)
            return dict(found)

    def refused(self, sql: str, who: str = "ann") -> str:
        found = self.run(sql, who)
        assert found["state"] == "FAILED", found
        return str(found["error"]["type"])

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        found = self.run(sql)
        assert found["state"] == "FINISHED", found
        with self.client() as client:
            return [tuple(r.values()) for b in client.batches(found["id"]) for r in b.to_pylist()]

    def submitted(self, sql: str, who: str = "ann", state: str = "RUNNING") -> str:
        """The id of a statement that has come so far."""
        with self.client(who) as client:
            found = client.submit(sql, wait_seconds=0)
            until(lambda: client.get(found["id"])["state"] == state, 60, f"it is {state}")
            return str(found["id"])

    def grant(self, table: str, who: str = "ann") -> None:
        with open_metastore(self.lab.url) as store:
            store.select_grants.add(f"file:{self.folder}/tables/{table}", who, table)

    def cli(self, *arguments: str, who: str = "ann") -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "CACHEMGR_SERVER": self.serve.address,
            "CACHEMGR_TOKEN": self.tokens[who],
        }
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [*CACHEMGR, *arguments], env=environment, stdin=subprocess.DEVNULL, stdout=pipe,
            stderr=pipe,
        )  # fmt: skip

    def query(self, *arguments: str, who: str = "ann") -> tuple[int, bytes, str]:
        process = self.cli("query", *arguments, who=who)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err.decode()


def statement_world(spark: Any, folder: Path) -> Iterator[World]:
    """The world, in a folder of its own."""
    url = f"sqlite:///{folder / 'metastore.db'}"
    for lab in make_lab(spark, folder, url):
        lab.plain.sql(
            f"CREATE TABLE big USING delta AS SELECT id, id % 7 AS k, CONCAT('n', id) AS s "
            f"FROM range({BIG})"
        )
        lab.plain.sql(
            "CREATE TABLE sums (s BIGINT, n BIGINT, region STRING) USING delta "
            "PARTITIONED BY (region)"
        )
        lab.cache(f"by_region AS {BY_REGION}")
        yield from _served(lab, folder, url)


def _served(lab: Any, folder: Path, url: str) -> Iterator[World]:
    with open_metastore(url) as store:
        roles = dict.fromkeys(("ann", "bob", "wil"), Role.VIEWER) | {"olga": Role.OPERATOR}
        tokens = {name: store.tokens.create(name, role)[1] for name, role in roles.items()}
    init = [
        f"CREATE TABLE {t} USING delta LOCATION '{folder}/tables/{t}'"
        for t in ("sales", "cust", "big", "sums")
    ]
    given = replica_settings(
        url,
        folder,
        init,
        # what a session may have, and statements never do
        conf={"spark.databricks.delta.schema.autoMerge.enabled": "true"},
        results_location=str(folder / "results"),
        lease_seconds="3",
        stop_grace_seconds="0",
        statements_at_once="2",
        statements_waiting_each="3",
        requests_a_second="0",
        statement_writers="wil",
    )
    serve = Replica("serve", folder, given, "", ("serve", "--no-scheduler"))
    worker = Replica("worker", folder, given, "", ("worker", "--statements"))
    with replicas(serve, worker):
        until(serve.ready, 120, "the service is ready")
        made = World(lab, serve, worker, tokens, folder)
        for who in ("ann", "wil"):
            for table in ("sales", "big"):
                made.grant(table, who)
        made.grant("sums", "wil")
        yield made
